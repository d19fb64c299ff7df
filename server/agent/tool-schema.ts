/** Parameters of tools: any Standard Schema that has a JSON Schema of itself (zod 4), or a JSON Schema of an object. */

import { dereference, Validator } from "@cfworker/json-schema";
import { isRecord } from "../protocol/json.ts";

/** A JSON Schema (2020-12) of an object. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/**
 * The arguments of a tool that a JSON Schema describes, as far as types and `enum`, `const`, `anyOf`, `oneOf`, `items`,
 * `properties`, `required` and `additionalProperties` say. Where the schema's own type is not known, any object.
 */
export type SchemaArguments<Schema extends JsonSchema> = string extends keyof Schema
  ? Record<string, unknown>
  : SchemaValue<Schema>;

type SchemaValue<Schema> = Schema extends { const: infer Value }
  ? Value
  : Schema extends { enum: readonly (infer Value)[] }
    ? Value
    : ChosenValue<Schema> &
        (Schema extends { type: infer Type }
          ? TypedValue<Type extends readonly (infer One)[] ? One : Type, Schema>
          : unknown);

type ChosenValue<Schema> = Schema extends { anyOf: readonly (infer Choice)[] } | { oneOf: readonly (infer Choice)[] }
  ? SchemaValue<Choice>
  : unknown;

type TypedValue<Type, Schema> = Type extends "string"
  ? string
  : Type extends "number" | "integer"
    ? number
    : Type extends "boolean"
      ? boolean
      : Type extends "null"
        ? null
        : Type extends "array"
          ? ArrayValue<Schema>
          : Type extends "object"
            ? ObjectValue<Schema>
            : unknown;

/** The first elements may be of other types than `items` says, and may be missing. */
type ArrayValue<Schema> = Schema extends { prefixItems: unknown }
  ? unknown[]
  : Schema extends { items: infer Item }
    ? SchemaValue<Item>[]
    : unknown[];

type ObjectValue<Schema> = Schema extends { properties: infer Properties }
  ? Simplify<
      { [Name in keyof Properties & RequiredOf<Schema>]: SchemaValue<Properties[Name]> } & {
        [Name in Exclude<keyof Properties, RequiredOf<Schema>>]?: SchemaValue<Properties[Name]>;
      }
    >
  : Schema extends { additionalProperties: infer Value extends object }
    ? Record<string, SchemaValue<Value>>
    : Record<string, unknown>;

type RequiredOf<Schema> = Schema extends { required: readonly (infer Name)[] } ? Name : never;

/** One object in place of an intersection: that is what an editor shows. */
type Simplify<Value> = { -readonly [Name in keyof Value]: Value[Name] };

/** The part of https://standardschema.dev, and of its JSON Schema companion, that is used here. */
export interface StandardSchema<Output = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly jsonSchema?: {
      readonly input: (options: { target: "draft-2020-12" }) => JsonSchema;
    };
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** Arguments that fit, or sentences for the model that say what does not. */
export type CheckedArguments = { ok: true; value: unknown } | { ok: false; problems: string[] };

export interface ParameterSchema {
  /** For the model; without `$schema`. */
  readonly json: JsonSchema;
  check(value: unknown): Promise<CheckedArguments>;
}

/** @throws Error that says what `parameters` must be. */
export function readParameters(parameters: unknown): ParameterSchema {
  if (isStandardSchema(parameters)) return fromStandardSchema(parameters);
  if (isJsonSchemaOfObject(parameters)) return fromJsonSchema(parameters);
  const type = isRecord(parameters) ? parameters.type : undefined;
  if (type !== undefined) throw new Error(`must have the type "object", but has ${JSON.stringify(type)}`);
  throw new Error('must be a zod object or a JSON Schema of an object, such as { type: "object", properties: {} }');
}

function isStandardSchema(value: unknown): value is StandardSchema {
  // ArkType's schemas are functions.
  const holder = typeof value === "object" || typeof value === "function" ? value : null;
  return holder !== null && "~standard" in holder;
}

function isJsonSchemaOfObject(value: unknown): value is JsonSchema {
  return isRecord(value) && value.type === "object";
}

function fromStandardSchema(schema: StandardSchema): ParameterSchema {
  const standard = schema["~standard"];
  const convert = standard.jsonSchema?.input;
  if (convert === undefined) {
    throw new Error(
      `is a schema of ${standard.vendor} that cannot describe itself as JSON Schema; use zod 4 or write the JSON Schema`,
    );
  }
  const json = convert({ target: "draft-2020-12" });
  if (!isJsonSchemaOfObject(json)) throw new Error("must describe an object");
  return {
    json: withoutDraft(json),
    async check(value) {
      const result = await standard.validate(value);
      if (result.issues === undefined) return { ok: true, value: result.value };
      return { ok: false, problems: result.issues.map(describeIssue) };
    },
  };
}

