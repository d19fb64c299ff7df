/** The arguments of a call in the forms that models write them in, wherever these can mean only one thing. */

import { isRecord, tryParse } from "../protocol/json.ts";
import type { ToolSpec } from "./provider.ts";

/** `written` as the JSON of one object, as every tool takes it; what has no such meaning stays as the model wrote it. */
export function callArguments(written: string, tool: string, tools: readonly ToolSpec[]): string {
  const value = objectIn(written);
  if (value === undefined) return written;
  const fitted = JSON.stringify(fit(value, tools.find(({ name }) => name === tool)?.parameters));
  // Its own text, if nothing in it had to be changed.
  return isRecord(tryParse(written)) && fitted === JSON.stringify(value) ? written : fitted;
}

/** The object that the text means. An absent one, "null" and nothing mean one without fields. */
function objectIn(written: string): Record<string, unknown> | undefined {
  if (written.trim() === "") return {};
  // Some servers send `{}` before the pieces of the real arguments.
  const parsed = tryParse(written);
  const value = parsed === undefined ? tryParse(written.replace(/^(?:\s*\{\s*\})+(?=\s*\{)/, "")) : parsed;
  if (isRecord(value)) return value;
  if (value === null) return {};
  // JSON that was encoded twice.
  return typeof value === "string" ? objectIn(value) : undefined;
}

/** Decodes lists and objects that stand as a JSON text where the schema takes nothing but a list or an object. */
function fit(value: unknown, schema: unknown): unknown {
  if (!isRecord(schema)) return value;
  const { type, properties, items } = schema;
  if (typeof value === "string" && (type === "array" || type === "object")) {
    const inner = tryParse(value);
    return (type === "array" ? Array.isArray(inner) : isRecord(inner)) ? fit(inner, schema) : value;
  }
  if (Array.isArray(value)) return value.map((item) => fit(item, items));
  if (!isRecord(value) || !isRecord(properties)) return value;
  const schemaOf = (name: string) => (Object.hasOwn(properties, name) ? properties[name] : undefined);
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, fit(field, schemaOf(name))]));
}
