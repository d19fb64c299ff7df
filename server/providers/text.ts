/** The value as a string; "" for everything that is none, as providers write `null` for "nothing". */
export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
