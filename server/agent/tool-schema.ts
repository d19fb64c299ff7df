/** Parameters of tools: a Standard Schema that can give its JSON Schema (zod 4), or a JSON Schema of an object. */

import { dereference, type OutputUnit, type Schema, Validator, validate } from "@cfworker/json-schema";
import { Late, within } from "../config/within.ts";
import { AgentNotice, ToolFailure } from "../errors.ts";
import type { ArgumentProblem } from "../protocol/errors.ts";
import { isRecord } from "../protocol/json.ts";
import { Ended, fenced } from "./fence.ts";

/** A JSON Schema (2020-12) of an object. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/**
 * The type of the arguments that a JSON Schema describes, as far as its types and `enum`, `const`, `anyOf`, `oneOf`,
 * `items`, `properties`, `required` and `additionalProperties` say. If the type of the schema is not known: any object.
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

/** With `prefixItems`, the first elements may be of other types than `items` says, and may be missing. */
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

/** One object type in place of an intersection, for editors to show. */
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

export type CheckedArguments =
  | { ok: true; value: unknown }
  | {
      ok: false;
      /** What does not fit, at most 8. */
      problems: ArgumentProblem[];
      /** For the log: the check took too long, or the author's own check threw. */
      failure?: AgentNotice | ToolFailure;
    };

export interface CheckLimits {
  /** How long the check may take, including all that it waits for, in milliseconds; default: 10 seconds. */
  readonly ms?: number;
  /** The signal of the run. If it is aborted, the check ends and refuses the arguments. */
  readonly signal?: AbortSignal;
}

export interface ParameterSchema {
  /** For the model; without `$schema`. */
  readonly json: JsonSchema;
  /** Never rejects, and never stops the event loop for long. */
  check(value: unknown, limits?: CheckLimits): Promise<CheckedArguments>;
}

/** A check by a JSON Schema blocks the event loop no longer than this, whatever the arguments. */
const SCHEMA_LIMIT = { ms: 50, retries: 2 };
/**
 * The author's own code is not called twice, because it may have side effects. Users can have it called without a
 * model, by editing arguments: a longer limit would let one of them block the event loop.
 */
const OWN_LIMIT = { ms: 250, retries: 0 };
/** Time limit of a check, including what it waits for, such as other checks or requests of the author's own code. */
const CHECK_MS = 10_000;

/** Schemas that were read: reading takes milliseconds, and a function may return the same schema for each message. */
const READ = new WeakMap<object, ReadSchema | Error>();

interface ReadSchema {
  readonly json: JsonSchema;
  /** May throw, and may never resolve. */
  check(value: unknown, signal: AbortSignal | undefined): Promise<CheckedArguments>;
}

/** Reads each schema once: later changes to it have no effect. @throws Error that says what `parameters` must be. */
export function readParameters(parameters: unknown, tool: string): ParameterSchema {
  const key = Object(parameters);
  const read = READ.get(key) ?? readSchema(parameters);
  READ.set(key, read);
  if (read instanceof Error) throw read;
  return { json: read.json, check: (value, limits) => refusing(tool, limits, () => read.check(value, limits?.signal)) };
}

function readSchema(parameters: unknown): ReadSchema | Error {
  try {
    if (isStandardSchema(parameters)) return fromStandardSchema(parameters);
    if (isJsonSchemaOfObject(parameters)) return fromJsonSchema(parameters);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
  const type = isRecord(parameters) ? parameters.type : undefined;
  if (type !== undefined) return new Error(`must have the type "object", but has ${JSON.stringify(type)}`);
  return new Error('must be a zod object or a JSON Schema of an object, such as { type: "object", properties: {} }');
}

function isStandardSchema(value: unknown): value is StandardSchema {
  // ArkType's schemas are functions.
  const holder = typeof value === "object" || typeof value === "function" ? value : null;
  return holder !== null && "~standard" in holder;
}

function isJsonSchemaOfObject(value: unknown): value is JsonSchema {
  return isRecord(value) && value.type === "object";
}

function fromStandardSchema(schema: StandardSchema): ReadSchema {
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
    check: async (value, signal) => {
      // In an object: `fenced` would wait for a promise, and all other checks with it.
      const { result } = await fenced(() => ({ result: standard.validate(value) }), OWN_LIMIT, signal);
      const checked = await result;
      if (checked.issues === undefined) return { ok: true, value: checked.value };
      return { ok: false, problems: checked.issues.slice(0, MAX_PROBLEMS).map(ofIssue) };
    },
  };
}

