/** Every way in which an upstream can fail on the wire: one proper end, and the next message is answered. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { send, TRANSPORTS } from "../support/chat-transports.ts";
import { startFaultyUpstream } from "../support/faulty-upstream.ts";
import { startServer } from "../support/start-server.ts";
import { STREAMED_APIS } from "../support/streamed-apis.ts";
import { answerOf, FAULTS, joined } from "../support/wire-faults.ts";

for (const api of STREAMED_APIS) {
  const kind = api.contentType === "text/event-stream" ? "events" : "frames";
  const faults = FAULTS.filter(({ only = kind }) => only === kind);
  for (const [index, { name, answer, end, tries = 1 }] of faults.entries()) {
    // In turns, for what leaves the run is the same on all.
    const transport = TRANSPORTS[index % TRANSPORTS.length] ?? "json";
    test(`${api.name} upstream that ${name}: one ${end} over ${transport}, and the next message is answered`, async (t) => {
      const upstream = await startFaultyUpstream(t);
      const times = { firstChunk: 20_000, idle: 20_000 };
      const server = await startServer(t, { provider: await api.provider(upstream, times) });
      const good = answerOf(api);
      const heal = () =>
        upstream.answer((socket) => socket.end(joined(good.ok, good.start, good.rest)));

      heal();
      const first = await send.sse(t, server, { message: "Hi" });
      assert.ok(first.last.type === "done");
      const { state, data: answered } = first.last;

      const before = upstream.requests;
      upstream.answer((socket) => answer(socket, good));
      // Enough for a busy machine to send the request at all.
      if (end === "provider_timeout") Object.assign(times, { firstChunk: 500, idle: 100 });
      const { last, events } = await send[transport](t, server, { message: "And?", state });
      const said = events.map((event) => (event.type === "token" ? event.data : "")).join("");
      assert.ok(answered.startsWith(said), said);
      assert.equal(last.type === "error" ? last.code : last.type, end);
      assert.doesNotMatch(last.data, /127\.0\.0\.1|HTTP\/|HPE_|ECONN|sk-/);
      assert.equal(upstream.requests - before, tries);
      if (last.type === "error" && transport !== "json") assert.deepEqual(last.state, state);

      Object.assign(times, { firstChunk: 20_000, idle: 20_000 });
      heal();
      const { state: next = state } = last;
      const again = await send.sse(t, server, { message: "And now?", state: next });
      assert.equal(again.last.data, answered);
      await upstream.allClosed();
    });
  }
}
