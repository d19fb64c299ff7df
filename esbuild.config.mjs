/** Builds dist/: the command, the package's entry for agent projects, and the browser's files. */

import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { build, context, transformSync } from "esbuild";
import { buildChunks, chunkBudgets, chunkSource, LOCALES, sourcesOf } from "./build/chunks.mjs";
import { clientErrors } from "./build/client-errors.mjs";
import { compactTemplates } from "./build/compact-templates.mjs";
import { LAUNCHER_BUDGET_GZIP_BYTES, launcherScript } from "./build/launcher-script.mjs";
import { licensesOf } from "./build/licenses.mjs";
import { litCoreOnly } from "./build/lit-core.mjs";
import { customElementsManifest } from "./build/manifest.mjs";
import { markedLexerOnly } from "./build/marked-lexer.mjs";
import { compress, minifyAgain } from "./build/minify.mjs";
import { giveShortNames, shortNames } from "./build/short-names.mjs";

/** All that a page loads to chat: the most that `/widget.js` may weigh on the wire. The build fails above it. */
const WIDGET_BUDGET_GZIP_BYTES = 64_000;

const CHUNKS = "dist/public/chunks";

const watching = process.argv.includes("--watch");
const { peerDependencies } = JSON.parse(readFileSync("package.json", "utf8"));

/**
 * The server with its dependencies as they are: a start reads a few files in place of hundreds. Outside stay the packages
 * that a project brings, and `jiti`, which loads files of its own.
 */
const server = {
  entryPoints: ["cli.ts", "server/parley-agent.ts", "server/routes/parse-worker.ts"],
  outdir: "dist",
  // All in one folder: see server/project/own-files.ts.
  entryNames: "[name]",
  chunkNames: "[name]-[hash]",
  bundle: true,
  splitting: true,
  platform: "node",
  target: "node20",
  format: "esm",
  metafile: true,
  external: ["jiti", ...Object.keys(peerDependencies)],
  sourcemap: true,
  // For those dependencies that are CommonJS.
  banner: {
    js: 'import { createRequire as requireFrom } from "node:module";\nconst require = requireFrom(import.meta.url);',
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
  for (const options of [browser, launcher]) await (await context(options)).watch();
  const args = process.argv.slice(2).filter((argument) => argument !== "--watch");
  spawn(process.execPath, ["--watch", "--import", "tsx", "cli.ts", "start", ...args], { stdio: "inherit" });
} else {
  const builds = [browser, launcher, server].map((options) => build(options));
  const [{ metafile }, , { metafile: ofServer }] = await Promise.all(builds);
  writeFileSync("dist/LICENSES.txt", licensesOf(ofServer));
  await Promise.all([browser, launcher].map(({ outfile }) => minifyAgain(outfile)));
  refuseCopies(chunks.sources, sourcesOf(metafile));
  console.log("Built dist/.");
  weigh(browser.outfile, WIDGET_BUDGET_GZIP_BYTES);
  weigh(launcher.outfile, LAUNCHER_BUDGET_GZIP_BYTES);
  for (const [name, file] of Object.entries(chunks.files)) {
    weigh(`${CHUNKS}/${file}`, chunkBudgets[name]);
  }
}
