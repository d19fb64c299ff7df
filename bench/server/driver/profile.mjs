/** What a `.cpuprofile` says: the functions, and the files, that took most by themselves. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
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
function placeOf({ url, lineNumber, columnNumber }) {
  if (!url.startsWith("file:")) return url;
  const path = fileURLToPath(url);
  const { originalSource } = sourceMapOf(path)?.findEntry(lineNumber, columnNumber) ?? {};
  const source = originalSource && relative(".", resolve(dirname(path), originalSource));
  return source || path.split(sep).slice(-2).join("/");
}

const sourceMaps = new Map();

/** What the build of a file has written beside it. */
function sourceMapOf(path) {
  if (!sourceMaps.has(path)) {
    const map = `${path}.map`;
    const isThere = existsSync(map);
    sourceMaps.set(path, isThere ? new SourceMap(JSON.parse(readFileSync(map, "utf8"))) : undefined);
  }
  return sourceMaps.get(path);
}
