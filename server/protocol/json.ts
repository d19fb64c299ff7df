/** Helpers for JSON from outside. */

/** An object of JSON from outside, which is not changed. */
export type Json = Readonly<Record<string, unknown>>;

/** Whether JSON from outside is an object, which then is read field by field. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * JSON of a value, ignoring `toJSON`: old libraries on a page add one of their own to arrays, strings and numbers, which
 * `JSON.stringify` by itself would use.
 */
export function toJson(value: unknown, indent = 0): string {
  return JSON.stringify(
    value,
    function (this: Json, key) {
      return this[key];
    },
    indent,
  );
}

/** A field from outside that should be a string; "" if it is not. */
export function asString(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The objects in a list from outside; none if it is not a list. */
export function records(list: unknown): Record<string, unknown>[] {
  return Array.isArray(list) ? list.filter(isRecord) : [];
}

/** The texts that the elements of a list have in this field, joined. */
export function textsOf(list: unknown, field: string): string {
  if (!Array.isArray(list)) return "";
  return records(list)
    .map((item) => asString(item[field]))
    .join("");
}

/** The value of a JSON text; `undefined` for a text that is not JSON. */
export function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
