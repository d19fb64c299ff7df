/**
 * Random schedules of lost connections and resumes at any server, while servers or Redis fail: every event arrives once and in
 * order, or there is one error.
 */

import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { NumberedEvent } from "../../server/protocol/events.ts";
import { type StartedCommand, start } from "../support/command.ts";
import { randomFrom } from "../support/random.ts";
import { NO_REDIS, type RedisServer, startRedis } from "../support/redis-server.ts";
import { type Relay, startRelay } from "../support/relay.ts";
import { LINES, newRun, openLine } from "../support/run-lines.ts";
import type { Cleanup } from "../support/start-server.ts";

/** `SHARED_SEED` repeats a schedule; `SHARED_RUNS` is the number of runs. */
const SEED = Number(process.env.SHARED_SEED ?? randomInt(1_000_000));
const RUNS = Number(process.env.SHARED_RUNS ?? 40);
const SERVERS = 3;

/** Each run ends within so many milliseconds, even on a slow machine. */
const END_MS = 80_000;

interface Scene {
  redis: RedisServer;
  /** The connection of all servers to Redis. */
  way: Relay;
  servers: StartedCommand[];
  launch(): Promise<StartedCommand>;
  /** Waits a random time between the two, in milliseconds. */
  between(least: number, most: number): Promise<void>;
}

/** Failures while clients read. After each, all runs could continue. */
const FAILURES: Record<string, (scene: Scene) => Promise<void>> = {
  async "killed servers"({ servers, launch, between }) {
    for (const index of [0, 1]) {
      await between(400, 800);
      servers[index]?.command.kill("SIGKILL");
      servers[index] = await launch();
    }
  },
  async "frozen servers"({ servers, between }) {
    for (const server of servers) {
      await between(200, 600);
      server.command.kill("SIGSTOP");
      await between(500, 3000);
      server.command.kill("SIGCONT");
    }
  },
  async "a Redis that is killed and comes back empty"({ redis, between }) {
    for (let time = 0; time < 2; time++) {
      await between(300, 900);
      await redis.kill();
      await between(100, 1500);
      await redis.restart();
    }
  },
  async "a Redis that freezes"({ redis, between }) {
    for (let time = 0; time < 3; time++) {
      await between(200, 800);
      redis.freeze();
      await between(200, 2500);
      redis.thaw();
    }
  },
  async "a slow Redis"({ way, between }) {
    // A command may take 500 ms: with a delay of 300 every command is late, with 240 hardly any is.
    for (const ms of [50, 240, 300, 20]) {
      way.delay(ms);
      await between(400, 1200);
    }
    way.delay(0);
  },
  async "connections to Redis that are cut"({ way, between }) {
    for (let time = 0; time < 5; time++) {
      await between(200, 700);
      way.cut();
    }
  },
};

for (const [failure, fail] of Object.entries(FAILURES)) {
  const name = `${failure}: ${RUNS} runs over a random schedule, seed ${SEED}`;
  test(name, { skip: NO_REDIS, timeout: 110_000 }, async (t) => {
    const redis = await startRedis(t);
    const way = await startRelay(t, redis.port);
    const env = {
      PARLEY_REDIS_URL: way.url.replace("http:", "redis:"),
      PARLEY_RESUME_SECONDS: "30",
      PARLEY_LOG: "off",
    };
    const launch = () => start(t, [], { env });
    const servers = await Promise.all(Array.from({ length: SERVERS }, launch));
    const random = randomFrom(SEED);
    const between = (least: number, most: number) => pause(least + random() * (most - least));
    // If Redis answered too late, only the run's own server knows it, and the run dies with that server.
    const mayBeForgotten = failure === "killed servers";
    const readers = Array.from({ length: RUNS }, () => follow(t, servers, random, mayBeForgotten));
    const [all] = await Promise.all([Promise.all(readers), fail({ redis, way, servers, launch, between })]);
    const lost = all.filter((events) => hasFailed(events)).length;
    t.diagnostic(`${all.length} runs, ${lost} of them lost`);
  });
}

/** Reads a run to its end, over connections to random servers, some of which it cuts. */
async function follow(
  t: Cleanup,
  servers: readonly StartedCommand[],
  random: () => number,
  mayBeForgotten: boolean,
): Promise<NumberedEvent[]> {
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
  const run = newRun();
  const message = pick(["Show me Markdown", "Think about it", "What is the weather in Paris and Tokyo?"]);
  const events: NumberedEvent[] = [];
  const until = performance.now() + END_MS;
  const failures = new Map<string, number>();
  const unknownTo = new Set<StartedCommand>();
  while (performance.now() < until) {
    const server = pick(servers);
    try {
      const wish = events.length === 0 ? { message, run } : { resume: run, after: events.length };
      const line = await openLine[pick(LINES)](t, server, wish);
      const most = random() < 0.5 ? Number.POSITIVE_INFINITY : 1 + Math.floor(random() * 40);
      for (let taken = 0; taken < most; taken++) {
        const event = await line.next();
        events.push(event);
        unknownTo.clear();
        if (event.type === "done" || event.type === "error") return events;
      }
      await line.cut();
    } catch (error) {
      // Every failure must be reported in time.
      if (/did not come within/.test(String(error))) throw error;
      // The server was killed, is frozen, or does not know the run without Redis.
      failures.set(String(error), (failures.get(String(error)) ?? 0) + 1);
      if (/run_not_found|404 !== 200/.test(String(error))) unknownTo.add(server);
      if (mayBeForgotten && servers.every((it) => unknownTo.has(it))) {
        const [id, data] = [events.length + 1, "No server knows the run."];
        return [...events, { type: "error", id, data, code: "run_not_found", retryable: false }];
      }
      await pause(100);
    }
  }
  throw new Error(
    `seed ${SEED}: run ${run} never ended, after ${events.length} events: ${JSON.stringify([...failures])}`,
  );
}

/** Asserts that each event arrived once and in order. Returns whether the last one is an error. */
function hasFailed(events: readonly NumberedEvent[]): boolean {
  const last = events.at(-1);
  assert.ok(last !== undefined, `seed ${SEED}: a run without an event`);
  const ids = events.map(({ id }) => id);
  const expected = events.map((_event, index) => index + 1);
  assert.deepEqual(ids, expected, `seed ${SEED}`);
  if (last.type === "error") {
    assert.ok(["run_lost", "run_expired", "run_not_found"].includes(last.code), `seed ${SEED}: ${last.code}`);
    return true;
  }
  assert.equal(last.type, "done", `seed ${SEED}`);
  const said = events.flatMap((event) => (event.type === "token" ? [event.data] : [])).join("");
  assert.ok(said.endsWith(last.data), `seed ${SEED}: the text is whole`);
  return false;
}
