/** What `/widget.js` loads only when an answer needs it: one ES module each, with names that change with their content. */

import { createHash } from "node:crypto";
import { readFileSync, renameSync } from "node:fs";
import { build } from "esbuild";
import { compactTemplates } from "./compact-templates.mjs";
import { asFunction, lentModules } from "./lent-modules.mjs";
import { minifyAgain } from "./minify.mjs";
import { shortNames } from "./short-names.mjs";

/** Languages beside English. */
export const LOCALES = ["ar", "de", "es", "fr", "it", "ja", "pt", "zh"];

/** Chunks of `widget/chunks`, with the most bytes that each may have on the wire with gzip. */
export const chunkBudgets = {
  highlight: 9_000,
  tools: 4_000,
  "long-table": 2_800,
  cut: 2_500,
  launcher: 7_000,
  http: 3_000,
  export: 1_500,
  keep: 3_200,
  "key-form": 2_500,
  files: 5_800,
  steps: 4_800,
  feedback: 3_700,
  actions: 2_400,
  ...Object.fromEntries(LOCALES.map((language) => [`locale-${language}`, 4_000])),
};

/** Those that draw: see `lent-modules.mjs`. */
const drawing = ["key-form", "files", "launcher", "steps", "feedback", "actions"];

/** The source of a chunk. */
export const chunkSource = (name) => `widget/chunks/${name}.ts`;

/** Builds all chunks; answers their file names, what stands in each after its name, and the source files that they are made of. */
export async function buildChunks(folder, { watching, mangleCache }) {
  const names = Object.keys(chunkBudgets);
  const plugins = watching ? [] : [compactTemplates];
  const common = {
    outdir: folder,
    bundle: true,
    platform: "browser",
    target: "es2022",
    minify: !watching,
    legalComments: "none",
    sourcemap: watching ? "inline" : false,
    metafile: true,
    ...shortNames,
    mangleCache,
  };
  const entries = (chosen) => Object.fromEntries(chosen.map((name) => [name, chunkSource(name)]));
  const plain = await build({
    ...common,
    entryPoints: entries(names.filter((name) => !drawing.includes(name))),
    format: "esm",
    plugins,
  });
  const drawn = await build({
    ...common,
    ...asFunction,
    entryPoints: entries(drawing),
    plugins: [lentModules, ...plugins],
  });
  const minified = await Promise.all(names.map((name) => minifiedChunk(folder, name, watching)));
  const version = watching ? "" : hashOf(minified);
  const files = {};
  for (const name of names) {
    files[name] = `${name}${version}.js`;
    if (!watching) renameSync(`${folder}/${name}.js`, `${folder}/${files[name]}`);
  }
  const sources = [plain, drawn].flatMap(({ metafile }) => sourcesOf(metafile));
  return { files, version, sources };
}

async function minifiedChunk(folder, name, watching) {
  const path = `${folder}/${name}.js`;
  if (!watching) await minifyAgain(path, { module: true });
  return readFileSync(path);
}

/** One for all of them: what is random is what a script pays most for, and eighteen hashes were 0.3 kB of it. */
function hashOf(contents) {
  const hash = createHash("sha256");
  for (const content of contents) hash.update(content);
  return `-${hash.digest("hex").slice(0, 10)}`;
}

/** The source files of each output of a build. */
export function sourcesOf(metafile) {
  return Object.values(metafile.outputs).flatMap(({ inputs }) => Object.keys(inputs));
}
