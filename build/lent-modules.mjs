/**
 * Chunks that draw use modules that `/widget.js` has already: `lit`, the texts, the icons. In such a chunk their imports become
 * reads of `lent`, the argument of the function that the chunk exports; `widget/lent.ts` says what it holds.
 */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";

/** The modules, by their names in `lent`. */
const modules = {
  lit: "lit",
  guard: "lit/directives/guard.js",
  announcer: "widget/announcer.ts",
  checks: "widget/attribute-checks.ts",
  storage: "widget/storage.ts",
  strings: "widget/strings.ts",
  header: "widget/views/header.ts",
  icons: "widget/views/icons.ts",
  toolStatus: "widget/views/tool-status.ts",
};

/** Puts `lent` in place of the modules that the script lends. */
export const lentModules = {
  name: "lent-modules",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^lit\b|\.ts$/ }, ({ path, resolveDir, kind, importer }) => {
      if (kind !== "import-statement") return undefined;
      const found = Object.entries(modules).find(
        ([, module]) => module === path || resolve(module) === resolve(resolveDir, path),
      );
      return found && { path: found[0], namespace: "lent", errors: missing(found[0], importer) };
    });
    // CommonJS, so that each use reads what is there at that moment: another language, for one.
    onLoad({ filter: /.*/, namespace: "lent" }, ({ path }) => ({
      contents: `module.exports = lent.${path}`,
    }));
  },
};

/** Of the icons the script lends only those that chunks draw: a missing one would be a hole in the screen. */
function missing(module, importer) {
  if (module !== "icons") return [];
  const [, lent = ""] = /\bicons: \{([^}]*)\}/.exec(readFileSync("widget/lent.ts", "utf8")) ?? [];
  const names = lent.split(",").map((name) => name.trim());
  const read = [...readFileSync(importer, "utf8").matchAll(/\bicons\.(\w+)|\{ (\w+) \} from "\.\/icons/g)];
  return read
    .map(([, member, imported]) => member ?? imported)
    .filter((name) => name !== "ts" && !names.includes(name))
    .map((name) => ({
      text: `widget/lent.ts does not lend the icon ${name}, which ${importer} draws`,
    }));
}

/** Makes a chunk one function of what it is lent. */
export const asFunction = {
  format: "iife",
  globalName: "chunk",
  banner: { js: "export default function (lent) {" },
  footer: { js: "return chunk }" },
};
