/** Builds dist/: the command, the package's entry for agent projects, and the browser's files. */

import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { build, context, transformSync } from "esbuild";
import { buildChunks, chunkBudgets, chunkSource, LOCALES, sourcesOf } from "./build/chunks.mjs";
import { clientErrors } from "./build/client-errors.mjs";
import { compactTemplates } from "./build/compact-templates.mjs";
import { lateFiles } from "./build/late-files.mjs";
import { LAUNCHER_BUDGET_GZIP_BYTES, launcherScript } from "./build/launcher-script.mjs";
import { litCoreOnly } from "./build/lit-core.mjs";
import { customElementsManifest } from "./build/manifest.mjs";
import { markedLexerOnly } from "./build/marked-lexer.mjs";
import { compress, minifyAgain } from "./build/minify.mjs";
import { giveShortNames, shortNames } from "./build/short-names.mjs";

/** All that a page loads to chat: the most that `/widget.js` may weigh on the wire. The build fails above it. */
const WIDGET_BUDGET_GZIP_BYTES = 64_000;

const CHUNKS = "dist/public/chunks";

const watching = process.argv.includes("--watch");
const { version } = JSON.parse(readFileSync("package.json", "utf8"));
const define = { PARLEY_VERSION: JSON.stringify(version) };

/** Packages stay outside: they are loaded on first need, and their licences travel with them. */
const node = {
  outdir: "dist",
  bundle: true,
  platform: "node",
  target: "node20",
  format: "esm",
  packages: "external",
  sourcemap: true,
  define,
};

/**
 * In parts: what it imports while it runs is a file of its own, which is read when it is needed. Without indentation, which
 * a start would read, too, but with all names and in lines: a stack trace is to tell where it was.
 */
const command = {
  ...node,
  minifyWhitespace: true,
  lineLimit: 120,
  plugins: [lateFiles("server/commands.ts")],
  entryPoints: { cli: "cli.ts" },
  splitting: true,
  chunkNames: "cli-[name]-[hash]",
};

/** Whole, because each is loaded by itself. */
const alone = {
  ...node,
  entryPoints: {
    "parley-agent": "server/parley-agent.ts",
    "parse-worker": "server/routes/parse-worker.ts",
  },
};

/**
 * gzip looks back 32 kB and no further, so what resembles each other stands together: Markdown, then the element with
 * its styles next to the launcher's, what reads events, views, the client, and the socket (1.4 kB on the wire; found by
 * trying). A module that is imported first stands first.
 */
const widgetOrder = [
  "page-language.ts",
  "markdown/markdown-lexer.ts",
  "markdown/markdown-directive.ts",
  "chat-element.ts",
  "transport/parse-event.ts",
  "carried-run.ts",
  "views/message.ts",
  "chat-client.ts",
  "scroll-follower.ts",
  "composer.ts",
  "agent-chat.ts",
  "embed.ts",
  "transport/socket-transport.ts",
];

/** A classic script, so that a plain <script src> works on any site. */
const script = {
  bundle: true,
  platform: "browser",
  target: "es2022",
  format: "iife",
  // A server that renders pages may import it, and has no document.
  banner: { js: 'typeof document>"u"||' },
  minify: !watching,
  ...shortNames,
  legalComments: "linked",
  sourcemap: watching ? "inline" : false,
  metafile: true,
};

const browser = {
  ...script,
  stdin: {
    contents: widgetOrder.map((path) => `import "./${path}";`).join("\n"),
    resolveDir: "widget",
  },
  outfile: "dist/public/widget.js",
  plugins: watching ? [] : [compactTemplates, clientErrors, litCoreOnly, markedLexerOnly],
};

function pages() {
  const written = readFileSync("widget/page.html", "utf8");
  const page = written.replace(/(?<=<style>)[^<]*(?=<\/style>)/, (style) =>
    transformSync(style, { loader: "css", minify: true }).code.trim(),
  );
  writeFileSync("dist/public/page.html", page);
  writeFileSync("dist/public/embed.html", page.replace("<agent-chat page", "<agent-chat page embed"));
}

/** Prints what each file weighs, and fails the build when one is over its budget. */
function weigh(path, budget) {
  const size = compress(path);
  const kilobytes = (count) => `${(count / 1000).toFixed(1)} kB`;
  const name = path.slice("dist/public/".length);
  console.log(
    `${name}: ${kilobytes(size.bytes)}, gzip ${kilobytes(size.gzip)} of ${kilobytes(budget)} allowed, ${(budget - size.gzip).toLocaleString("en")} bytes left, brotli ${kilobytes(size.brotli)}.`,
  );
  if (size.gzip <= budget) return;
  console.error(`${name} is over its budget: make it smaller, or split off what is needed later.`);
  process.exitCode = 1;
}

/** What is in `/widget.js` is given to a chunk as an argument: a second copy would be loaded and run for nothing. */
function refuseCopies(chunkSources, widgetSources) {
  const twice = chunkSources.filter((source) => widgetSources.includes(source));
  if (twice.length === 0) return;
  console.error(`Both a chunk and widget.js hold ${twice.join(", ")}: pass what the chunk needs.`);
  process.exitCode = 1;
}

rmSync("dist", { recursive: true, force: true });
mkdirSync("dist/public", { recursive: true });
// Node asks it before each file whether that is a module: shorter than the one above, and nearer.
writeFileSync("dist/package.json", JSON.stringify({ type: "module" }));
pages();
const manifest = customElementsManifest();
writeFileSync("dist/custom-elements.json", JSON.stringify(manifest, null, 2));
browser.mangleCache = await giveShortNames([
  ...widgetOrder.map((path) => `widget/${path}`),
  ...Object.keys(chunkBudgets).map(chunkSource),
]);
const chunks = await buildChunks(CHUNKS, { watching, mangleCache: browser.mangleCache });
browser.define = {
  PARLEY_CHUNKS: JSON.stringify(chunks.version),
  PARLEY_LOCALES: JSON.stringify(LOCALES.join()),
};
const launcher = launcherScript(script, manifest, watching);

if (watching) {
  for (const options of [command, alone, browser, launcher]) {
    const watched = await context(options);
    // By itself `watch` does not wait for the first build, and the server would find no command.
    await watched.rebuild();
    await watched.watch();
  }
  const args = process.argv.slice(2).filter((argument) => argument !== "--watch");
  spawn(process.execPath, ["--watch", "dist/cli.js", "start", ...args], { stdio: "inherit" });
} else {
  const builds = [browser, launcher, command, alone].map((options) => build(options));
  const [{ metafile }] = await Promise.all(builds);
  await Promise.all([browser, launcher].map(({ outfile }) => minifyAgain(outfile)));
  refuseCopies(chunks.sources, sourcesOf(metafile));
  console.log("Built dist/.");
  weigh(browser.outfile, WIDGET_BUDGET_GZIP_BYTES);
  weigh(launcher.outfile, LAUNCHER_BUDGET_GZIP_BYTES);
  for (const [name, file] of Object.entries(chunks.files)) {
    weigh(`${CHUNKS}/${file}`, chunkBudgets[name]);
  }
}
