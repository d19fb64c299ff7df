import { accessSync, constants } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The name by which projects import this package. */
const PACKAGE = "parley-agent";

/**
 * Imports a module of a project that lives anywhere on disk: TypeScript or JavaScript, an ES module or CommonJS, whatever a
 * package.json nearby says. `parley-agent` is this very package there, so that the project needs no `node_modules`.
 */
export async function importModule(file: string): Promise<{ default?: unknown }> {
  // Only a project needs it: the demo agent starts without it.
  const { createJiti } = await import("jiti");
  // Errors name the lines of the project's TypeScript.
  process.setSourceMapsEnabled(true);
  const jiti = createJiti(file, {
    alias: { [PACKAGE]: built(PACKAGE) },
    fsCache: canWriteTemporaryFiles(),
    sourceMaps: true,
    interopDefault: false,
  });
  const exported = await jiti.import<{ default?: unknown; __esModule?: true }>(file);
  const isCommonJs = exported.default === undefined && exported.__esModule === undefined;
  return isCommonJs ? { default: exported } : exported;
}

/** `jiti` keeps what it compiled in the folder for temporary files. A container's may be read-only. */
function canWriteTemporaryFiles(): boolean {
  try {
    accessSync(join(tmpdir(), "/"), constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Path of a built file. The bundle lies beside it; the sources are elsewhere. */
function built(name: string): string {
  const here = dirname(fileURLToPath(import.meta.url));
  const folder = import.meta.url.endsWith(".ts") ? join(here, "../../dist") : here;
  return join(folder, `${name}.js`);
}
