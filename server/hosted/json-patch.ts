import { isDeepStrictEqual } from "node:util";
import { isRecord } from "../protocol/json.ts";

type Container = unknown[] | Record<string, unknown>;

/** Where a value is, or where it is put. */
type Place = { parent: unknown[]; key: number } | { parent: Record<string, unknown>; key: string };

/** Maximum operations of one patch, which is carried out in one turn of the event loop. */
const MAX_OPERATIONS = 10_000;

/** Maximum steps of all paths of one patch together. */
const MAX_STEPS = 10 * MAX_OPERATIONS;

/** Maximum values and characters that all patches of a document may copy or compare: each copy may double its size. */
const MAX_COPIED = 1024 * 1024;

/** Maximum array items that all patches of a document may shift by inserting and removing others. */
const MAX_MOVED = 64 * 1024 * 1024;

/** For patches that cost far more than their size suggests: nothing more is read from their sender. */
export class CostlyPatch extends Error {
  override readonly name = "CostlyPatch";
}

/**
 * A JSON document, such as an agent's state, that JSON Patches (RFC 6902) change in place. A new document for each patch would
 * cost the size of the whole document each time.
 */
export class PatchedDocument {
  /** Gives the document a parent, as each value in it has. */
  readonly #root: { document?: unknown };
  #copied = 0;
  #moved = 0;
  /** Path steps that the current patch has taken. */
  #steps = 0;

  /** The document is not copied. */
  constructor(document: unknown) {
    this.#root = { document };
  }

  get document(): unknown {
    return this.#root.document ?? null;
  }

  set document(document: unknown) {
    this.#root.document = document;
  }

  /** Carries out all operations, or none. @throws Error that names the operation, or CostlyPatch */
  patch(operations: unknown): void {
    const undo: (() => void)[] = [];
    this.#steps = 0;
    try {
      if (!Array.isArray(operations)) throw new Error("it is no list");
      if (operations.length > MAX_OPERATIONS) {
        throw new CostlyPatch(`it has ${operations.length} operations, and at most ${MAX_OPERATIONS} are carried out`);
      }
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
    if (op === "add") this.#insert(path, value, undo);
    else if (op === "remove") this.#remove(this.#find(path), undo);
    else if (op === "replace") undo.push(replace(this.#find(path), value));
    else if (op === "copy") this.#insert(path, this.#copyOf(valueAt(this.#find(from))), undo);
    else if (op === "move") this.#move(from, path, undo);
    else if (op !== "test") throw new Error("it has an operation that is unknown");
    else if (!this.#isEqual(valueAt(this.#find(path)), value)) throw new Error(`${path} has another value`);
  }

  #move(from: unknown, path: unknown, undo: (() => void)[]): void {
    if (`${path}`.startsWith(`${from}/`)) throw new Error(`${from} cannot be moved into itself`);
    const place = this.#find(from);
    const value = valueAt(place);
    this.#remove(place, undo);
    this.#insert(path, value, undo);
  }

  #insert(path: unknown, value: unknown, undo: (() => void)[]): void {
    const place = this.#find(path, true);
    this.#countMoved(place);
    undo.push(insert(place, value));
  }

  #remove(place: Place, undo: (() => void)[]): void {
    this.#countMoved(place);
    undo.push(remove(place));
  }

  #copyOf(value: unknown): unknown {
    this.#countCopied(value);
    return JSON.parse(JSON.stringify(value));
  }

  #isEqual(value: unknown, other: unknown): boolean {
    this.#countCopied(value);
    return isDeepStrictEqual(value, other);
  }

  /** Called before an operation changes anything. */
  #countMoved({ parent, key }: Place): void {
    if (Array.isArray(parent)) this.#moved += parent.length - Number(key);
    if (this.#moved > MAX_MOVED) throw new CostlyPatch(`it moves more than ${MAX_MOVED} items of lists`);
  }

  #countCopied(value: unknown): void {
    this.#copied += sizeOf(value, MAX_COPIED - this.#copied);
    if (this.#copied > MAX_COPIED) throw new CostlyPatch(`it copies or compares more than ${MAX_COPIED} characters`);
  }

  /** The place that a JSON Pointer (RFC 6901) names. It must have a value, unless `isNew`. */
  #find(pointer: unknown, isNew = false): Place {
    if (typeof pointer !== "string" || !/^(?:\/|$)/.test(pointer)) throw new Error("it names a path that is none");
    const keys = ["document", ...pointer.split("/").slice(1).map(unescaped)];
    this.#steps += keys.length;
    if (this.#steps > MAX_STEPS) throw new CostlyPatch(`its paths have more than ${MAX_STEPS} steps`);
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

/** Finds own properties only, so that a name such as `__proto__` finds nothing. */
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

/** Like `remove` and `replace`, returns a function that undoes the change. */
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

/** Number of values and characters in a value. Counting ends above `most`. */
function sizeOf(value: unknown, most: number): number {
  const open = [value];
  let size = 0;
  while (open.length > 0 && size + open.length <= most) {
    const next = open.pop();
    size += typeof next === "string" ? 1 + next.length : 1;
    if (typeof next !== "object" || next === null) continue;
    for (const child of Object.values(next)) open.push(child);
    if (!Array.isArray(next)) for (const key of Object.keys(next)) size += key.length;
  }
  return size + open.length;
}

function unescaped(key: string): string {
  return key.replaceAll("~1", "/").replaceAll("~0", "~");
}
