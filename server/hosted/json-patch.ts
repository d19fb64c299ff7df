import { isDeepStrictEqual } from "node:util";
import { isRecord } from "../protocol/json.ts";

type Container = unknown[] | Record<string, unknown>;

/** Where a value is, or where it is put. */
type Place = { parent: unknown[]; key: number } | { parent: Record<string, unknown>; key: string };

/** What `copy` may add to a document: each copy may double it. */
const MAX_COPIED_CHARS = 4 * 1024 * 1024;

/**
 * A JSON document that JSON Patches (RFC 6902) change in place: what an agent sends of its state. A new document for each
 * patch would cost the size of the whole one each time.
 */
export class PatchedDocument {
  /** The document has a parent, as each value in it has. */
  readonly #root: { document?: unknown };
  #copiedChars = 0;

  /** It is not copied. */
  constructor(document: unknown) {
    this.#root = { document };
  }

  get document(): unknown {
    return this.#root.document ?? null;
  }

  set document(document: unknown) {
    this.#root.document = document;
  }

  /** Carries out all operations, or none. @throws Error that names the operation */
  patch(operations: unknown): void {
    const undo: (() => void)[] = [];
    try {
      if (!Array.isArray(operations)) throw new Error("it is no list");
      for (const [index, operation] of operations.entries()) {
        if (!isRecord(operation)) throw new Error(`operation ${index} is no object`);
        this.#apply(operation, undo);
      }
    } catch (error) {
      for (const step of undo.reverse()) step();
      throw error;
    }
  }

  #apply(operation: Record<string, unknown>, undo: (() => void)[]): void {
    const { op, path, from, value } = operation;
    if (["add", "replace", "test"].includes(op as string) && value === undefined) throw new Error(`${op} has no value`);
    if (op === "add") undo.push(insert(this.#find(path, true), value));
    else if (op === "remove") undo.push(remove(this.#find(path)));
    else if (op === "replace") undo.push(replace(this.#find(path), value));
    else if (op === "copy") undo.push(insert(this.#find(path, true), this.#copyOf(valueAt(this.#find(from)))));
    else if (op === "move") this.#move(from, path, undo);
    else if (op !== "test") throw new Error("it has an operation that is unknown");
    else if (!isDeepStrictEqual(valueAt(this.#find(path)), value)) throw new Error(`${path} has another value`);
  }

  #move(from: unknown, path: unknown, undo: (() => void)[]): void {
    if (`${path}`.startsWith(`${from}/`)) throw new Error(`${from} cannot be moved into itself`);
    const place = this.#find(from);
    const value = valueAt(place);
    undo.push(remove(place));
    undo.push(insert(this.#find(path, true), value));
  }

  #copyOf(value: unknown): unknown {
    const text = JSON.stringify(value);
    this.#copiedChars += text.length;
    if (this.#copiedChars > MAX_COPIED_CHARS) throw new Error("it copies too much");
    return JSON.parse(text);
  }

  /** The place that a JSON Pointer (RFC 6901) names. Something is there, unless something `isNew` is put there. */
  #find(pointer: unknown, isNew = false): Place {
    if (typeof pointer !== "string" || !/^(?:\/|$)/.test(pointer)) throw new Error("it names a path that is none");
    const keys = ["document", ...pointer.split("/").slice(1).map(unescaped)];
    const last = keys.pop() as string;
    let parent: Container = this.#root;
    for (const key of keys) {
      const child = valueAt(placeIn(parent, key, pointer, false));
      if (!Array.isArray(child) && !isRecord(child)) throw new Error(`there is no ${pointer}`);
      parent = child;
    }
    return placeIn(parent, last, pointer, isNew);
  }
}

/** Only what is the container's own is found: a name such as `__proto__` leads nowhere else. */
function placeIn(parent: Container, key: string, pointer: string, isNew: boolean): Place {
  if (!Array.isArray(parent)) {
    if (!isNew && !Object.hasOwn(parent, key)) throw new Error(`there is no ${pointer}`);
    return { parent, key };
  }
  const index = isNew && key === "-" ? parent.length : /^(?:0|[1-9]\d*)$/.test(key) ? Number(key) : Number.NaN;
  if (!(index < parent.length + (isNew ? 1 : 0))) throw new Error(`there is no ${pointer}`);
  return { parent, key: index };
}

function valueAt({ parent, key }: Place): unknown {
  return parent[key as never];
}

/** Each change gives what takes it back. */
function insert(place: Place, value: unknown): () => void {
  const { parent, key } = place;
  if (Array.isArray(parent)) parent.splice(key as number, 0, value);
  else if (Object.hasOwn(parent, key)) return replace(place, value);
  else define(parent, key as string, value);
  return () => void remove(place);
}

function remove(place: Place): () => void {
  const { parent, key } = place;
  const value = valueAt(place);
  if (Array.isArray(parent)) parent.splice(key as number, 1);
  else delete parent[key];
  return () => void insert(place, value);
}

function replace({ parent, key }: Place, value: unknown): () => void {
  const former = parent[key as never];
  define(parent, key, value);
  return () => define(parent, key, former);
}

/** An assignment to `__proto__` would set another prototype. */
function define(parent: Container, key: string | number, value: unknown): void {
  Object.defineProperty(parent, key, { value, enumerable: true, configurable: true, writable: true });
}

function unescaped(key: string): string {
  return key.replaceAll("~1", "/").replaceAll("~0", "~");
}
