/** The part of a test context, or of `node:test`, that clean-up needs. */
export interface TestEnd {
  after(close: () => Promise<void>): void;
}

const opened = new WeakMap<TestEnd, (() => unknown)[]>();

/**
 * Runs clean-ups at the end of a test in reverse order. `t.after` runs them in order of registration, and a page that
 * is open when its server closes logs errors.
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

/** Closes one after the other. After a failure the rest is still closed; then the first failure is thrown. */
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
