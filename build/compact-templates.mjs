/** White space and comments inside css`` and html`` are text to esbuild: they would go over the wire. */

import { readFile } from "node:fs/promises";
import { transform } from "esbuild";

const cssTemplate = /css`([^`]*)`/g;

/** Our lit looks for no expressions in a comment, or in an element whose content is text, and has not all of the hooks. */
const uncut =
  /html`[^`]*<(?:!--|script\b|style\b|title\b)|[^>\s]\s*<\/textarea>|\b(?:firstUpdated|shouldUpdate|hasChanged|renderBefore)\b/;

/** Minifies what stands in css`` and removes indentation from html``. */
export const compactTemplates = {
  name: "compact-templates",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]widget[\\/].*\.ts$/ }, async ({ path }) => {
      const written = await readFile(path, "utf8");
      if (uncut.test(written.replace(/\/\*[\s\S]*?\*\//g, ""))) {
        throw new Error(`${path} holds what lit-core.mjs leaves lit without: ${uncut}`);
      }
      const source = await minifyCss(written);
      // One attribute per line is for readers of the source.
      const lines = source.replace(/\n\s+(?=[@.?]?[\w-]+=)/g, " ").replace(/\n\s+/g, "\n");
      // White space at a template's ends and before the end of a tag means nothing either.
      const contents = lines
        .replace(/html`\n/g, "html`")
        .replace(/>\n`/g, ">`")
        .replace(/\n>/g, ">");
      return { contents, loader: "ts" };
    });
  },
};

async function minifyCss(source) {
  const rules = [...source.matchAll(cssTemplate)].map(([, css]) => css);
  if (rules.some((css) => /\$\{|\\/.test(css))) {
    throw new Error(
      "a css`` holds an expression or a backslash, which compact-templates cannot minify: use an array of styles",
    );
  }
  const minified = await Promise.all(
    rules.map(async (css) => {
      const { code } = await transform(css, { loader: "css", minify: true });
      return code.trim().replace(/--_[\w-]+:[^;{}]+/g, minifyPrivate);
    }),
  );
  return source.replace(cssTemplate, () => `css\`${minified.shift()}\``);
}

/** A private variable, whose value esbuild leaves as it stands, since a script could read it. */
function minifyPrivate(declaration) {
  return declaration.replace(/([:,(]) /g, "$1").replace(/ \)/g, ")");
}
