/** What a `.cpuprofile` says: the functions, and the files, that took most by themselves. */

import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeTable } from "./report.mjs";

const SHOWN = 25;

/** Two tables for each profile of a folder. */
export function writeProfiles(folder) {
  const files = readdirSync(folder).filter((name) => name.endsWith(".cpuprofile"));
  return files.map((name) => writeProfile(join(folder, name))).join("\n\n");
}

function writeProfile(file) {
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, "utf8"));
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const functions = new Map();
  const places = new Map();
  let busy = 0;
  for (const [at, id] of samples.entries()) {
    const frame = frames.get(id);
    if (frame.functionName === "(idle)") continue;
    const time = Math.max(0, timeDeltas[at]);
    const place = placeOf(frame);
    busy += time;
    add(functions, `${frame.functionName || "(anonymous)"} ${place}`.trim(), time);
    add(places, place || "V8 and Node, native", time);
  }
  const tables = [writeTop("function", functions, busy), writeTop("file", places, busy)];
  return [`### ${basename(file)}`, ...tables].join("\n\n");
}

function add(sums, name, time) {
  sums.set(name, (sums.get(name) ?? 0) + time);
}

function writeTop(title, sums, busy) {
  const top = [...sums].sort(([, one], [, other]) => other - one).slice(0, SHOWN);
  const rows = top.map(([name, time]) => [
    name,
    `${((100 * time) / busy).toFixed(1)} %`,
    `${(time / 1000).toFixed(0)} ms`,
  ]);
  return writeTable([title, "self", "time"], rows);
}

/** The source file, also of a function that the build has put into `dist/`; empty for what has none. */
function placeOf({ url, lineNumber }) {
  if (!url.startsWith("file:")) return url;
  const sources = sourcesOf(fileURLToPath(url));
  return sources?.[lineNumber] ?? url.split("/").slice(-2).join("/");
}

const bundles = new Map();

/** esbuild writes the name of each source above what comes from it: the source of every line of a bundle. */
function sourcesOf(path) {
  if (!path.includes("/dist/") || path.includes("node_modules")) return undefined;
  if (!bundles.has(path)) {
    let source;
    const lines = readFileSync(path, "utf8").split("\n");
    bundles.set(
      path,
      lines.map((line) => {
        source = /^\/\/ ((?:server\/|cli\.ts)\S*)$/.exec(line)?.[1] ?? source;
        return source;
      }),
    );
  }
  return bundles.get(path);
}
