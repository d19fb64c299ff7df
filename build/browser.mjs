/** The browser's files: the chat with its lazy parts as ES modules, and the loader `/widget.js` as a classic script. */

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, relative } from "node:path";
import { build, transformSync } from "esbuild";
import { attributeOf, initialValue } from "../widget/element/properties.ts";
import { panelTexts } from "../widget/i18n/panel-texts.ts";
import { en } from "../widget/i18n/strings.ts";
import { LAUNCHER } from "../widget/launcher/properties.ts";
import { customElementsManifest } from "./manifest.mjs";

/** Without nesting: older browsers lose declarations that are nested in rules for `:host` and pseudo-elements. */
const minifiedCss = (source) =>
  transformSync(source, { loader: "css", minify: true, supported: { nesting: false } }).code.trim();

/** Style sheets are imported as text. */
const css = {
  name: "css",
  setup({ onLoad }) {
    onLoad({ filter: /\.css$/ }, ({ path }) => ({ contents: minifiedCss(readFileSync(path, "utf8")), loader: "text" }));
  },
};

/** Removes the indentation of templates, which a page does not show. */
const templates = {
  name: "templates",
  setup({ onLoad }) {
    onLoad({ filter: /\/widget\/.*\.ts$/ }, ({ path }) => {
      const source = readFileSync(path, "utf8");
      return { contents: source.includes("html`") ? source.replace(/^ +/gm, "") : source, loader: "ts" };
    });
  },
};

/**
 * The element uses only the lexer of `marked`. The classes that write HTML are used by an instance at the end of the
 * module, in statements that no bundler removes: without these statements esbuild omits the classes.
 */
const lexer = {
  name: "lexer",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]marked\.esm\.js$/ }, ({ path }) => {
      const source = readFileSync(path, "utf8");
      const [end] = /var [\w$]+=new [\w$]+;function (?:(?!class).)*$/s.exec(source) ?? [];
      const names = end?.match(/[\w$]+ as (?:Lexer|Tokenizer)\b/g);
      if (names?.length !== 2) throw new Error(`${path} ends in another way: see build/browser.mjs`);
      return { contents: `${source.slice(0, -end.length)}export{${names}};` };
    });
  },
};

/** The texts that a launcher has before its chat is loaded, by language. */
const [openChat, hidePreview, reload] = [
  { en: panelTexts.openChat },
  { en: panelTexts.hidePreview },
  { en: en.reload },
];
for (const file of readdirSync("widget/i18n/locales")) {
  const { locale } = await import(`../widget/i18n/locales/${file}`);
  openChat[locale.lang] = locale.openChat;
  hidePreview[locale.lang] = locale.hidePreview;
  reload[locale.lang] = locale.reload;
}

/** What the launcher's button needs of the table of its properties: see `launcher.ts`. */
const properties = Object.entries(LAUNCHER).map(([name, row]) => {
  const attribute = attributeOf(name, row);
  if (!attribute) return [name];
  const initial = row.kind === "switch" ? 0 : initialValue(row);
  return attribute === name ? [name, initial] : [name, initial, attribute];
});

/** The parts and slots of its chat that the launcher passes on: the comments of the code name them. */
const { cssParts, slots } = customElementsManifest().modules[0].declarations[0];
const namesOf = (list) => JSON.stringify(list.map(({ name }) => name).join());

// Texts with JSON: esbuild would put an object into a separate chunk, which every other chunk imports.
const textOf = (value) => JSON.stringify(JSON.stringify(value));
const texts = {
  PARLEY_OPEN_CHAT: textOf(openChat),
  PARLEY_RELOAD: textOf(reload),
  PARLEY_LAUNCHER_PROPERTIES: textOf(properties),
  PARLEY_HIDE_PREVIEW: textOf(hidePreview),
  PARLEY_CHAT_PARTS: namesOf(cssParts),
  PARLEY_CHAT_SLOTS: namesOf(slots),
};

const common = {
  bundle: true,
  platform: "browser",
  target: "es2022",
  // A separate file that no comment in the script names: the server names it, and the npm package has none.
  sourcemap: "external",
  // The licences are in LICENSES.txt.
  legalComments: "none",
  charset: "utf8",
  metafile: true,
  loader: { ".woff2": "base64" },
  plugins: [css, templates, lexer],
};

/** Files that are loaded by their address. What they import is in shared chunks. */
const ENTRIES = {
  chat: "widget/chat.ts",
  panel: "widget/launcher/panel.ts",
  page: "widget/page.ts",
};

/**
 * What several lazy parts share, and the chat does not need: as a separate file, each would be requested only when the
 * part has arrived, and the round trip costs more than the bytes.
 */
const SHARED_BY_PARTS = [
  "widget/conversations/idb.ts",
  "widget/i18n/format.ts",
  "widget/markdown/lines.ts",
  "widget/markdown/patch-dom.ts",
  "widget/ui/blocks.ts",
  "widget/ui/controllers/clock.ts",
  "node_modules/lit-html/directive-helpers.js",
];

