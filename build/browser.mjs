/** The browser's files: the chat with its lazy parts as ES modules, and the loader `/widget.js` as a classic script. */

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, relative } from "node:path";
import { build, transformSync } from "esbuild";
import { en } from "../widget/i18n/strings.ts";

const minifiedCss = (source) => transformSync(source, { loader: "css", minify: true }).code.trim();

/** Style sheets are imported as text. */
const css = {
  name: "css",
  setup({ onLoad }) {
    onLoad({ filter: /\.css$/ }, ({ path }) => ({ contents: minifiedCss(readFileSync(path, "utf8")), loader: "text" }));
  },
};

/** What the launcher's button is called, by language: the launcher has no other text. */
const openChat = { en: en.openChat };
for (const file of readdirSync("widget/i18n/locales")) {
  const { locale } = await import(`../widget/i18n/locales/${file}`);
  openChat[locale.lang] = locale.openChat;
}

const common = {
  bundle: true,
  platform: "browser",
  target: "es2022",
  // Apart, without a comment in the script that names it: the server does, and the npm package has none.
  sourcemap: "external",
  // The licences are in LICENSES.txt.
  legalComments: "none",
  charset: "utf8",
  metafile: true,
  plugins: [css],
};

/** What is loaded by its address. What they import is in chunks that they share. */
const ENTRIES = {
  chat: "widget/chat.ts",
  panel: "widget/launcher/panel.ts",
  page: "widget/page.ts",
  elements: "widget/elements.ts",
};

/** Builds all of it into a folder. Answers what it is made of, the scripts in it, and which of them are loaded to chat. */
export async function buildBrowserFiles(folder, { minify }) {
  mkdirSync(folder, { recursive: true });
  // A text with JSON: esbuild would put an object into a chunk of its own, which every other chunk imports.
  const define = { PARLEY_OPEN_CHAT: JSON.stringify(JSON.stringify(openChat)) };
  const { metafile } = await build({
    ...common,
    minify,
    define,
    entryPoints: ENTRIES,
    // No part is loaded before the chat: so what they share with it is in one file, and not in a dozen small ones.
    inject: [ENTRIES.chat],
    outdir: `${folder}/chunks`,
    format: "esm",
    splitting: true,
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
  });
  const eager = (source) => eagerFiles(metafile, fileOf(metafile, source)).map((path) => relative(folder, path));
  const [chat, panel] = [ENTRIES.chat, ENTRIES.panel].map((source) => basename(fileOf(metafile, source)));
  const chunks = { chat, panel };
  await build({
    ...common,
    minify,
    define: { ...define, PARLEY_CHUNKS: JSON.stringify(chunks) },
    entryPoints: ["widget/loader.ts"],
    outfile: `${folder}/widget.js`,
    // esbuild's own `iife` would bring along what turns `import()` into `require`.
    format: "esm",
    // A classic script whose names are no globals. A server that renders pages may import it, and has no document.
    banner: { js: 'typeof document>"u"||(()=>{"use strict";' },
    footer: { js: "})()" },
  });
  writePages(folder, eager(ENTRIES.page));
  // What bundlers find. On a server, which has no document, it does nothing.
  const [elements] = eager(ENTRIES.elements);
  writeFileSync(`${folder}/elements.js`, `if (typeof document !== "undefined") import("./${elements}");\n`);
  const scripts = Object.keys(metafile.outputs).filter((path) => path.endsWith(".js"));
  return {
    metafile,
    files: ["widget.js", ...scripts.map((path) => relative(folder, path))],
    toChat: ["widget.js", ...eager(ENTRIES.chat)],
  };
}

/** The output that an entry has become. */
function fileOf({ outputs }, entry) {
  const found = Object.entries(outputs).find(([, { entryPoint }]) => entryPoint === entry);
  if (found === undefined) throw new Error(`nothing was built from ${entry}`);
  return found[0];
}

/** A file and all that it imports statically. */
function eagerFiles({ outputs }, file) {
  const found = new Set([file]);
  for (const known of found) {
    for (const { path, kind } of outputs[known].imports) if (kind === "import-statement") found.add(path);
  }
  return [...found];
}

/** Addresses are relative: a proxy may show the page below a path that the server does not know. */
function writePages(folder, [chat, ...shared]) {
  const preloads = shared.map((path) => `<link rel="modulepreload" href="${path}">\n    `).join("");
  const page = readFileSync("widget/page.html", "utf8")
    .replace(/(?<=<style>)[^<]*(?=<\/style>)/, minifiedCss)
    .replace(/<script .*<\/script>/, `${preloads}<script type="module" src="${chat}"></script>`);
  writeFileSync(`${folder}/page.html`, page);
  writeFileSync(`${folder}/embed.html`, page.replace("<agent-chat page", "<agent-chat page embed"));
}
