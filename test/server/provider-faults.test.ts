/** Every way in which an upstream can fail on the wire: one proper end, and the next message is answered. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { send, TRANSPORTS } from "../support/chat-transports.ts";
import { within } from "../support/deadline.ts";
import { startFaultyUpstream } from "../support/faulty-upstream.ts";
import { startServer } from "../support/start-server.ts";
import { stopClock } from "../support/stopped-clock.ts";
import { STREAMED_APIS } from "../support/streamed-apis.ts";
import { turns } from "../support/turns.ts";
import { answerOf, FAULTS, joined } from "../support/wire-faults.ts";

/** For the first chunk and for each after it: far longer than anything here takes. */
const LIMIT_MS = 20_000;

for (const api of STREAMED_APIS) {
  const kind = api.contentType === "text/event-stream" ? "events" : "frames";
  const faults = FAULTS.filter(({ only = kind }) => only === kind);
  for (const [index, fault] of faults.entries()) {
    const { name, answer, end, tries = 1, hasBegun = false } = fault;
    // In turns, for what leaves the run is the same on all.
    const transport = TRANSPORTS[index % TRANSPORTS.length] ?? "json";
    test(`${api.name} upstream that ${name}: one ${end} over ${transport}, and the next message is answered`, async (t) => {
      const upstream = await startFaultyUpstream(t);
      const times = { firstChunk: LIMIT_MS, idle: LIMIT_MS };
      const server = await startServer(t, { provider: await api.provider(upstream, times) });
      const good = answerOf(api);
      const heal = () => upstream.answer((socket) => socket.end(joined(good.ok, good.start, good.rest)));

      heal();
      const first = await send.sse(t, server, { message: "Hi" });
      assert.ok(first.last.type === "done");
      const { state, data: answered } = first.last;

      const before = upstream.requests;
      const faulted = new Promise<void>((resolve) => {
        upstream.answer((socket) => {
          void answer(socket, good);
          resolve();
        });
      });
      const clock = end === "provider_timeout" ? stopClock(t) : undefined;
      const sent = send[transport](t, server, { message: "And?", state });
      if (clock !== undefined) {
        await within(faulted, "the request");
        // What has been said by then comes as well; nothing that comes halfway makes the limit a longer one.
        for (const half of [LIMIT_MS / 2, LIMIT_MS / 2]) {
          await turns();
          clock.tick(half);
        }
      }
      const { last, events } = await within(sent, "the end of the run");
      if (clock !== undefined) {
        assert.match(last.data, hasBegun ? /stopped sending in the middle/ : /did not answer/);
      }
      const said = events.map((event) => (event.type === "token" ? event.data : "")).join("");
      assert.ok(answered.startsWith(said), said);
      assert.equal(last.type === "error" ? last.code : last.type, end);
      assert.doesNotMatch(last.data, /127\.0\.0\.1|HTTP\/|HPE_|ECONN|sk-/);
      assert.equal(upstream.requests - before, tries);
      if (last.type === "error" && transport !== "json") assert.deepEqual(last.state, state);

      heal();
      const { state: next = state } = last;
      const again = await send.sse(t, server, { message: "And now?", state: next });
      assert.equal(again.last.data, answered);
      await upstream.allClosed();
    });
  }
}
