/** Yields variants of a JSON value in which one value is changed or one field or item is missing. */
export function* changesOf(value: unknown): Generator<unknown> {
  if (typeof value === "string") yield* [`${value}x`, value.slice(1), `${value.slice(0, -1)}\ud83e`];
  else if (typeof value === "number") yield* [value + 1, String(value)];
  else if (typeof value === "boolean") yield* [!value, String(value)];
  else if (value === null) yield* ["null", false];
  else if (Array.isArray(value)) {
    yield [...value, null];
    for (const [index, item] of value.entries()) {
      yield value.toSpliced(index, 1);
      for (const changed of changesOf(item)) yield value.with(index, changed);
    }
  } else if (typeof value === "object") {
    yield { ...value, more: "" };
    for (const [key, { [key]: item, ...rest }] of Object.keys(value).map((each) => [each, Object(value)] as const)) {
      yield rest;
      yield { ...rest, [`${key}x`]: item };
      for (const changed of changesOf(item)) yield { ...value, [key]: changed };
    }
  }
}
