/** Clients at one worker that do not read a run of the other one: nothing piles up, and in the end they are cut. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { gate, within } from "../support/deadline.ts";
import { listen } from "../support/listen.ts";
import { newRun } from "../support/run-lines.ts";
import type { Cleanup } from "../support/start-server.ts";
import { eventStream } from "../support/upstream-server.ts";
import { EventReader, startWorkers, textOf } from "../support/workers.ts";

const MIB = 1024 * 1024;

/** A model that says a word, and from `goOn` on talks as fast as it is taken from. */
async function startTalker(t: Cleanup, bytes: number) {
  const content = "x".repeat(16 * 1024);
  const piece = eventStream({ choices: [{ index: 0, delta: { content } }] });
  const last = { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
  const more = gate();
  let taken = 0;
  let over: (how: "ended" | "aborted") => void = () => {};
  const closed = new Promise<"ended" | "aborted">((resolve) => {
    over = resolve;
  });
  const server = createServer(async (req, res) => {
    req.resume();
    res.once("close", () => over(res.writableFinished ? "ended" : "aborted"));
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(eventStream({ choices: [{ index: 0, delta: { content: "A" } }] }));
    await more.opened;
    while (taken < bytes && !res.destroyed) {
      taken += content.length;
      if (!res.write(piece)) await Promise.race([once(res, "drain"), closed]);
    }
    res.end(eventStream(last, "[DONE]"));
  });
  const url = await listen(t, server);
  return { url: `${url}/v1`, closed, taken: () => taken, goOn: more.open };
}

const HI = { message: "Hi", stream: true };

test("a run that only a client at another worker reads, and does not, holds the model back, and ends when that client is cut", async (t) => {
  const model = await startTalker(t, 256 * MIB);
  const { lines } = await startWorkers(t, {
    env: {
      TEST_MODEL: "compatible/talker",
      COMPATIBLE_BASE_URL: model.url,
      PARLEY_SEND_SECONDS: "3",
      PARLEY_RESUME_SECONDS: "0.2",
    },
  });
  const [here, there] = lines;
  const run = newRun();
  const first = new EventReader(await here.chat({ ...HI, run }));
  const seen = await first.next();
  const headers = { "last-event-id": String(seen?.id) };
  const deaf = await there.ask(`/api/chat/runs/${run}`, { headers });
  assert.equal(deaf.statusCode, 200);
  first.cut();
  model.goOn();
  assert.equal(await within(model.closed, "the end of the model's answer"), "aborted");
  assert.ok(model.taken() < 32 * MIB, `${model.taken()} bytes were taken from the model`);
  await assert.rejects(textOf(deaf), /aborted/);
});

test("a client that does not read at another worker does not hold up the one that does, and is cut when the run leaves it behind", async (t) => {
  const model = await startTalker(t, 16 * MIB);
  const { lines } = await startWorkers(t, {
    env: {
      TEST_MODEL: "compatible/talker",
      COMPATIBLE_BASE_URL: model.url,
      PARLEY_RESUME_BYTES: String(MIB),
      PARLEY_MAX_HISTORY_BYTES: String(64 * MIB),
    },
  });
  const [here, there] = lines;
  const run = newRun();
  const lively = new EventReader(await here.chat({ ...HI, run }));
  const seen = await lively.next();
  const headers = { "last-event-id": String(seen?.id) };
  const deaf = await there.ask(`/api/chat/runs/${run}`, { headers });
  assert.equal(deaf.statusCode, 200);
  model.goOn();
  const done = (await lively.until("done")).at(-1);
  assert.equal(done?.type === "done" && done.data.length, 16 * MIB + 1);
  await assert.rejects(textOf(deaf), /aborted/);
});
