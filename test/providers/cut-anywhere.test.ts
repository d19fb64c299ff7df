/**
 * Recorded streams, cut anywhere, with and without HTTP saying that something is missing: at the ends of lines and at
 * some bytes between, or at every byte with EVERY_BYTE set (`npm run test:cuts`), which takes a minute.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ModelEvent } from "../../server/providers/provider.ts";
import { chunk, chunkedHead, head, startFaultyUpstream } from "../support/faulty-upstream.ts";
import { STREAMED_APIS } from "../support/streamed-apis.ts";
import { ask, failureOf, open, PATIENT, said } from "../support/upstream-conversation.ts";

const TOOLS = ["get_weather", "get_time"].map((name) => ({
  name,
  description: "For a test.",
  parameters: { type: "object" },
}));

const callsIn = (events: readonly ModelEvent[]) =>
  events.flatMap((event) => (event.type === "call" ? [event.call] : []));

/** Lengths to cut the bytes to. The stride is prime, so that it falls on other places in each line. */
function cuts(all: Buffer): number[] {
  const stride = process.env.EVERY_BYTE === undefined ? 13 : 1;
  const isNear = (length: number) => all.subarray(Math.max(0, length - 2), length + 1).includes(10);
  return [...all.keys()].filter((length) => length % stride === 0 || isNear(length));
}

/** In one chunk of which the last is missing, or ended by the connection, in turns. */
function answer(part: Buffer, headers: Record<string, string>): Buffer {
  if (part.length % 2 === 1) return Buffer.concat([Buffer.from(head("200 OK", headers)), part]);
  const body = part.length === 0 ? [] : [chunk(part)];
  return Buffer.concat([Buffer.from(chunkedHead("200 OK", headers)), ...body]);
}

for (const { name, contentType, bytes, fixtures, provider } of STREAMED_APIS) {
  for (const kind of ["text", "calls"] as const) {
    test(`${name}: ${kind} cut at any byte has one end, says nothing wrong, and changes no state`, async (t) => {
      const upstream = await startFaultyUpstream(t);
      const model = await provider(upstream, PATIENT);
      const all = bytes(fixtures[kind]);
      const headers = { "content-type": contentType };
      const turn = async () => {
        const conversation = open(model, { tools: TOOLS });
        return { conversation, ...(await ask(conversation)) };
      };
      upstream.answer((socket) => socket.end(Buffer.concat([Buffer.from(head("200 OK", headers)), all])));
      const whole = await turn();
      assert.equal(whole.error, undefined);
      assert.equal(callsIn(whole.events).length > 1, kind === "calls");

      const ends = { broken: 0, whole: 0 };
      for (const length of cuts(all)) {
        upstream.answer((socket) => socket.end(answer(all.subarray(0, length), headers)));
        const cut = await turn();
        const at = `cut after ${length} of ${all.length} bytes`;
        assert.ok(said(whole).startsWith(said(cut)), at);
        const isEnd = cut.events.map(({ type }) => type === "end");
        if (cut.error === undefined) {
          // All that matters was there: what is missing is a last line without a meaning.
          ends.whole++;
          assert.deepEqual(isEnd.indexOf(true), isEnd.length - 1, at);
          assert.deepEqual(callsIn(cut.events), callsIn(whole.events), at);
          assert.equal(said(cut), said(whole), at);
        } else {
          ends.broken++;
          const { code, retryable } = failureOf(cut);
          assert.ok(code === "provider_truncated" || code === "provider_error", `${at}: ${code}`);
          assert.ok(retryable, at);
          assert.ok(!isEnd.includes(true), at);
          assert.deepEqual(cut.conversation.state(), {}, at);
        }
      }
      assert.ok(ends.broken > ends.whole, JSON.stringify(ends));
      await upstream.allClosed();
    });
  }
}
