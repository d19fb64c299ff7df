/** The servers that stand side by side. */

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { Process, pathOf } from "./processes.mjs";

/** Limits guard a server on the internet against what this benchmark does on purpose; those of the others have none. */
const UNLIMITED = {
  PARLEY_RATE_PER_ADDRESS: "0",
  PARLEY_RATE_PER_SOCKET: "0",
  PARLEY_MAX_RUNS: "0",
  PARLEY_MAX_RUNS_PER_ADDRESS: "0",
  PARLEY_MAX_SOCKETS: "0",
  PARLEY_MAX_SOCKETS_PER_ADDRESS: "0",
  PARLEY_MAX_CONNECTIONS: "100000",
};

const PARLEY = pathOf("../../dist/cli.js");

const relay = (name, title, transports) => ({
  name,
  title,
  transports,
  args: [pathOf(`targets/${name}.mjs`)],
  env: {},
});

const BOTH = ["sse", "ws"];

/** In the order of the table. `direct` is the provider itself, asked without a server in between. */
export const TARGETS = [
  {
    name: "parley",
    title: "Parley",
    transports: BOTH,
    args: [PARLEY, "start", pathOf("project")],
    env: UNLIMITED,
  },
  relay("floor", "floor", BOTH),
  relay("floor-batch", "floor, batched", BOTH),
  relay("openai", "openai", BOTH),
  relay("fastify", "Fastify + openai", BOTH),
  relay("hono", "Hono + openai", ["sse"]),
  relay("ai-sdk", "AI SDK", ["sse"]),
];

export const DIRECT = { name: "direct", title: "no server", transports: ["sse"] };

/** A bare `node:http` server: what a start is compared with. */
export const BARE = relay("bare", "bare Node", []);

/** Another build of Parley: what it was before a change. @throws Error */
export function baseTarget(path) {
  const file = resolve(path);
  if (!existsSync(file)) throw new Error(`--base names ${path}, which is not there.`);
  const [parley] = TARGETS;
  return { ...parley, name: "base", title: "Parley, base", args: [file, ...parley.args.slice(1)] };
}

export function checkBuild() {
  if (existsSync(PARLEY)) return;
  throw new Error("dist/cli.js is not there. Run: npm run build");
}

/** Starts a server whose model is the provider at this URL. */
export async function startTarget(target, providerUrl) {
  if (target === DIRECT) return { url: providerUrl, call: async () => undefined, stop: async () => {} };
  const args = ["--import", pathOf("probe.mjs"), ...target.args];
  return await new Process(target.name, args, targetEnv(target, providerUrl, 0)).listening();
}

/** Starts Parley with workers. There is no probe in it: that would be in each of its processes. */
export async function startWorkers(spec, providerUrl, workers) {
  const args = [...spec.args, "--workers", workers];
  return await new Process(spec.name, args, targetEnv(spec, providerUrl, 0), {
    channel: false,
  }).listening();
}

/** Whether it has workers at all. */
export function takesWorkers({ args }) {
  return args.includes("start");
}

export function targetEnv({ env }, providerUrl, port) {
  return { COMPATIBLE_BASE_URL: `${providerUrl}v1`, PORT: String(port), ...env };
}
