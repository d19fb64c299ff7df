/** The command line. */

import { parseArgs } from "node:util";
import { SCENARIOS } from "../scenarios/index.mjs";
import { baseTarget, TARGETS } from "./targets.mjs";

const NAMES = {
  only: SCENARIOS.map(({ name }) => name),
  targets: TARGETS.map(({ name }) => name),
  transports: ["sse", "ws", "http"],
};

export const HELP = `npm run bench -- [options]

  --only <names>        Scenarios, with commas: ${NAMES.only.join(", ")}.
  --targets <names>     Servers, with commas: ${NAMES.targets.join(", ")}.
  --transports <names>  ${NAMES.transports.join(", ")}.
  --base <cli.js>       Another build of Parley, which is measured beside this one.
  --rounds <n>          Rounds in which the servers take turns. Default: 3.
  --quick               One round with short measurements: to see that all works, not to compare.
  --scale               Instead: 10,000 idle sockets and 2,000 streams on one process.
  --workers <n>         With --scale, Parley's own option: a number of processes, or auto. Memory is that of all of them.
  --profile <folder>    Writes a .cpuprofile of each measurement, and prints the functions that took most.
  --out <folder>        Where server.md and server.json are written. Default: bench/results.
`;

/** Milliseconds and numbers of a whole measurement. */
const FULL = {
  warmMs: 2000,
  saturationMs: 3000,
  pacedWarmMs: 10_000,
  pacedMs: 6000,
  capacityMs: 3000,
  answersMs: 3000,
  filesMs: 2000,
  idleSockets: 10_000,
  memoryStreams: 500,
  disconnects: 30,
  starts: 7,
  first: { count: 200, warmUp: 20, ms: 8000 },
  alone: { fresh: 100, warmUp: 3000, count: 500, ms: 30_000 },
};

const QUICK = {
  warmMs: 600,
  saturationMs: 500,
  pacedWarmMs: 600,
  pacedMs: 1000,
  capacityMs: 800,
  answersMs: 500,
  filesMs: 300,
  idleSockets: 2000,
  memoryStreams: 100,
  disconnects: 5,
  starts: 2,
  first: { count: 40, warmUp: 5, ms: 2000 },
  alone: { fresh: 20, warmUp: 20, count: 100, ms: 4000 },
};

/** @throws Error that names the option and what would be right. */
export function readOptions(argv) {
  const { values } = parseArgs({
    args: argv,
    options: {
      only: { type: "string" },
      targets: { type: "string" },
      transports: { type: "string" },
      base: { type: "string" },
      rounds: { type: "string" },
      quick: { type: "boolean", default: false },
      scale: { type: "boolean", default: false },
      workers: { type: "string" },
      profile: { type: "string" },
      out: { type: "string", default: "bench/results" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.workers !== undefined && !values.scale) {
    throw new Error("--workers goes with --scale: all else measures one process.");
  }
  const chosen = (name) => choose(name, values[name], NAMES[name]);
  const names = { only: chosen("only"), targets: chosen("targets") };
  return {
    ...values,
    scenarios: SCENARIOS.filter(({ name }) => names.only.includes(name)),
    targets: [
      ...(values.base === undefined ? [] : [baseTarget(values.base)]),
      ...TARGETS.filter(({ name }) => names.targets.includes(name)),
    ],
    transports: chosen("transports"),
    rounds: readRounds(values),
    times: values.quick ? QUICK : FULL,
  };
}

function choose(option, text, known) {
  if (text === undefined) return known;
  const names = text.split(",").map((name) => name.trim());
  const wrong = names.find((name) => !known.includes(name));
  if (wrong === undefined) return names;
  throw new Error(`--${option} does not know "${wrong}". It takes ${known.join(", ")}.`);
}

function readRounds({ rounds, quick }) {
  if (rounds === undefined) return quick ? 1 : 3;
  const count = Number(rounds);
  if (Number.isInteger(count) && count >= 1) return count;
  throw new Error(`--rounds must be a whole number from 1, but is "${rounds}".`);
}
