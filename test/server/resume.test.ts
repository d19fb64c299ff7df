/** Runs that outlive the line they were started on, over SSE and WebSocket. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { NumberedEvent } from "../../server/protocol/events.ts";
import { gate } from "../support/deadline.ts";
import { LINES, newRun, openLine } from "../support/run-lines.ts";
import { call, say, type Turn, think, wait } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { echo } from "../support/test-tools.ts";

/** Thinking, two tools at once, and text that comes in pieces. */
const TURNS: Turn[] = [
  [
    think("Hm"),
    think("m."),
    say("Let me see."),
    call("c1", "echo", { text: "a" }),
    call("c2", "echo", { text: "b" }),
  ],
  [say("It "), say("is “a”"), say(" and b 👋.")],
];

const SETUP = { turns: TURNS, agent: { tools: [echo] } };

function timeless(events: readonly NumberedEvent[]): unknown[] {
  return events.map((event) =>
    event.type === "tool_result" ? { ...event, data: { ...event.data, duration_ms: 0 } } : event,
  );
}

for (const kind of LINES) {
  test(`a run whose line is cut after any of its events is read on without a gap or a double (${kind})`, async (t) => {
    const whole = await (
      await openLine[kind](t, await startServer(t, SETUP), { message: "Hi" })
    ).rest();
    assert.deepEqual(
      whole.map(({ id }) => id),
      whole.map((_event, index) => index + 1),
    );
    for (let seen = 0; seen < whole.length; seen++) {
      const server = await startServer(t, SETUP);
      const run = newRun();
      const first = await openLine[kind](t, server, { message: "Hi", run });
      const events: NumberedEvent[] = [];
      while (events.length < seen) events.push(await first.next());
      await first.cut();
      const again = seen === 0 ? { message: "Hi", run } : { resume: run, after: seen };
      const second = await openLine[seen % 2 === 0 ? "sse" : "socket"](t, server, again);
      events.push(...(await second.rest()));
      assert.deepEqual(timeless(events), timeless(whole));
      assert.equal(server.model.asked.length, 2, "the model was asked once for each turn");
    }
  });
}

test("a run goes on while nobody reads, and all of it is there for who comes back", async (t) => {
  const held = gate();
  const server = await startServer(t, { turns: [[say("A"), wait(held.opened), say("B")]] });
  const run = newRun();
  const first = await openLine.socket(t, server, { message: "Hi", run });
  await first.next();
  await first.cut();
  held.open();
  const second = await openLine.sse(t, server, { resume: run, after: 1 });
  assert.deepEqual(
    (await second.rest()).map(({ type }) => type),
    ["token", "done"],
  );
});
