/** White space and comments inside css`` and html`` are text to esbuild: they would go over the wire. */

import { readdirSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { transform } from "esbuild";

const cssTemplate = /css`([^`]*)`/g;

/** Our lit looks for no expressions in a comment, or in an element whose content is text, and has not all of the hooks. */
const uncut =
  /html`[^`]*<(?:!--|script\b|style\b|title\b)|[^>\s]\s*<\/textarea>|\b(?:firstUpdated|shouldUpdate|hasChanged|renderBefore)\b/;

/** Those of code keep their names: `highlight.styles.ts` makes rules of them. */
const privateName = /--_(?!code-)[a-z][\w-]*/g;

/** Our private variables are short on the wire, the same in the script and in its chunks: the more often read, the shorter. */
function shortNames() {
  const counts = new Map();
  for (const path of readdirSync("widget", { recursive: true }).filter((it) => it.endsWith(".ts"))) {
    for (const [name] of readFileSync(`widget/${path}`, "utf8").matchAll(privateName)) {
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  const sorted = [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  return new Map(sorted.map(([name], index) => [name, `--_${index.toString(36)}`]));
}

/** Minifies what stands in css`` and removes indentation from html``. */
export const compactTemplates = {
  name: "compact-templates",
  setup({ onLoad }) {
    const short = shortNames();
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
        .replace(/\n>/g, ">")
        .replace(privateName, (name) => short.get(name));
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
      return code
        .trim()
        .replace(/--_[\w-]+:[^;{}]+/g, minifyPrivate)
        .replace(/currentcolor/gi, "currentColor");
    }),
  );
  return source.replace(cssTemplate, () => `css\`${minified.shift()}\``);
}

/** A private variable, whose value esbuild leaves as it stands, since a script could read it. */
function minifyPrivate(declaration) {
  return declaration.replace(/([:,(]) /g, "$1").replace(/ \)/g, ")");
}
