import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import module from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { HookSettings } from "./project-hooks.ts";
import { hasSyncHooks, registerSyncHooks, registerTsx } from "./sync-hooks.ts";

/**
 * Imports a module of a project that lives anywhere on disk: TypeScript by `tsx`, and `parley-agent`
 * resolved to this very package, so that the project needs no `node_modules` of its own. `tsx` takes as long to load as
 * the rest of a start, so it comes with the first file that Node cannot read by itself.
 */
export async function importModule(file: string): Promise<{ default?: unknown }> {
  const { href } = pathToFileURL(file);
  if (importsNothing(file)) return import(href);
  const folder = dirname(file);
  const withTsx = /ts$/.test(file) || existsSync(join(folder, "tsconfig.json"));
  spareTsxItsCache();
  if (withTsx && hasSyncHooks()) registerTsx();
  else if (withTsx) (await import("tsx/esm/api")).register();
  const settings = {
    project: `${pathToFileURL(folder).href}/`,
    packageEntry: built("parley-agent"),
    withTsx,
  };
  if (hasSyncHooks()) registerSyncHooks(settings);
  else registerInThread(settings);
  return import(href);
}

/**
 * `tsx` keeps what it compiled in the folder for temporary files, and would fail where that cannot be written, as in a
 * container whose files are read-only.
 */
function spareTsxItsCache(): void {
  try {
    accessSync(join(process.getBuiltinModule("node:os").tmpdir(), "/"), constants.W_OK);
  } catch {
    process.env.TSX_DISABLE_CACHE = "1";
  }
}

/** What has no word of an import cannot need help with one: a plain object, for one. */
function importsNothing(file: string): boolean {
  return file.endsWith(".mjs") && !/\b(?:import|require)\b/.test(readFileSync(file, "utf8"));
}

function registerInThread(data: HookSettings): void {
  // Where TypeScript comes late, this thread cannot be told before its code is there.
  process.setSourceMapsEnabled(true);
  module.register(built("project-hooks"), { data });
}

/** URL of a built file. The bundle lies beside it; the sources are elsewhere. */
function built(name: string): string {
  const here = dirname(fileURLToPath(import.meta.url));
  const folder = import.meta.url.endsWith(".ts") ? join(here, "../../dist") : here;
  return pathToFileURL(join(folder, `${name}.js`)).href;
}
