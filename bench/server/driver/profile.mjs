/** What a `.cpuprofile` says: the functions that took most by themselves. */

import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { writeTable } from "./report.mjs";

const SHOWN = 25;

/** A table for each profile of a folder. */
export function writeProfiles(folder) {
  const files = readdirSync(folder).filter((name) => name.endsWith(".cpuprofile"));
  return files.map((name) => writeProfile(join(folder, name))).join("\n\n");
}

function writeProfile(file) {
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, "utf8"));
  const names = new Map(nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
  const spent = new Map();
  let busy = 0;
  for (const [at, id] of samples.entries()) {
    const name = names.get(id);
    if (name === "(idle)") continue;
    const delta = Math.max(0, timeDeltas[at]);
    busy += delta;
    spent.set(name, (spent.get(name) ?? 0) + delta);
  }
  const top = [...spent].sort(([, one], [, other]) => other - one).slice(0, SHOWN);
  const rows = top.map(([name, time]) => [
    name,
    `${((100 * time) / busy).toFixed(1)} %`,
    `${(time / 1000).toFixed(0)} ms`,
  ]);
  return `### ${basename(file)}\n\n${writeTable(["function", "self", "time"], rows)}`;
}

function nameOf({ functionName, url, lineNumber }) {
  const place = url === "" ? "" : ` ${url.split("/").slice(-2).join("/")}:${lineNumber + 1}`;
  return `${functionName || "(anonymous)"}${place}`;
}