/** Some model servers refuse the keyword that only says which draft a schema follows. */
function withoutDraft({ $schema: _draft, ...schema }: JsonSchema): JsonSchema {
  return schema;
}

function describeIssue(issue: StandardIssue): string {
  const path = (issue.path ?? []).map((step) => String(typeof step === "object" ? step.key : step));
  return `/${path.join("/")}: ${issue.message}`;
}

function fromJsonSchema(schema: JsonSchema): ParameterSchema {
  // The validator adds fields of its own to the schema, which the model must not read.
  const own = structuredClone(schema);
  checkKeywords(own);
  checkParts(own);
  const validator = new Validator(own, "2020-12", false);
  validator.validate({});
  return {
    json: withoutDraft(schema),
    async check(value) {
      const result = validator.validate(value);
      if (result.valid) return { ok: true, value };
      return { ok: false, problems: result.errors.map(describeError) };
    },
  };
}

const SCHEMA = { $ref: "#" };
const TYPE = { enum: ["string", "number", "integer", "boolean", "object", "array", "null"] };
const TEXTS = { type: "array", items: { type: "string" } };

function keywords(schema: JsonSchema, ...names: string[]): Record<string, JsonSchema> {
  return Object.fromEntries(names.map((name) => [name, schema]));
}

/** What the keywords of a JSON Schema hold, as its own meta-schema has it (2020-12); other keywords may hold anything. */
const META_SCHEMA: JsonSchema = {
  type: ["object", "boolean"],
  properties: {
    type: { anyOf: [{ type: "array", minItems: 1, uniqueItems: true, items: TYPE }, TYPE] },
    required: { ...TEXTS, uniqueItems: true },
    dependentRequired: { type: "object", additionalProperties: TEXTS },
    uniqueItems: { type: "boolean" },
    multipleOf: { type: "number", exclusiveMinimum: 0 },
    ...keywords({ type: "array" }, "enum", "examples"),
    ...keywords({ type: "string" }, "title", "description", "format", "pattern", "$ref"),
    ...keywords({ type: "number" }, "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    ...keywords({ type: "integer", minimum: 0 }, "minLength", "maxLength", "minItems", "maxItems"),
    ...keywords({ type: "integer", minimum: 0 }, "minContains", "maxContains", "minProperties", "maxProperties"),
    ...keywords({ type: "array", minItems: 1, items: SCHEMA }, "allOf", "anyOf", "oneOf", "prefixItems"),
    ...keywords({ type: "object", additionalProperties: SCHEMA }, "properties", "patternProperties"),
    ...keywords({ type: "object", additionalProperties: SCHEMA }, "dependentSchemas", "$defs"),
    ...keywords(SCHEMA, "items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else"),
    ...keywords(SCHEMA, "unevaluatedItems", "unevaluatedProperties"),
  },
};

/** Finds a keyword that holds something else than it may, and names its path. @throws Error */
function checkKeywords(schema: JsonSchema): void {
  const { errors } = new Validator(META_SCHEMA, "2020-12", false).validate(schema);
  // The deepest one is the fault itself; the others are the parts that hold it.
  const [fault] = errors.reverse().sort((a, b) => b.instanceLocation.length - a.instanceLocation.length);
  if (fault !== undefined) throw new Error(`are not a JSON Schema: ${sentenceOf(fault)}`);
}

/** The validator speaks of instances; the author has only written a schema. */
function sentenceOf(fault: { instanceLocation: string; error: string }): string {
  return describeError(fault)
    .replace(
      /Instance does not match any of \[(.*)\]/,
      (_, names: string) => `must be one of ${names.replaceAll(",", ", ")}`,
    )
    .replace(/Instance type "(\w+)" is invalid\. Expected (.*)\./, (_, type: string, expected: string) => {
      const needed =
        expected === '"object", "boolean"' ? 'a schema, such as { type: "string" }' : `of the type ${expected}`;
      return `must be ${needed}, but is of the type "${type}"`;
    })
    .replace(/\.$/, "");
}

/** Finds a `$ref` without a target and a bad pattern at any depth, so that they show at the start and not in a chat. */
function checkParts(schema: JsonSchema): void {
  const known = dereference(schema);
  for (const part of Object.values(known)) {
    if (typeof part !== "object") continue;
    const { $ref, __absolute_ref__: target = $ref, pattern, patternProperties = {} } = part;
    if (target !== undefined && known[target] === undefined) {
      throw new Error(`refer to "${$ref}", which they do not hold`);
    }
    const patterns = Object.keys(patternProperties);
    for (const source of pattern === undefined ? patterns : [pattern, ...patterns]) {
      if (!isPattern(source)) throw new Error(`have a pattern that cannot be read: ${source}`);
    }
  }
}

function isPattern(source: string): boolean {
  try {
    new RegExp(source, "u");
    return true;
  } catch {
    return false;
  }
}

function describeError(error: { instanceLocation: string; error: string }): string {
  return `${error.instanceLocation.replace(/^#/, "") || "/"}: ${error.error}`;
}
