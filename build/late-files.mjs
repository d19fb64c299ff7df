/** Keeps what the command loads later in one file each, and the rest of it in one. */

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, resolve } from "node:path";
import { directBuiltins } from "./direct-builtins.mjs";

/** What is loaded later calls the rest by this name. */
const WHOLE = "the-whole-command";

/**
 * esbuild makes a file for each set of modules that are needed by the same others, and so would cut the command
 * into a dozen files that every start must read. What is loaded later is only ever loaded by what is in `root`, so it is given
 * an import of that, which is there already.
 */
export function lateFiles(root) {
  const whole = resolve(root);
  const late = new Set();
  return {
    name: "late-files",
    setup(build) {
      build.initialOptions.metafile = true;
      build.onStart(() => late.clear());
      build.onResolve({ filter: /^\./ }, ({ path, kind, resolveDir }) => {
        const file = resolve(resolveDir, path);
        if (kind === "dynamic-import" && file !== whole) late.add(file);
        return undefined;
      });
      build.onResolve({ filter: new RegExp(`^${WHOLE}$`) }, () => ({ path: whole }));
      build.onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const source = directBuiltins(readFileSync(path, "utf8"));
        const contents = late.has(path) ? `${source}\nimport "${WHOLE}";\n` : source;
        return { contents, loader: "ts" };
      });
      build.onEnd(({ metafile }) => metafile && passBy(metafile.outputs, root));
    },
  };
}

/** `root` is now a file that only says where its code is: who asks for it is sent there. */
function passBy(outputs, root) {
  const find = (isIt) => Object.keys(outputs).find((path) => isIt(outputs[path]));
  const sign = find(({ entryPoint }) => entryPoint === root);
  const code = find(({ inputs, entryPoint }) => entryPoint === undefined && root in inputs);
  const asks = find(({ imports }) => imports.some(({ path }) => path === sign));
  if (sign === undefined || code === undefined || asks === undefined) {
    throw new Error(`${root} is built in a new way: see build/late-files.mjs.`);
  }
  const missing = outputs[sign].exports.filter((name) => !outputs[code].exports.includes(name));
  if (missing.length > 0) throw new Error(`${code} does not export ${missing.join(", ")}.`);
  const text = readFileSync(asks, "utf8");
  writeFileSync(asks, text.replace(basename(sign), basename(code)));
  for (const path of [sign, `${sign}.map`]) rmSync(path);
}
