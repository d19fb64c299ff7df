/** Standard output and standard error. Whoever read them may be gone: the conversations are not. */

/**
 * Sees to it that nothing which writes there, such as a tool, ends the process. A stream is guarded when it is made, by the
 * first who asks for it: a start would wait for both.
 */
export function guardStandardStreams(): void {
  for (const name of ["stdout", "stderr"] as const) {
    const maker = Object.getOwnPropertyDescriptor(process, name);
    if (!maker?.get) {
      // A preload has put a stream of its own in place of it, which is made.
      process[name].on("error", () => {});
      continue;
    }
    Object.defineProperty(process, name, {
      ...maker,
      get() {
        Object.defineProperty(process, name, maker);
        return process[name].on("error", () => {});
      },
    });
  }
}
