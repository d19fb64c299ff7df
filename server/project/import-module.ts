import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** The name by which projects import this package. */
const PACKAGE = "parley-agent";

/**
 * Imports a module of a project that lives anywhere on disk: TypeScript or JavaScript, an ES module or CommonJS, whatever a
 * package.json nearby says. `parley-agent` is this very package there, so that the project needs no `node_modules`.
 */
export async function importModule(file: string): Promise<{ default?: unknown }> {
  const source = readFileSync(file, "utf8");
  if (file.endsWith(".mjs") && importsNothing(source)) return import(pathToFileURL(file).href);
  // A start without a project, or with so plain a one, does not wait for it.
  const { createJiti } = await import("jiti");
  // Errors name the lines of the project's TypeScript.
  process.setSourceMapsEnabled(true);
  const jiti = createJiti(file, {
    alias: { [PACKAGE]: built(PACKAGE) },
    fsCache: cacheOf(dirname(file)),
    sourceMaps: true,
    interopDefault: false,
  });
  // Its `import` gives JavaScript to Node and, if the module throws, runs it a second time.
  const exported = (await jiti.evalModule(source, {
    filename: file,
    async: true,
    forceTranspile: true,
  })) as { default?: unknown; __esModule?: true };
  const isEmpty = Object.keys(exported).length === 0;
  if (exported.__esModule || exported.default !== undefined || isEmpty) return exported;
  // CommonJS: what it exports is the agent.
  return { default: exported };
}

/** What has no word of an import needs no help with one, also not in a tool later. */
function importsNothing(source: string): boolean {
  return !/\b(?:import|require)\b/.test(source);
}

/**
 * Where `jiti` keeps compiled files between starts; it checks that it can write there. Never the folder for temporary
 * files: other users can write there, too, and what it finds it runs.
 */
function cacheOf(folder: string): string | false {
  const packages = join(folder, "node_modules");
  return existsSync(packages) && join(packages, ".cache/jiti");
}

/** Path of a built file. The bundle lies beside it; the sources are elsewhere. */
function built(name: string): string {
  const here = dirname(fileURLToPath(import.meta.url));
  const folder = import.meta.url.endsWith(".ts") ? join(here, "../../dist") : here;
  return join(folder, `${name}.js`);
}
