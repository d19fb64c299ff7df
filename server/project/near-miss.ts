/** What a person probably meant whose folder holds no agent. Loaded for such folders only. */

import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, extname, join, relative, resolve } from "node:path";
import { ConfigError } from "../errors.ts";
import { AGENT_FILES, agentFileIn } from "./agent-files.ts";

/** Refuses a file that was meant to be the agent: its author would wonder why another one answers. @throws ConfigError */
export function refuseNearMiss(folder: string): void {
  const misnamed = readdirSync(folder).find((name) => /^agents?\.[cm]?[jt]sx?$/i.test(name));
  if (misnamed !== undefined) {
    throw new ConfigError(
      `${join(folder, misnamed)} is not served under this name. Rename it to ${servedName(misnamed)}.`,
    );
  }
  const inside = agentFileIn(join(folder, "src"));
  if (inside !== undefined) {
    throw new ConfigError(`The agent is in ${inside}. Give that folder: ${relative(".", dirname(inside))}`);
  }
  const [other, ...more] = modulesIn(folder).filter(isParleys);
  if (other !== undefined && more.length === 0) throw otherName(other);
}

/** The error for a folder without an agent. @throws ConfigError for a near miss */
export function noAgentIn(folder: string): ConfigError {
  refuseNearMiss(folder);
  const [other, ...more] = modulesIn(folder);
  if (other !== undefined && more.length === 0) return otherName(other);
  return new ConfigError(
    `${folder} holds no agent. Write an agent.ts there that has: export default defineAgent({ … }).`,
  );
}

/** The paths of ordinary modules: no declarations, no tests, no configuration of a tool. */
function modulesIn(folder: string): string[] {
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile());
  return files.flatMap(({ name }) => (/^[^.]+\.[cm]?[jt]sx?$/.test(name) ? [resolve(folder, name)] : []));
}

const isParleys = (file: string): boolean => /from\s*["']parley-agent["']/.test(readFileSync(file, "utf8"));

function otherName(file: string): ConfigError {
  const name = basename(file);
  return new ConfigError(`${dirname(file)} holds no agent. If it is ${name}, rename that to ${servedName(name)}.`);
}

function servedName(file: string): string {
  const extension = extname(file).toLowerCase();
  return AGENT_FILES.find((name) => extname(name) === extension) ?? `agent.${extension.includes("t") ? "ts" : "js"}`;
}
