/** What Node can read of a project by itself, and what is a module where nobody says so. */

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The name by which projects import this package. */
export const PACKAGE = "parley-agent";

const PLAIN = /^(?!file:)|\.(?:[cm]?js|node)(?:[?#]|$)/;

/** Whether Node loads what is at `url` without help. JSON it imports only with an attribute, which `tsx` does not ask for. */
export function isPlain(url: string, isRequired: boolean): boolean {
  return PLAIN.test(url) || (isRequired && url.endsWith(".json"));
}

/**
 * Whether `tsx` may find what Node did not: a file without its extension, a folder, a `.js` that is a `.ts`. Packages mean
 * what Node reads.
 */
export function mayBeSource(specifier: string, parentUrl: string | undefined): boolean {
  if (parentUrl === undefined || parentUrl.includes("/node_modules/")) return false;
  return /^(?:\.{0,2}\/|\.{1,2}$|file:)/.test(specifier);
}

/** What the format of a project's file is judged by. */
export interface ProjectKind {
  /** URL of its folder, with a slash at the end. */
  readonly project: string;
  /** Whether `tsx` was there before its first file. */
  readonly withTsx: boolean;
}

/**
 * The format of a file, where Node and tsx guess wrong. Without a package.json that says otherwise they take CommonJS, which
 * refuses top-level `await`: in the project a .ts is a module, and a .js that imports or exports. Elsewhere tsx guesses by
 * how a .ts is imported, and of JavaScript that was loaded before it came, it cannot know that.
 */
export function formatOf(
  url: string,
  { project, withTsx }: ProjectKind,
): "module" | "commonjs" | undefined {
  if (!url.startsWith("file:") || url.includes("/node_modules/")) return undefined;
  const { pathname } = new URL(url);
  const isOwn = url.startsWith(project);
  if (pathname.endsWith(".js")) return isOwn && holdsModule(url) ? "module" : undefined;
  if (!/\.tsx?$/.test(pathname)) return undefined;
  if (isOwn && pathname.endsWith(".ts")) return "module";
  if (withTsx) return undefined;
  return packageType(url) === "commonjs" ? "commonjs" : "module";
}

function holdsModule(url: string): boolean {
  const { pathname } = new URL(url);
  return /^\s*(?:import|export)\b/m.test(readFileSync(new URL(pathname, url), "utf8"));
}

/** `type` of the nearest package.json. */
function packageType(url: string): unknown {
  for (let folder = new URL("./", url), above: URL; ; folder = above) {
    const file = fileURLToPath(new URL("package.json", folder));
    if (existsSync(file)) return JSON.parse(readFileSync(file, "utf8")).type;
    above = new URL("../", folder);
    if (above.href === folder.href) return undefined;
  }
}