/** Refuses the arguments if the check itself fails or takes too long. */
async function refusing(
  tool: string,
  { ms = CHECK_MS, signal }: CheckLimits = {},
  check: () => Promise<CheckedArguments>,
): Promise<CheckedArguments> {
  const refused = (message: string, failure?: AgentNotice | ToolFailure): CheckedArguments => ({
    ok: false,
    problems: [{ pointer: "", message }],
    ...(failure === undefined ? {} : { failure }),
  });
  try {
    return await within(check, ms, signal);
  } catch (error) {
    if (signal?.aborted) return refused("could not be checked before the end");
    if (error instanceof Ended || error instanceof Late) {
      const what = `Arguments of the tool "${tool}" were refused, because their check by its parameters ${error.message}.`;
      const then = "Look for a pattern that backtracks, and limit what may be long: maxLength, maxItems.";
      return refused("took too long to check: shorten or simplify what is long", new AgentNotice(`${what} ${then}`));
    }
    if (error instanceof RangeError && error.message.includes("call stack"))
      return refused("must not be nested so deeply");
    return refused("could not be checked by the tool", new ToolFailure(tool, error));
  }
}

/** Without `$schema`, which only says which draft a schema follows: some model servers refuse it. */
function withoutDraft({ $schema: _draft, ...schema }: JsonSchema): JsonSchema {
  return schema;
}

/** Maximum length of the message, and of the pointer, of a problem: both may quote a value. */
const MAX_CHARS = 500;
const MAX_PROBLEMS = 8;

function problem(pointer: string, message: string): ArgumentProblem {
  const cut = (text: string) => (text.length <= MAX_CHARS ? text : `${text.slice(0, MAX_CHARS).toWellFormed()}…`);
  return { pointer: cut(pointer), message: cut(message) };
}

function ofIssue({ message, path = [] }: StandardIssue): ArgumentProblem {
  const keys = path.map((step) => String(typeof step === "object" ? step.key : step));
  return problem(keys.map((key) => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`).join(""), message);
}

/** The deepest errors: an error that only says that a part does not fit comes right before the errors of that part. */
function ofErrors(errors: readonly OutputUnit[]): ArgumentProblem[] {
  const deepest = errors.filter(({ keyword, keywordLocation }, index) => {
    const isOfPart = errors[index + 1]?.keywordLocation.startsWith(`${keywordLocation}/`);
    return !isOfPart || keyword === "anyOf" || keyword === "oneOf";
  });
  return deepest
    .slice(0, MAX_PROBLEMS)
    .map(({ instanceLocation, error }) => problem(decodeURI(instanceLocation.slice(1)), error));
}

function fromJsonSchema(schema: JsonSchema): ReadSchema {
  // The validator adds fields of its own to the schema, which the model must not read.
  const own = structuredClone(schema) as Schema;
  checkKeywords(own);
  const parts = dereference(own);
  checkParts(parts);
  const check = (value: unknown, isShort: boolean) => validate(value, own, "2020-12", parts, isShort);
  check({}, true);
  return {
    json: withoutDraft(structuredClone(schema)),
    check: async (value, signal) => {
      const first = await fenced(() => check(value, true), SCHEMA_LIMIT, signal);
      if (first.valid) return { ok: true, value };
      // If all errors together take too long, or are too many, only the first one is reported.
      const all = await fenced(() => check(value, false), SCHEMA_LIMIT, signal).catch(() => first);
      return { ok: false, problems: ofErrors(all.errors) };
    },
  };
}

/** The problems as sentences for a model. */
export function describeProblems(problems: readonly ArgumentProblem[]): string {
  return problems.map(describeProblem).join("\n");
}

function describeProblem({ pointer, message }: ArgumentProblem): string {
  return `${pointer || "/"}: ${message}`;
}

const SCHEMA = { $ref: "#" };
const TYPE = { enum: ["string", "number", "integer", "boolean", "object", "array", "null"] };
const TEXTS = { type: "array", items: { type: "string" } };

function keywords(schema: JsonSchema, ...names: string[]): Record<string, JsonSchema> {
  return Object.fromEntries(names.map((name) => [name, schema]));
}

/** What the keywords of a JSON Schema may be, as in its own meta-schema (2020-12). Other keywords may be anything. */
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

/** Refuses a keyword with a wrong value, and names its path. @throws Error */
function checkKeywords(schema: Schema): void {
  const { errors } = new Validator(META_SCHEMA, "2020-12", false).validate(schema);
  // The deepest error is the fault itself; the others are about the parts that contain it.
  const [fault] = errors.reverse().sort((a, b) => b.instanceLocation.length - a.instanceLocation.length);
  if (fault !== undefined) throw new Error(`are not a JSON Schema: ${sentenceOf(fault)}`);
}

/** Rewrites the validator's message, which speaks of instances, for an author who has only written a schema. */
function sentenceOf(fault: OutputUnit): string {
  const { pointer, message } = problem(decodeURI(fault.instanceLocation.slice(1)), fault.error);
  return describeProblem({ pointer, message })
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

/** Refuses a `$ref` without a target or a bad pattern, at any depth: they have to show at the start, not in a chat. */
function checkParts(known: Record<string, Schema | boolean>): void {
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
