/** Where the files of this package are: its sources, or the bundles in `dist/`. */

import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

/** Every bundle lies directly in `dist/`. */
const IS_SOURCE = import.meta.url.endsWith(".ts");

const ROOT = new URL(IS_SOURCE ? "../../" : "../", import.meta.url);

/** URL of a module that is loaded on its own. `source` is its path in the package. */
export function ownModule(source: `server/${string}.ts`): URL {
  return new URL(IS_SOURCE ? source : `dist/${basename(source, ".ts")}.js`, ROOT);
}

/** URL of the code of a thread. Threads do not inherit `tsx`, so a thread that runs from its source loads it first. */
export function ownThread(source: `server/${string}.ts`): URL {
  const { href } = ownModule(source);
  if (!IS_SOURCE) return new URL(href);
  const tsx = import.meta.resolve("tsx/esm/api");
  const code = `import { register } from ${JSON.stringify(tsx)}; register(); await import(${JSON.stringify(href)});`;
  return new URL(`data:text/javascript,${encodeURIComponent(code)}`);
}

/** The built chat page and element. */
export const publicFolder = fileURLToPath(new URL("dist/public", ROOT));

export function readVersion(): string {
  return JSON.parse(readFileSync(new URL("package.json", ROOT), "utf8")).version;
}
