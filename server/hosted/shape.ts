import type { Answer } from "./answer.ts";

/** A kind of events that agents stream, recognised without the package that makes them. */
export interface Shape {
  /** Named in the log. */
  readonly name: string;
  /** Whether an item can only be of this shape. */
  fits(item: unknown): boolean;
  /** One reader reads one answer. */
  reader(answer: Answer): ShapeReader;
}

export interface ShapeReader {
  /** Gives whether the item is known. @throws ApiError for a failure that the item reports */
  read(item: unknown, answer: Answer): boolean;
  /** The answer is over. `sources` are the objects that had its streams. */
  end?(answer: Answer, sources: readonly Record<string, unknown>[]): void;
}

/** What to do with an item of each type; its keys are all types that are known. */
export type Handlers = Readonly<Record<string, (item: Record<string, unknown>, answer: Answer) => void>>;

/** Types that say the same, as rows of a table. */
export function alike(types: readonly string[], handler: Handlers[string]): Handlers {
  return Object.fromEntries(types.map((type) => [type, handler]));
}

/** Types that say nothing to clients, as rows of a table. */
export function ignored(...types: string[]): Handlers {
  return alike(types, () => {});
}

/** Reads an item by its type. Gives whether it is known. */
export function readByType(handlers: Handlers, item: unknown, answer: Answer): boolean {
  const { type } = item as { type: string };
  if (!Object.hasOwn(handlers, type)) return false;
  handlers[type]?.(item as Record<string, unknown>, answer);
  return true;
}