/** Loaded before the chat, and often instead of it. */
const GREETING = "widget/launcher/greeting.ts";

/** Loaded when other files no longer exist, and so under the same name from every build. */
const RELOAD = "widget/launcher/reload.ts";

/** What the first answer needs, but not an empty chat. */
const TALK = "widget/ui/talk.ts";

/** Applies the owner's settings: the page requests it at once if the agent's owner has set any. */
const OWNER = "widget/element/owner.ts";

/** Stores the first message. */
const DATABASE = "widget/conversations/indexed-db.ts";

/**
 * Builds all files into a folder. Returns the metafile, the scripts, those that an empty chat waits for, and those that
 * a first answer without tools or code needs to be drawn and stored. Files that are loaded later, when the page is
 * idle, for the press of a button, are not among these.
 */
export async function buildBrowserFiles(folder, { minify }) {
  mkdirSync(folder, { recursive: true });
  const define = { ...texts, PARLEY_IN_PACKAGE: "undefined" };
  const { metafile } = await build({
    ...common,
    minify,
    define,
    entryPoints: ENTRIES,
    // Parts are loaded after the chat: what they share with it is in one file, and not in a dozen small ones.
    inject: [ENTRIES.chat, ...SHARED_BY_PARTS],
    outdir: `${folder}/chunks`,
    format: "esm",
    splitting: true,
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
  });
  const eager = (source) => eagerFiles(metafile, fileOf(metafile, source)).map((path) => relative(folder, path));
  const [chat, panel] = [ENTRIES.chat, ENTRIES.panel].map((source) => basename(fileOf(metafile, source)));
  // Built separately: otherwise what they share with the chat would be in the chat's file.
  const alone = { ...common, minify, define };
  const { metafile: greetings } = await build({
    ...alone,
    entryPoints: { greeting: GREETING },
    outdir: `${folder}/chunks`,
    format: "esm",
    entryNames: "[name]-[hash]",
  });
  const greeting = basename(fileOf(greetings, GREETING));
  const { metafile: reloads } = await build({
    ...alone,
    entryPoints: { reload: RELOAD },
    outdir: `${folder}/chunks`,
    format: "esm",
  });
  await build({
    ...alone,
    define: { ...define, PARLEY_CHUNKS: JSON.stringify({ chat, greeting, panel }) },
    entryPoints: ["widget/loader.ts"],
    outfile: `${folder}/widget.js`,
    // esbuild's own `iife` would bring along what turns `import()` into `require`.
    format: "esm",
    // A classic script without global names. A server that renders pages may import it, and has no document.
    // Parley's server replaces the empty object by the owner's settings of the button.
    banner: { js: 'typeof document>"u"||(()=>{"use strict";const PARLEY_BUTTON={};' },
    footer: { js: "})()" },
  });
  writePages(folder, eager(ENTRIES.page), relative(folder, fileOf(metafile, OWNER)));
  const scripts = Object.keys({ ...metafile.outputs, ...greetings.outputs, ...reloads.outputs }).filter((path) =>
    path.endsWith(".js"),
  );
  // The entry of Parley's own page is smaller than the loader of other sites. English is in the chat.
  const toFirstPaint = ["widget.js", ...eager(ENTRIES.chat)];
  return {
    metafile,
    files: ["widget.js", ...scripts.map((path) => relative(folder, path))],
    toFirstPaint,
    toFirstAnswer: [...new Set([...toFirstPaint, ...eager(TALK), ...eager(DATABASE)])],
  };
}

/**
 * Builds the module `parley-agent/widget`. `browser.js` defines the elements while it is evaluated: frameworks read an
 * element's properties right afterwards. `server.js` is for Node, whose tests may have a document: `await` in it would
 * forbid `require`.
 */
export async function buildPackageFiles(folder) {
  await build({
    ...common,
    // Removes what is for the server's files only. Sites minify the rest.
    minifySyntax: true,
    sourcemap: false,
    define: { ...texts, PARLEY_IN_PACKAGE: "true" },
    entryPoints: { browser: "widget/elements.ts" },
    outdir: folder,
    format: "esm",
    splitting: true,
    chunkNames: "[name]-[hash]",
  });
  writeFileSync(
    `${folder}/server.js`,
    'if (typeof document !== "undefined") import("./browser.js").catch(console.error);\n',
  );
}

/** The output file of an entry. */
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
function writePages(folder, [chat, ...shared], owner) {
  const preload = (path, more = "") => `<link rel="modulepreload" href="${path}"${more}>\n    `;
  // The server removes the last one if it is not needed.
  const preloads = [...shared.map((path) => preload(path)), preload(owner, " data-owner")].join("");
  const page = readFileSync("widget/page.html", "utf8")
    .replace(/(?<=<style>)[^<]*(?=<\/style>)/, minifiedCss)
    .replace(/<script src.*<\/script>/, `${preloads}<script type="module" src="${chat}"></script>`);
  writeFileSync(`${folder}/page.html`, page);
  writeFileSync(`${folder}/embed.html`, page.replace("<agent-chat page conversations", "<agent-chat page embed"));
}
