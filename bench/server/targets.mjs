/** The servers that are measured side by side. */

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { Child, pathOf } from "./processes.mjs";
import { KEY } from "./run.mjs";

/** The limits protect a server on the internet; the other servers have none. */
const NO_LIMITS = {
  PARLEY_RATE_PER_KEY: "0",
  PARLEY_RATE_PER_ADDRESS: "0",
  PARLEY_RATE_PER_SOCKET: "0",
  PARLEY_MAX_RUNS: "0",
  PARLEY_MAX_RUNS_PER_ADDRESS: "0",
  PARLEY_MAX_SOCKETS: "0",
  PARLEY_MAX_SOCKETS_PER_ADDRESS: "0",
  PARLEY_MAX_CONNECTIONS: "100000",
};

const BOTH = ["sse", "ws", "json"];

function parley(name, title, cli) {
  return { name, title, transports: [...BOTH, "openai"], args: [cli, "start", pathOf("project")], env: NO_LIMITS };
}

export const TARGETS = [
  { name: "floor", title: "floor", transports: BOTH, args: [pathOf("targets/floor.mjs")] },
  parley("parley", "Parley", pathOf("../../dist/cli.js")),
  { name: "fastify", title: "Fastify + openai", transports: BOTH, args: [pathOf("peers/fastify.mjs")], isPeer: true },
  { name: "ai-sdk", title: "AI SDK", transports: ["sse", "json"], args: [pathOf("peers/ai-sdk.mjs")], isPeer: true },
];

/** Another build of Parley, measured in the same rounds. @throws Error */
export function targetBefore(path) {
  const cli = resolve(path);
  if (!existsSync(cli)) throw new Error(`--before names ${path}, which is not there.`);
  return parley("before", "before", cli);
}

/** This build with runs and limits in a Redis. */
export function targetWithRedis(url) {
  const target = parley("redis", "with Redis", pathOf("../../dist/cli.js"));
  return { ...target, env: { ...target.env, PARLEY_REDIS_URL: url } };
}

/** Starts a server whose model is at this URL. */
export function startTarget({ name, args, env }, modelUrl, transport) {
  const door = transport === "openai" ? { PARLEY_OPENAI_API: "on", PARLEY_API_KEY: KEY } : {};
  const all = { COMPATIBLE_BASE_URL: `${modelUrl}v1`, PORT: "0", ...env, ...door };
  return new Child(name, ["--import", pathOf("probe.mjs"), ...args], all).listening();
}

/** The packages of the peers are installed on first need, in a folder of their own. */
export function installPeers(targets) {
  if (!targets.some(({ isPeer }) => isPeer) || existsSync(pathOf("peers/node_modules"))) return;
  console.error("Installing the packages of the peers into bench/server/peers ...");
  execFileSync("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: pathOf("peers"),
    stdio: "inherit",
  });
}
