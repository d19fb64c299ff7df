/**
 * Translates a tool's JSON Schema into the form of Google's API: OpenAPI's schema object, where unknown keywords are
 * refused. What is left out is still checked before the tool runs, and the model learns of a mistake.
 */

import { isRecord } from "../../protocol/json.ts";

type Schema = Record<string, unknown>;

/** Keywords that mean the same in both formats. */
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
  return translate(schema, { root: schema, within: [] });
}

interface Context {
  /** The whole schema, which contains the definitions. */
  readonly root: Readonly<Schema>;
  /** The references that are being followed: a schema that contains itself is cut off. */
  readonly within: readonly string[];
}

function translate(schema: unknown, context: Context): Schema {
  if (!isRecord(schema)) return {};
  if (typeof schema.$ref === "string") return follow(schema.$ref, schema, context);
  if (Array.isArray(schema.allOf)) return translateAll(schema, context);
  const translated: Schema = {};
  for (const [name, value] of Object.entries(schema)) if (KEPT.has(name)) translated[name] = value;
  Object.assign(translated, typeOf(schema, context), choiceOf(schema));
  const { properties, format } = schema;
  if (FORMATS.has(format)) translated.format = format;
  if (isRecord(properties)) {
    const entries = Object.entries(properties);
    translated.properties = Object.fromEntries(entries.map(([name, inner]) => [name, translate(inner, context)]));
  }
  // Google refuses an array without them: "items: missing field".
  if (translated.type === "array") translated.items = itemsOf(schema, context);
  const any = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(any)) Object.assign(translated, alternatives(any, context));
  return translated;
}

/** Replaces a reference by its definition. */
function follow(reference: string, schema: Readonly<Schema>, context: Context): Schema {
  const definition = definitionOf(reference, context);
  if (context.within.includes(reference) || definition === undefined) return { type: "object" };
  const { $ref: _reference, ...beside } = schema;
  const within = [...context.within, reference];
  return translate({ ...definition, ...beside }, { ...context, within });
}

/** Looks under `$defs`, or under `definitions` as in older drafts. */
function definitionOf(reference: string, { root }: Context): Schema | undefined {
  const [, keyword = "", name = ""] = /^#\/(\$defs|definitions)\/(.+)$/.exec(reference) ?? [];
  const definitions = root[keyword];
  if (!isRecord(definitions) || !Object.hasOwn(definitions, name)) return undefined;
  const definition = definitions[name];
  return isRecord(definition) ? definition : undefined;
}

/** Joins the schemas of `allOf` into one: the properties of all of them, and what each requires. */
function translateAll({ allOf, ...beside }: Readonly<Schema>, context: Context): Schema {
  const parts = [...(allOf as unknown[]), beside].map((part) => translate(part, context));
  const fieldsOf = (part: Schema) => Object.entries(isRecord(part.properties) ? part.properties : {});
  const properties = parts.flatMap(fieldsOf);
  const required = new Set(parts.flatMap((part) => (Array.isArray(part.required) ? part.required : [])));
  // A part that says nothing of an array's elements has `{}` for them.
  const items = parts.map((part) => part.items).findLast((own) => isRecord(own) && Object.keys(own).length > 0);
  const joined = {
    ...Object.fromEntries(parts.flatMap((part) => Object.entries(part))),
    ...(items === undefined ? {} : { items }),
    ...(properties.length === 0 ? {} : { properties: Object.fromEntries(properties) }),
    ...(required.size === 0 ? {} : { required: [...required] }),
  };
  return Object.keys(joined).length === 0 ? { type: "object" } : joined;
}

/** The schema of an array's elements. Google has no tuples: one becomes a choice of its elements' schemas. */
function itemsOf({ items, prefixItems }: Readonly<Schema>, context: Context): Schema {
  if (isRecord(items)) return translate(items, context);
  const tuple = Array.isArray(prefixItems) ? prefixItems : items;
  if (!Array.isArray(tuple)) return {};
  const schemas = tuple.filter(isRecord);
  const different = new Map(schemas.map((schema) => [JSON.stringify(schema), schema]));
  return different.size === 0 ? {} : alternatives([...different.values()], context);
}

/** `["string", "null"]` is a nullable string. A part of an `allOf` may have `items` without a `type`. */
function typeOf({ type, items, prefixItems }: Readonly<Schema>, context: Context): Schema {
  if (type === undefined) return isRecord(items) ? { type: "array" } : {};
  if (!Array.isArray(type)) return { type };
  const types = type.filter((name: unknown) => name !== "null");
  const nullable = types.length < type.length ? { nullable: true } : {};
  if (types.length === 1) return { type: types[0], ...nullable };
  const choices = types.map((name: unknown) => translate({ type: name, items, prefixItems }, context));
  return { anyOf: choices, ...nullable };
}

/** Only strings may be enumerated: other values are listed in the description. */
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
