import { isRecord, records } from "../protocol/json.ts";

/** The document after a JSON Patch (RFC 6902) of `add`, `replace` and `remove`: what agents send of their state. */
export function patched(document: unknown, patch: unknown): unknown {
  const root = { document: structuredClone(document) };
  for (const { op, path, value } of records(patch)) {
    const keys = ["document", ...String(path).split("/").slice(1).map(unescaped)];
    const last = keys.pop() ?? "";
    const parent = keys.reduce<unknown>((at, key) => (isIn(at, key) ? at[key] : undefined), root);
    if (Array.isArray(parent)) {
      const at = last === "-" ? parent.length : Number(last);
      if (op === "remove") parent.splice(at, 1);
      else parent.splice(at, op === "add" ? 0 : 1, value);
    } else if (isRecord(parent)) {
      if (op === "remove") delete parent[last];
      else Object.defineProperty(parent, last, { value, enumerable: true, configurable: true, writable: true });
    }
  }
  return root.document;
}

function isIn(value: unknown, key: string): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && Object.hasOwn(value, key);
}

function unescaped(key: string): string {
  return key.replaceAll("~1", "/").replaceAll("~0", "~");
}
