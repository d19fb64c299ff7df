/**
 * Builds dist/: the command, the package's entry for agent projects, and the browser's files. `OUT` names another folder.
 */

import { spawn } from "node:child_process";
import { readFileSync, rmSync, watch, writeFileSync } from "node:fs";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "esbuild";
import { buildBrowserFiles } from "./build/browser.mjs";
import { licensesOf } from "./build/licenses.mjs";
import { customElementsManifest } from "./build/manifest.mjs";
import { readTables } from "./build/tables.mjs";

const OUT = process.env.OUT ?? "dist";

/** The most that may go over the wire, in bytes of gzip. The build fails above it. */
const LOADER_BUDGET = 6_000;
const CHAT_BUDGET = 80_000;

const { peerDependencies } = JSON.parse(readFileSync("package.json", "utf8"));

/**
 * The server with its dependencies as they are: a start reads a few files in place of hundreds. Outside stay the packages
 * that a project brings, and `jiti`, which loads files of its own.
 */
const server = {
  entryPoints: ["cli.ts", "server/parley-agent.ts", "server/routes/parse-worker.ts"],
  outdir: OUT,
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

/** Writes the compressed forms beside a file, and answers how many bytes it has with gzip. */
function compress(file) {
  const bytes = readFileSync(file);
  const gzip = gzipSync(bytes, { level: 9 });
  writeFileSync(`${file}.gz`, gzip);
  writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
  return gzip.length;
}

function report(name, size, budget) {
  console.log(`${name}: ${size.toLocaleString("en")} bytes with gzip, ${budget.toLocaleString("en")} allowed.`);
  if (size <= budget) return;
  console.error(`${name}: over the budget.`);
  process.exitCode = 1;
}

async function buildAll() {
  const tables = await readTables();
  const browser = await buildBrowserFiles(`${OUT}/public`, { minify: true, openChat: tables.openChat });
  writeFileSync(`${OUT}/custom-elements.json`, JSON.stringify(customElementsManifest(tables), null, 2));
  const { metafile } = await build(server);
  writeFileSync(`${OUT}/LICENSES.txt`, licensesOf({ inputs: { ...browser.metafile.inputs, ...metafile.inputs } }));
  console.log(`Built ${OUT}/.`);
  const sizes = new Map(browser.files.map((file) => [file, compress(`${OUT}/public/${file}`)]));
  report("/widget.js", sizes.get("widget.js"), LOADER_BUDGET);
  const toChat = browser.toChat.map((file) => sizes.get(file));
  report(
    "All to chat",
    toChat.reduce((sum, size) => sum + size),
    CHAT_BUDGET,
  );
}

/** Runs the server from its sources, and builds the browser's files after each change; the server reads them when it starts. */
async function develop() {
  const args = process.argv.slice(2).filter((argument) => argument !== "--watch");
  const command = ["--watch", "--import", "tsx", "cli.ts", "start", ...args];
  const start = async () => {
    const { openChat } = await readTables();
    await buildBrowserFiles(`${OUT}/public`, { minify: false, openChat });
    return spawn(process.execPath, command, { stdio: "inherit" });
  };
  let running = await start();
  const restart = async () => {
    running.kill();
    // A mistake in the sources stands in the terminal, and the next change mends it.
    running = await start().catch(() => running);
  };
  let restarted = Promise.resolve();
  let timer;
  watch("widget", { recursive: true }, () => {
    clearTimeout(timer);
    // Editors write a file in several steps.
    timer = setTimeout(() => {
      restarted = restarted.then(restart);
    }, 100);
  });
}

rmSync(OUT, { recursive: true, force: true });
await (process.argv.includes("--watch") ? develop() : buildAll());
