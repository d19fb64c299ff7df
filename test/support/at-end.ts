/** What a test, or a file of tests, gives to whoever opens something for it. */
export interface TestEnd {
  after(close: () => Promise<void>): void;
}

const opened = new WeakMap<TestEnd, (() => unknown)[]>();

/**
 * Closes something at the end of a test, what was opened last first: `t.after` goes the other way, and a page that is
 * still there when its server goes complains of it.
 */
export function atEnd(t: TestEnd, close: () => unknown): void {
  const known = opened.get(t);
  if (known !== undefined) {
    known.push(close);
    return;
  }
  const all = [close];
  opened.set(t, all);
  t.after(() => closeAll(all.reverse()));
}

/** Closes one after the other. What fails keeps nothing else open; the first failure is thrown in the end. */
export async function closeAll(closers: Iterable<() => unknown>): Promise<void> {
  const failures: unknown[] = [];
  for (const close of closers) {
    try {
      await close();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

/** Sets variables of this process until the test is over. */
export function setEnvironment(t: TestEnd, values: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(values)) {
    const before = process.env[name];
    process.env[name] = value;
    atEnd(t, () => {
      if (before === undefined) delete process.env[name];
      else process.env[name] = before;
    });
  }
}
