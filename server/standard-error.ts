/** Milliseconds after the start: to make the stream takes a part of one. */
const GUARD_MS = 250;

let guarded = false;

/** Standard error. Whoever read it may be gone: the conversations are not. */
export function standardError(): NodeJS.WriteStream {
  if (!guarded) process.stderr.on("error", () => {});
  guarded = true;
  return process.stderr;
}

/** Sees to it that nothing which writes there, such as a tool, ends the process. */
export function guardStandardError(): void {
  setTimeout(standardError, GUARD_MS).unref();
}
