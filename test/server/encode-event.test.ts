import assert from "node:assert/strict";
import { test } from "node:test";
import type { StreamEvent } from "../../server/protocol/events.ts";
import { encodeEvent } from "../../server/runs/encode-event.ts";

test("a piece of text is encoded as JSON.stringify does, with its size in UTF-8, whatever is in it", () => {
  const single = Array.from({ length: 0x300 }, (_, code) => String.fromCharCode(code));
  const pieces = ["", "a", "😀", "\u2028", "\ud800", "日本語", "x".repeat(64), "x".repeat(65), ...single];
  for (const piece of pieces) {
    for (const data of [piece, `a${piece}`, `${piece}a`, `a${piece}a`.repeat(40)]) {
      for (const type of ["token", "thinking"] as const) {
        const { json, bytes } = encodeEvent({ type, data }, 12);
        assert.equal(json, JSON.stringify({ type, data, id: 12 }));
        assert.equal(bytes, Buffer.byteLength(json));
      }
    }
  }
});

test("what is no text, against its type, is not made one", () => {
  const event = { type: "token", data: 7 } as unknown as StreamEvent;
  assert.equal(encodeEvent(event, 1).json, '{"type":"token","data":7,"id":1}');
});
