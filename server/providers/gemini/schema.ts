/**
 * A tool's JSON Schema as Google's API takes it: OpenAPI's schema object, which refuses keywords that it does
 * not know. What is left out is still checked before the tool runs, and the model is told of a mistake.
 */

import { isRecord } from "../json.ts";

type Schema = Record<string, unknown>;

/** Keywords that mean the same in both. */
const KEPT = new Set([
  "title",
  "description",
  "nullable",
  "required",
  "minItems",
  "maxItems",
  "minLength",
  "maxLength",
  "minProperties",
  "maxProperties",
  "minimum",
  "maximum",
  "pattern",
]);

/** Google refuses a string whose format is any other, such as "uri". */
const FORMATS = new Set<unknown>(["date-time", "float", "double", "int32", "int64"]);

/** Translates the schema and all within it. */
export function geminiSchema(schema: Readonly<Schema>): Schema {
  return translate(schema, { definitions: isRecord(schema.$defs) ? schema.$defs : {}, within: [] });
}

interface Context {
  readonly definitions: Readonly<Schema>;
  /** The references that are being followed: a schema within itself is cut off. */
  readonly within: readonly string[];
}

function translate(schema: unknown, context: Context): Schema {
  if (!isRecord(schema)) return {};
  if (typeof schema.$ref === "string") return follow(schema.$ref, schema, context);
  const translated: Schema = {};
  for (const [name, value] of Object.entries(schema)) if (KEPT.has(name)) translated[name] = value;
  Object.assign(translated, typeOf(schema), choiceOf(schema));
  const { properties, items, format } = schema;
  if (FORMATS.has(format)) translated.format = format;
  if (isRecord(properties)) {
    const entries = Object.entries(properties);
    translated.properties = Object.fromEntries(
      entries.map(([name, inner]) => [name, translate(inner, context)]),
    );
  }
  if (isRecord(items)) translated.items = translate(items, context);
  const any = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(any)) Object.assign(translated, alternatives(any, context));
  return translated;
}

/** Puts a definition in the place of its reference. */
function follow(reference: string, schema: Readonly<Schema>, context: Context): Schema {
  const definition = context.definitions[reference.replace(/^#\/\$defs\//, "")];
  if (context.within.includes(reference) || !isRecord(definition)) return { type: "object" };
  const { $ref: _reference, ...beside } = schema;
  const within = [...context.within, reference];
  return translate({ ...definition, ...beside }, { ...context, within });
}

/** `["string", "null"]` is a nullable string. */
function typeOf({ type }: Readonly<Schema>): Schema {
  if (!Array.isArray(type)) return type === undefined ? {} : { type };
  const types = type.filter((name: unknown) => name !== "null");
  const nullable = types.length < type.length ? { nullable: true } : {};
  if (types.length === 1) return { type: types[0], ...nullable };
  return { anyOf: types.map((name: unknown) => ({ type: name })), ...nullable };
}

/** Only strings may be enumerated: other values are told in the description. */
function choiceOf(schema: Readonly<Schema>): Schema {
  const values: unknown = schema.const === undefined ? schema.enum : [schema.const];
  if (!Array.isArray(values)) return {};
  if (values.every((value) => typeof value === "string")) return { type: "string", enum: values };
  const list = `One of: ${values.map((value) => JSON.stringify(value)).join(", ")}.`;
  const said = typeof schema.description === "string" ? `${schema.description} ` : "";
  return { description: said + list };
}

function alternatives(any: readonly unknown[], context: Context): Schema {
  const schemas = any.filter(isRecord);
  const types = schemas.filter(({ type }) => type !== "null");
  const nullable = types.length < schemas.length ? { nullable: true } : {};
  const translated = types.map((type) => translate(type, context));
  return { ...(translated.length === 1 ? translated[0] : { anyOf: translated }), ...nullable };
}
