/** `npm run bench`: Parley, a hand-written relay and two peers side by side. How it works: docs/performance.md */

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { Child, pathOf } from "./server/processes.mjs";
import { writeReport } from "./server/report.mjs";
import { SCENARIOS } from "./server/scenarios.mjs";
import { installPeers, startTarget, TARGETS, targetBefore, targetWithRedis } from "./server/targets.mjs";

const HELP = `npm run bench -- [options]

  --only <names>      Scenarios, with commas: ${SCENARIOS.map(({ name }) => name).join(", ")}.
  --targets <names>   Servers, with commas: ${TARGETS.map(({ name }) => name).join(", ")}.
  --transports <names>  sse, ws, openai (Chat Completions, Parley alone), json.
  --before <cli.js>   Another build of Parley, measured in the same rounds.
  --redis <url>       Also with a Redis; streams are named runs then, for all servers.
  --rounds <n>        Rounds in which the servers take turns. Default: 3.
  --quick             One round of short measurements: shows that all works, not what it costs.
`;

const LONG = {
  fullSpeedMs: 3000,
  pacedWarmMs: 8000,
  pacedMs: 6000,
  carriedMs: 3000,
  firstTokens: 500,
  idleSockets: 5000,
};
const QUICK = { fullSpeedMs: 300, pacedWarmMs: 300, pacedMs: 600, carriedMs: 300, firstTokens: 20, idleSockets: 500 };

/** @throws Error that names the option and what would be right */
function readOptions() {
  const text = { type: "string" };
  const { values } = parseArgs({
    options: {
      only: text,
      targets: text,
      transports: text,
      before: text,
      redis: text,
      rounds: text,
      quick: { type: "boolean", default: false },
      help: { type: "boolean", short: "h" },
    },
  });
  const rounds = Number(values.rounds ?? (values.quick ? 1 : 3));
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error("--rounds must be a whole number from 1.");
  return {
    ...values,
    rounds,
    times: values.quick ? QUICK : LONG,
    transports: values.transports?.split(",") ?? ["sse", "ws", "openai", "json"],
    scenarios: choose("only", values.only, SCENARIOS),
    targets: [
      ...choose("targets", values.targets, TARGETS),
      ...(values.before === undefined ? [] : [targetBefore(values.before)]),
      ...(values.redis === undefined ? [] : [targetWithRedis(values.redis)]),
    ],
  };
}

function choose(option, given, all) {
  const names = given?.split(",") ?? all.map(({ name }) => name);
  const wrong = names.find((name) => !all.some((one) => one.name === name));
  if (wrong === undefined) return all.filter(({ name }) => names.includes(name));
  throw new Error(`--${option} does not know "${wrong}". It takes ${all.map(({ name }) => name).join(", ")}.`);
}

/** Each server is started anew for each measurement. */
async function measure({ scenario, transport, target: spec, options, surroundings }) {
  const { model } = surroundings;
  const target = await startTarget(spec, model.url, transport);
  const cpuOf = async (task) => {
    const before = await target.call("cpu");
    const value = await task();
    return { value, cpu: (await target.call("cpu")) - before };
  };
  try {
    const values = await scenario.run({
      ...surroundings,
      base: target.url,
      target,
      transport,
      cpuOf,
      times: options.times,
    });
    await surroundings.load.call("cutStreams", 0);
    return values;
  } catch (error) {
    throw new Error(`${scenario.name}, ${transport}, ${spec.name}: ${error.message}`, { cause: error });
  } finally {
    await target.stop();
  }
}

async function main() {
  const options = readOptions();
  if (options.help) return console.log(HELP);
  const isBuilt = existsSync("dist/cli.js");
  if (!isBuilt && options.targets.some(({ name }) => name === "parley")) throw new Error("Run first: npm run build");
  const named = options.redis === undefined ? {} : { BENCH_NAMED: "1" };
  installPeers(options.targets);
  const surroundings = {
    load: new Child("load client", [pathOf("load.mjs")], named),
    sender: new Child("sender of attachments", [pathOf("load.mjs")]),
    model: await new Child("model", [pathOf("model.mjs")]).listening(),
  };
  const measurements = [];
  for (const scenario of options.scenarios) {
    for (let round = 1; round <= options.rounds; round++) {
      // Reversed in every other round: the machine may not be the same for the first server and for the last one.
      const targets = round % 2 === 1 ? options.targets : [...options.targets].reverse();
      for (const transport of scenario.transports.filter((name) => options.transports.includes(name))) {
        for (const target of targets.filter(({ transports }) => transports.includes(transport))) {
          console.error(`${scenario.name} ${transport} ${target.name} ${round}`);
          const values = await measure({ scenario, transport, target, options, surroundings });
          measurements.push({ scenario: scenario.name, transport, target: target.name, round, values });
        }
      }
    }
  }
  mkdirSync("bench/results", { recursive: true });
  writeFileSync("bench/results/server.json", JSON.stringify(measurements, null, 1));
  console.log(`\n${writeReport(measurements, options.targets)}`);
  process.exit();
}

main().catch((error) => {
  console.error(`bench: ${error.message}`);
  process.exit(1);
});
