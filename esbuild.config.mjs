/**
 * Builds dist/: the command, the package's entry for agent projects, and the browser's files. `OUT` names another folder.
 * With `--dev`: builds the browser's files and runs the command from its sources.
 */

import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "esbuild";
import { buildBrowserFiles, buildPackageFiles } from "./build/browser.mjs";
import { customElementsManifest } from "./build/manifest.mjs";

const OUT = process.env.OUT ?? "dist";

/**
 * The most that may go over the wire, in bytes of gzip. The build fails above it. The files name each other by their
 * hashes, and these by where the packages are: leave some 100 bytes between a budget and the size, or it fails by chance.
 */
const LOADER_BUDGET = 5_200;
const FIRST_PAINT_BUDGET = 60_000;
const FIRST_ANSWER_BUDGET = 98_000;

const { peerDependencies } = JSON.parse(readFileSync("package.json", "utf8"));

/**
 * The server with its dependencies as they are: a start reads a few files in place of hundreds. Outside stay the packages
 * that a project brings, and `jiti`, which loads files of its own.
 */
const server = {
  entryPoints: [
    "cli.ts",
    "server/parley-agent.ts",
    "server/mount.ts",
    "server/routes/parse-worker.ts",
    "server/observe/watchdog-thread.ts",
  ],
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

/** The licences of the packages among the inputs of a build. Most of them ask to go wherever the code goes. */
function licensesOf(inputs) {
  const folders = Object.keys(inputs).map((path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]);
  const packages = [...new Set(folders)].filter((folder) => folder !== undefined).sort();
  const fonts = `STIX Two Math (OFL-1.1), in parts\n\n${readFileSync("widget/markdown/math-font/OFL.txt", "utf8")}`;
  return [...packages.map(licenseOf), fonts].join(`\n${"-".repeat(80)}\n\n`);
}

function licenseOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const text = file ? readFileSync(`${folder}/${file}`, "utf8") : "The package holds no text of its licence.";
  return `${name} ${version} (${license})\n\n${text.trim()}\n`;
}

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
  const browser = await buildBrowserFiles(`${OUT}/public`, { minify: true });
  await buildPackageFiles(`${OUT}/widget`);
  writeFileSync(`${OUT}/custom-elements.json`, JSON.stringify(customElementsManifest(), null, 2));
  const { metafile } = await build(server);
  writeFileSync(`${OUT}/LICENSES.txt`, licensesOf({ ...browser.metafile.inputs, ...metafile.inputs }));
  console.log(`Built ${OUT}/.`);
  const sizes = new Map(browser.files.map((file) => [file, compress(`${OUT}/public/${file}`)]));
  report("/widget.js", sizes.get("widget.js"), LOADER_BUDGET);
  const sumOf = (files) => files.reduce((sum, file) => sum + sizes.get(file), 0);
  report("Before the first paint", sumOf(browser.toFirstPaint), FIRST_PAINT_BUDGET);
  report("To the first answer", sumOf(browser.toFirstAnswer), FIRST_ANSWER_BUDGET);
}

rmSync(OUT, { recursive: true, force: true });
if (process.argv[2] === "--dev") {
  await buildBrowserFiles(`${OUT}/public`, { minify: false });
  process.argv.splice(1, 2, "cli.ts", "start");
  await import("./cli.ts");
} else {
  await buildAll();
}
