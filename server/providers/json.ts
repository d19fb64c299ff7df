/** A JSON object, as opposed to an array, `null` or a plain value. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value as a string; "" for everything that is none, as providers write `null` for "nothing". */
export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
