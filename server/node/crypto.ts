let loaded: typeof import("node:crypto") | undefined;

/** `node:crypto`, loaded by the first who asks for it. Not imported: a start would wait for it. */
export function crypto(): typeof import("node:crypto") {
  loaded ??= process.getBuiltinModule("node:crypto");
  return loaded;
}

/** Whether nobody has to wait for it any more. */
export function isCryptoLoaded(): boolean {
  return loaded !== undefined;
}
