/** The packages of the other servers: installed on first need, and only for the benchmark. */

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { pathOf } from "./processes.mjs";

const FOLDER = pathOf(".");

/** Servers that do with what Parley itself has. */
const WITHOUT = ["base", "parley", "floor", "floor-batch", "openai"];

/** Installs what the package.json of bench/server names, unless it is there or none of the servers needs it. */
export function installPeers(targets) {
  if (targets.every(({ name }) => WITHOUT.includes(name)) || isInstalled()) return;
  console.error("Installing what Parley is compared with into bench/server ...");
  execFileSync("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: FOLDER,
    stdio: "inherit",
  });
}

function isInstalled() {
  const { dependencies } = readJson(`${FOLDER}/package.json`);
  return Object.entries(dependencies).every(([name, version]) => {
    const file = `${FOLDER}/node_modules/${name}/package.json`;
    return existsSync(file) && readJson(file).version === version;
  });
}

function readJson(file) {
  return JSON.parse(readFileSync(file, "utf8"));
}
