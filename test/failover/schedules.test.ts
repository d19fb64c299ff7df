/** Random schedules of lost connections, resumes at any server and killed servers: every event once and in order, or one error. */

import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { NumberedEvent } from "../../server/protocol/events.ts";
import { start } from "../support/command.ts";
import { NO_REDIS, startRedis } from "../support/redis-server.ts";
import { LINES, newRun, openLine } from "../support/run-lines.ts";

/** `SHARED_SEED` repeats a schedule, `SHARED_RUNS` says how many runs there are. */
const SEED = Number(process.env.SHARED_SEED ?? randomInt(1_000_000));
const RUNS = Number(process.env.SHARED_RUNS ?? 40);
const SERVERS = 3;

/** Mulberry32: the same numbers for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

test(`${RUNS} runs over random schedules, seed ${SEED}`, { skip: NO_REDIS, timeout: 300_000 }, async (t) => {
  const redis = await startRedis(t);
  const env = { PARLEY_REDIS_URL: redis.url, PARLEY_RESUME_SECONDS: "30", PARLEY_LOG: "off" };
  const launch = () => start(t, [], { env });
  const servers = await Promise.all(Array.from({ length: SERVERS }, launch));
  const random = randomFrom(SEED);
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
  let killed = 0;

  async function follow(): Promise<readonly NumberedEvent[]> {
    const run = newRun();
    const message = pick(["Show me Markdown", "Think about it", "What is the weather in Paris and Tokyo?"]);
    const events: NumberedEvent[] = [];
    for (let tries = 0; tries < 50; tries++) {
      try {
        const wish = events.length === 0 ? { message, run } : { resume: run, after: events.length };
        const line = await openLine[pick(LINES)](t, pick(servers), wish);
        const most = random() < 0.5 ? Number.POSITIVE_INFINITY : 1 + Math.floor(random() * 40);
        for (let taken = 0; taken < most; taken++) {
          const event = await line.next();
          events.push(event);
          if (event.type === "done" || event.type === "error") return events;
        }
        await line.cut();
      } catch {
        // Its server was killed, or is not there yet.
        await pause(100);
      }
    }
    return events;
  }

  const killing = (async () => {
    for (const index of [0, 1]) {
      await pause(400 + random() * 400);
      servers[index]?.command.kill("SIGKILL");
      killed++;
      servers[index] = await launch();
    }
  })();
  const all = await Promise.all(Array.from({ length: RUNS }, () => follow()));
  await killing;
  let lost = 0;
  for (const events of all) {
    const last = events.at(-1);
    assert.ok(last !== undefined, `seed ${SEED}: a run without an event`);
    assert.deepEqual(
      events.map(({ id }) => id),
      events.map((_event, index) => index + 1),
      `seed ${SEED}`,
    );
    if (last.type === "error") {
      assert.ok(["run_lost", "run_expired", "run_not_found"].includes(last.code), `seed ${SEED}: ${last.code}`);
      lost++;
    } else {
      assert.equal(last.type, "done", `seed ${SEED}`);
      const said = events.flatMap((event) => (event.type === "token" ? [event.data] : [])).join("");
      assert.ok(said.endsWith(last.data), `seed ${SEED}: the text is whole`);
    }
  }
  t.diagnostic(`${all.length} runs, ${lost} of them lost with ${killed} killed servers`);
});
