type Entries = Readonly<Record<string, unknown>>;

/**
 * Functions and texts by name, as a page sets them: `renderers`, `toolRenderers`, `strings`. Frameworks make a new
 * object with new functions on each render. So `table` becomes another object only when a name or a text has changed,
 * and its functions call those that were set last.
 */
export class PageTable<Table extends object> {
  table = {} as Table;
  #given: Entries = {};

  /** Returns whether `table` is another object now. */
  set(given: Table | null | undefined): boolean {
    const before = this.#given;
    this.#given = { ...given } as Entries;
    if (hasSameEntries(before, this.#given, isSameEntry)) return false;
    const entries = Object.entries(this.#given).map(([name, entry]) => [
      name,
      typeof entry === "function" ? this.#latest(name) : entry,
    ]);
    this.table = Object.fromEntries(entries) as Table;
    return true;
  }

  #latest(name: string): (...args: unknown[]) => unknown {
    return (...args) => Reflect.apply(this.#given[name] as () => unknown, undefined, args);
  }
}

/** The same for a list of such objects: `messageActions`. */
export class PageList<Item extends object> {
  list: readonly Item[] = [];
  #tables: readonly PageTable<Item>[] = [];

  set(given: readonly Item[] | null | undefined): void {
    const items = Array.isArray(given) ? given : [];
    const tables = items.map((_, index) => this.#tables[index] ?? new PageTable<Item>());
    const changed = tables.filter((table, index) => table.set(items[index]));
    if (changed.length > 0 || tables.length !== this.#tables.length) this.list = tables.map(({ table }) => table);
    this.#tables = tables;
  }
}

const isSameEntry = (a: unknown, b: unknown) => a === b || (typeof a === "function" && typeof b === "function");

export function hasSameEntries(a: object, b: object, isSame: (a: unknown, b: unknown) => boolean = Object.is): boolean {
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length && names.every((name) => isSame(Reflect.get(a, name), Reflect.get(b, name)))
  );
}
