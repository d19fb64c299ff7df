/** The check that one process, or a server with workers, holds 10,000 idle sockets and 2,000 running streams without an error. */

import { readFileSync } from "node:fs";
import { round, writeTable } from "./report.mjs";
import { residentOfAll } from "./resident.mjs";
import { startTarget, startWorkers, takesWorkers } from "./targets.mjs";

const SOCKETS = 10_000;
/** Half of them on sockets. */
const STREAMS = 2000;
/** What two cores can carry for all processes: the number of streams is the point here. */
const RATE = 4;
const TOKENS = 100;
const MIB = 2 ** 20;

/** A socket for each, two for a stream, and some for the rest. */
const FILES_NEEDED = SOCKETS + 2 * STREAMS + 500;

/** @throws Error when something was lost or refused. */
export async function checkScale({ targets, workers }, surroundings, tell) {
  checkOpenFiles();
  const rows = [];
  for (const spec of targets.filter(({ transports }) => transports.includes("ws"))) {
    tell({ scenario: "scale", target: spec.name });
    const withWorkers = workers !== undefined && takesWorkers(spec);
    const target = await (withWorkers
      ? startWorkers(spec, surroundings.provider.url, workers)
      : startTarget(spec, surroundings.provider.url));
    const title = withWorkers ? `${spec.title}, workers: ${workers}` : spec.title;
    try {
      rows.push([title, ...(await measure(target, memoryOf(target, withWorkers), surroundings))]);
    } finally {
      await target.stop();
      await surroundings.load.call("closeIdle");
    }
  }
  const head = ["", "idle sockets", "MiB", "whole streams", "tokens", "age p99, ms", "MiB then"];
  return `### ${SOCKETS} idle sockets and ${STREAMS} streams\n\n${writeTable(head, rows)}`;
}

/** `idle` after a collection of garbage, which only the probe can ask for. */
function memoryOf(target, withWorkers) {
  if (withWorkers) {
    const all = async () => residentOfAll(target.pid);
    return { idle: all, busy: all };
  }
  return {
    idle: () => target.call("settle"),
    busy: async () => (await target.call("usage")).rss,
  };
}

async function measure(target, memory, { load }) {
  await load.call("openIdle", target.url, SOCKETS);
  const idle = await memory.idle();
  const half = { count: STREAMS / 2, order: { tokens: TOKENS, rate: RATE }, spreadMs: 5000 };
  const groups = [];
  for (const transport of ["sse", "ws"]) {
    groups.push(await load.call("openGroup", { base: target.url, transport }));
  }
  await Promise.all(groups.map((group) => load.call("add", group, half)));
  for (const group of groups) await load.call("mark", group);
  const rss = await memory.busy();
  const counts = await Promise.all(groups.map((group) => load.call("finish", group, TOKENS)));
  const read = await Promise.all(groups.map((group) => load.call("read", group)));
  const open = await load.call("countIdle");
  if (open !== SOCKETS) throw new Error(`${SOCKETS - open} of ${SOCKETS} idle sockets were closed`);
  const whole = counts.reduce((sum, count) => sum + count, 0);
  const age = Math.max(...read.map((one) => one.age.p99));
  return [open, idle / MIB, whole, whole * TOKENS, age, rss / MIB].map(round);
}

/** Node raises the soft limit to the hard one by itself. */
function checkOpenFiles() {
  let limit;
  try {
    const limits = readFileSync("/proc/self/limits", "utf8");
    limit = Number(/^Max open files +\S+ +(\d+)/m.exec(limits)?.[1]);
  } catch {
    return;
  }
  if (limit >= FILES_NEEDED) return;
  throw new Error(
    `A process may open ${limit} files here, and ${FILES_NEEDED} are needed. Run: ulimit -n ${FILES_NEEDED}`,
  );
}
