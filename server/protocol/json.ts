/** JSON from outside. */

/** An object of JSON from outside, which is not changed. */
export type Json = Readonly<Record<string, unknown>>;

/** Whether JSON from outside is an object, which then is read field by field. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * JSON of a value as it is. Old libraries of a page give arrays, texts and numbers a `toJSON` of theirs, which
 * `JSON.stringify` asks alone.
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

/** A field from outside that should be a string. */
export function asString(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The objects of a list from outside. */
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
