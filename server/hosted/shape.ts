import type { Answer } from "./answer.ts";

/** A format of streamed events, recognised without the package that makes them. */
export interface Shape {
  /** Named in the log. */
  readonly name: string;
  /** Whether an item can only be of this shape. */
  fits(item: unknown): boolean;
  /** One reader reads one answer. */
  reader(answer: Answer): ShapeReader;
}

export interface ShapeReader {
  /** Returns whether the item is known. @throws ApiError for a failure that the item reports */
  read(item: unknown, answer: Answer): boolean;
  /** Called when the answer has ended. `sources` are the objects that contained its streams. */
  end?(answer: Answer, sources: readonly Record<string, unknown>[]): void;
}

/** What to do with an item of each type. The keys are all known types. */
export type Handlers = Readonly<Record<string, (item: Record<string, unknown>, answer: Answer) => void>>;

/** Table rows for types that mean the same. */
export function alike(types: readonly string[], handler: Handlers[string]): Handlers {
  return Object.fromEntries(types.map((type) => [type, handler]));
}

/** Table rows for types that mean nothing to clients. */
export function ignored(...types: string[]): Handlers {
  return alike(types, () => {});
}

/** Reads an item by its type. Returns whether the type is known. */
export function readByType(handlers: Handlers, item: unknown, answer: Answer): boolean {
  const { type } = item as { type: string };
  if (!Object.hasOwn(handlers, type)) return false;
  handlers[type]?.(item as Record<string, unknown>, answer);
  return true;
}
