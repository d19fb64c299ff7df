import module from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/**
 * Imports a module of a project that lives anywhere on disk: TypeScript by `tsx`, and `parley-agent`
 * resolved to this very package, so that the project needs no `node_modules` of its own.
 */
export async function importModule(file: string): Promise<{ default?: unknown }> {
  const { register } = await import("tsx/esm/api");
  register();
  module.register(`data:text/javascript,${encodeURIComponent(HOOKS)}`, {
    data: { project: `${pathToFileURL(dirname(file)).href}/`, packageEntry: packageEntry() },
  });
  return import(pathToFileURL(file).href);
}

/** In the bundle the entry lies beside it; in the sources it is a folder up. */
function packageEntry(): string {
  const here = dirname(fileURLToPath(import.meta.url));
  const fromSource = import.meta.url.endsWith(".ts");
  return pathToFileURL(join(here, fromSource ? "../parley-agent.ts" : "parley-agent.js")).href;
}

/**
 * Runs in Node's hooks thread, before `tsx` (the last one registered is asked first). Where no package.json
 * says what a project's files are, Node and tsx guess CommonJS, which refuses top-level await: here a .ts is
 * an ES module, and so is a .js that imports or exports.
 */
const HOOKS = `
import { readFile } from "node:fs/promises";
let project, packageEntry;
export function initialize(data) {
  ({ project, packageEntry } = data);
}
export async function resolve(specifier, context, nextResolve) {
  if (specifier === "parley-agent") {
    return { url: packageEntry, format: "module", shortCircuit: true };
  }
  const resolved = await nextResolve(specifier, context);
  return (await isModule(resolved.url)) ? { ...resolved, format: "module" } : resolved;
}
async function isModule(url) {
  if (!url.startsWith(project) || url.includes("/node_modules/")) return false;
  const { pathname } = new URL(url);
  if (pathname.endsWith(".ts")) return true;
  if (!pathname.endsWith(".js")) return false;
  return /^\\s*(?:import|export)\\b/m.test(await readFile(new URL(pathname, url), "utf8"));
}
`;
