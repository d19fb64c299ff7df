/** Rounds in which every server is measured in turn, each time in a new process. */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Process, pathOf } from "./processes.mjs";
import { DIRECT, startTarget } from "./targets.mjs";

/** What stays up the whole time: the model and the clients. */
export async function startSurroundings() {
  const load = new Process("load client", [pathOf("load/client.mjs")]);
  const sender = new Process("attachment client", [pathOf("load/client.mjs")]);
  const provider = await new Process("provider", [pathOf("provider.mjs")]).listening();
  return { load, sender, provider };
}

/** Every combination of server and line that a scenario is measured with. */
function* pairsOf(scenario, { targets, transports }) {
  const withTimes = scenario.metrics.firstP50 !== undefined;
  const all = [...(withTimes ? [DIRECT] : []), ...(scenario.adds ?? []), ...targets];
  for (const transport of scenario.transports.filter((name) => transports.includes(name))) {
    for (const spec of all) {
      if (scenario.skips?.includes(spec.name)) continue;
      const takes = transport === "http" || spec.transports.includes(transport);
      // On sockets, too, what is added is compared with the provider's own line.
      if (takes && !(spec === DIRECT && transport === "ws")) yield { spec, transport };
    }
  }
}

/** Measures all. `results` gets each measurement, `tell` a line about it. */
export async function runRounds(options, surroundings, results, tell) {
  for (const scenario of options.scenarios) {
    for (let round = 1; round <= options.rounds; round++) {
      const pairs = [...pairsOf(scenario, options)];
      // The one that comes first meets another machine than the one that comes last.
      if (round % 2 === 0) pairs.reverse();
      for (const { spec, transport } of pairs) {
        const where = { scenario: scenario.name, transport, target: spec.name, round };
        tell(where);
        results.add(where, await measure({ scenario, spec, transport, options, surroundings }, where));
      }
    }
  }
}

async function measure({ scenario, spec, transport, options, surroundings }, where) {
  const { times, profile } = options;
  const shared = { ...surroundings, spec, times };
  if (scenario.startsItself) return await scenario.run(shared);
  const target = await startTarget(spec, surroundings.provider.url);
  let parts = 0;
  const nextFile = () => profile && join(profile, `${[...Object.values(where), ++parts].join("-")}.cpuprofile`);
  if (profile) mkdirSync(profile, { recursive: true });
  try {
    const how = spec === DIRECT ? "direct" : transport;
    const measured = (task) => measureCpu(target, nextFile(), task);
    return await scenario.run({ ...shared, target, base: target.url, transport: how, measured });
  } catch (error) {
    throw new Error(`${scenario.name}, ${spec.name}, ${transport}: ${error.message}`, {
      cause: error,
    });
  } finally {
    await target.stop();
  }
}

/** What a task returns, with the CPU time in microseconds that the server spent on it and its highest memory. */
async function measureCpu(target, profile, task) {
  if (profile) await target.call("startProfile");
  const before = await target.call("usage");
  const value = await task();
  const after = await target.call("usage");
  if (profile) await target.call("stopProfile", profile);
  // The provider is shared, and has no probe.
  if (before === undefined) return { value, cpu: Number.NaN, peak: Number.NaN };
  return { value, cpu: after.cpu - before.cpu, peak: after.peak };
}
