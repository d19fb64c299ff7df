/**
 * Chunks that draw use modules that `/widget.js` has already: `lit`, the texts, the icons. In such a chunk their imports become
 * reads of `lent`, the argument of the function that the chunk exports; `widget/lent.ts` says what it holds.
 */

import { resolve } from "node:path";

const modules = [
  "lit",
  "lit/directives/guard.js",
  "widget/strings.ts",
  "widget/views/header.ts",
  "widget/views/icons.ts",
  "widget/views/tool-status.ts",
];

/** Puts `lent` in place of the modules that the script lends. */
export const lentModules = {
  name: "lent-modules",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^lit\b|\.ts$/ }, ({ path, resolveDir, kind }) => {
      if (kind !== "import-statement") return undefined;
      const found = modules.find(
        (name) => name === path || resolve(name) === resolve(resolveDir, path),
      );
      return found && { path: found, namespace: "lent" };
    });
    // CommonJS, so that each use reads what is there at that moment: another language, for one.
    onLoad({ filter: /.*/, namespace: "lent" }, ({ path }) => ({
      contents: `module.exports = lent[${JSON.stringify(path)}]`,
    }));
  },
};

/** Makes a chunk one function of what it is lent. */
export const asFunction = {
  format: "iife",
  globalName: "chunk",
  banner: { js: "export default function (lent) {" },
  footer: { js: "return chunk }" },
};
