/** In any order of events at a server, no call runs twice, and all works again once the server does. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { send } from "../support/chat-transports.ts";
import { call, say } from "../support/scripted-provider.ts";
import { eventually, startWith } from "./asking.ts";
import { startHttpServer, textResult, toolNamed } from "./http-server.ts";

const RUNS = Number(process.env.RUNS ?? 12);
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000);

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A small seeded random generator (mulberry32). */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

for (let run = 0; run < RUNS; run += 1) {
  const seed = SEED + run;
  test(`calls of several runs while a server forgets, breaks, ends and comes back (seed ${seed})`, async (t) => {
    const pick = random(seed);
    /** How often the server has executed each call. */
    const ran = new Map<string, number>();
    let opening = 0;
    let mostOpening = 0;
    let isMute = false;
    const tools = await startHttpServer(t, {
      unknown: pick(2) === 0 ? 400 : 404,
      tools: [toolNamed("count", { inputSchema: { type: "object", properties: { id: { type: "string" } } } })],
      instead: ({ method }, res) => {
        if (method === "initialize") {
          opening += 1;
          mostOpening = Math.max(mostOpening, opening);
          res.once("close", () => {
            opening -= 1;
          });
        }
        if (!isMute || method === "GET") return false;
        res.writeHead(500).end();
        return true;
      },
      call: async ({ params, gone }) => {
        const { id } = params.arguments;
        ran.set(id, (ran.get(id) ?? 0) + 1);
        if (pick(2) === 0) await Promise.race([gone, pause(200)]);
        return textResult(id);
      },
    });
    let ids = 0;
    const turns = Array.from({ length: 60 }, () => {
      const calls = Array.from({ length: 1 + pick(3) }, (_, index) =>
        call(`c${index}`, "own__count", { id: `${ids++}` }),
      );
      return [calls, [say("Done.")]];
    }).flat();
    const server = await startWith(t, { own: { url: tools.url, timeoutMs: 2_000 } }, { turns });
    const happenings = [
      () => tools.forget(),
      () => tools.cut(),
      () => tools.down(),
      () => tools.restart(),
      async () => {
        isMute = !isMute;
      },
    ];
    const ask = async () => {
      const { events } = await send.sse(t, server, { message: "Hi" });
      return events.flatMap((event) => (event.type === "tool_result" ? [event.data] : []));
    };
    for (let step = 0; step < 10; step += 1) {
      if (pick(3) > 0) {
        isMute = false;
        await tools.restart();
      }
      const asked = ask();
      for (let count = pick(3); count > 0; count -= 1) {
        await pause(pick(150));
        await happenings[pick(happenings.length)]?.();
      }
      for (const { status, output } of await asked) {
        if (status === "completed") assert.match(output, /^\d+$/);
        else assert.match(output, /cannot be reached|no tool named|may have been carried out|with the status/, output);
      }
      const twice = [...ran].filter(([, times]) => times > 1);
      assert.deepEqual(twice, [], "no call runs twice");
    }
    isMute = false;
    await tools.restart();
    await eventually(
      async () => (await ask()).every(({ status }) => status === "completed"),
      "a call that works again",
    );
    assert.equal(mostOpening, 1, "one session is opened at a time");
  });
}
