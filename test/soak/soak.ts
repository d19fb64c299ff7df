/**
 * `npm run soak -- --minutes N`: the built server in a separate process under all kinds of load at once: chats on three
 * transports, uploads, clients that leave, resumed runs, failing providers and tools. Exit code 1 if an answer was lost,
 * duplicated or wrong, or if the process holds more at the end than after the warm-up.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type Action, drop, json, resume, socket, sse, upload } from "./clients.ts";
import { KINDS, startUpstream } from "./upstream.ts";

const CLIENTS = 12;
const RESUME_SECONDS = 2;
const MIB = 1024 * 1024;

/** Maximum growth from the end of the warm-up to the end: far below that of one leaked run per thousand. */
const BOUNDS = { heapUsed: 8 * MIB, external: 8 * MIB, rss: 64 * MIB, descriptors: 3 };

interface Sample {
  rss: number;
  heapUsed: number;
  external: number;
  descriptors: number;
  /** Event loop delay in milliseconds since the previous sample. */
  delayP99: number;
  delayMax: number;
}

const AGENT = `import { defineAgent, tool } from "parley-agent";
const parameters = { type: "object", properties: { text: { type: "string" } } };
const make = (name, execute, more = {}) => tool({ name, description: name, parameters, execute, ...more });
export default defineAgent({
  name: "Soak",
  model: "compatible/soak",
  tools: [
    make("echo", ({ text }) => text),
    make("boom", () => { throw new Error("out of order"); }),
    make("hang", () => new Promise(() => {}), { timeoutMs: 50 }),
    make("huge", () => "x".repeat(${MIB})),
  ],
});
`;

const ENV = {
  PARLEY_IDLE_SECONDS: "3",
  PARLEY_RESUME_SECONDS: String(RESUME_SECONDS),
  PARLEY_RATE_PER_KEY: "0",
  PARLEY_RATE_PER_ADDRESS: "0",
  PARLEY_MAX_RUNS_PER_ADDRESS: "0",
  PARLEY_MAX_SOCKETS_PER_ADDRESS: "0",
};

const ACTIONS: readonly Action[] = [json, sse, socket, resume, drop, upload];

class Clients {
  readonly #server: string;
  #orders = 0;
  readonly wrong: string[] = [];

  constructor(server: string) {
    this.#server = server;
  }

  get orders(): number {
    return this.#orders;
  }

  /** Runs all clients until then; resolves when the last one has its answer. */
  async work(until: number): Promise<void> {
    const one = async () => {
      while (performance.now() < until) await this.#order(this.#orders++);
    };
    await Promise.all(Array.from({ length: CLIENTS }, one));
  }

  /** Combines each action with each kind in turn. */
  async #order(id: number): Promise<void> {
    const action = ACTIONS[id % ACTIONS.length] ?? json;
    const kind = KINDS[Math.floor(id / ACTIONS.length) % KINDS.length] ?? "text";
    const order = { id, kind, words: 20 + (id % 7) * 40 };
    try {
      await action(this.#server, order);
    } catch (error) {
      this.wrong.push(`${action.name} ${kind} (order ${id}): ${error}`);
    }
  }
}

async function start(folder: string, upstream: string): Promise<[ChildProcess, string]> {
  const probe = new URL("./probe.mjs", import.meta.url).href;
  const args = ["--expose-gc", "--import", probe, "dist/cli.js", "start", folder, "--port", "0"];
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...ENV, COMPATIBLE_BASE_URL: upstream },
    stdio: ["ignore", "pipe", "ignore", "ipc"],
  });
  let text = "";
  for await (const piece of child.stdout ?? []) {
    text += piece;
    const url = /^(http:\S+)\/$/m.exec(text)?.[1];
    if (url !== undefined) return [child, url];
  }
  throw new Error(`the server did not start: ${text}`);
}

async function ask(child: ChildProcess, wish: "now" | "settled"): Promise<Sample> {
  const answer = once(child, "message");
  child.send(wish);
  return (await answer)[0] as Sample;
}

/** Samples after everything temporary has ended: resumable runs and kept-alive connections. */
async function settled(child: ChildProcess): Promise<Sample> {
  const connectionsKept = 6_000;
  await delay(RESUME_SECONDS * 1000 + connectionsKept);
  return ask(child, "settled");
}

function print(when: string, orders: number, sample: Sample): void {
  const mib = (bytes: number) => `${(bytes / MIB).toFixed(1)} MiB`;
  console.log(
    [
      when.padEnd(14),
      `${orders} messages`.padStart(16),
      `heap ${mib(sample.heapUsed)}`,
      `rss ${mib(sample.rss)}`,
      `external ${mib(sample.external)}`,
      `${sample.descriptors} descriptors`,
      `event loop p99 ${sample.delayP99.toFixed(0)} ms, most ${sample.delayMax.toFixed(0)} ms`,
    ].join("  "),
  );
}

async function soak(minutes: number): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "parley-soak-"));
  writeFileSync(join(folder, "agent.ts"), AGENT);
  const upstream = await startUpstream();
  const [child, url] = await start(folder, upstream.url);
  try {
    const clients = new Clients(url);
    const began = performance.now();
    const end = began + minutes * 60_000;
    await clients.work(began + Math.min(30_000, minutes * 20_000));
    const before = await settled(child);
    print("after warm-up", clients.orders, before);
    while (performance.now() < end) {
      await clients.work(Math.min(end, performance.now() + 30_000));
      print(`${Math.round((performance.now() - began) / 1000)} s`, clients.orders, await ask(child, "now"));
    }
    const after = await settled(child);
    print("at the end", clients.orders, after);
    const grown = Object.entries(BOUNDS).filter(([name, most]) => {
      const figure = name as keyof typeof BOUNDS;
      return after[figure] - before[figure] > most;
    });
    for (const [name, most] of grown) console.log(`${name} grew by more than ${most}`);
    for (const line of clients.wrong.slice(0, 20)) console.log(`wrong: ${line}`);
    console.log(`${clients.orders} messages, ${clients.wrong.length} lost, doubled or wrong`);
    return grown.length === 0 && clients.wrong.length === 0;
  } finally {
    child.kill();
    upstream.close();
    rmSync(folder, { recursive: true });
  }
}

const { values } = parseArgs({ options: { minutes: { type: "string", default: "3" } } });
const minutes = Number(values.minutes);
if (!(minutes > 0)) {
  console.error("--minutes must be a number above 0.");
  process.exit(1);
}
process.exitCode = (await soak(minutes)) ? 0 : 1;
