import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { SseDecoder, type SseMessage } from "../../server/protocol/sse.ts";
import { fixture } from "../support/upstream-server.ts";

function decode(pieces: readonly Uint8Array[]): SseMessage[] {
  const utf8 = new TextDecoder();
  const sse = new SseDecoder();
  return pieces.flatMap((piece) => sse.feed(utf8.decode(piece, { stream: true })));
}

const NAMES = ["responses", "chat-completions"].flatMap((folder) =>
  readdirSync(new URL(`../fixtures/providers/${folder}`, import.meta.url)).map(
    (file) => `${folder}/${file.replace(/\.sse$/, "")}`,
  ),
);

test("there are recorded streams of both APIs to split", () => {
  assert.ok(NAMES.length >= 15, `only ${NAMES.length} fixtures`);
});

for (const name of NAMES) {
  test(`${name}: every split of its bytes in two gives the same events`, () => {
    const bytes = Buffer.from(fixture(name));
    const whole = decode([bytes]);
    assert.ok(whole.length > 1);
    const wanted = JSON.stringify(whole);
    for (let at = 1; at < bytes.length; at++) {
      const events = decode([bytes.subarray(0, at), bytes.subarray(at)]);
      assert.equal(JSON.stringify(events), wanted, `split at byte ${at}`);
    }
  });

  test(`${name}: LF, CR and CRLF line ends, byte by byte, give the same events`, () => {
    const lines = fixture(name).split(/\r?\n/);
    const wanted = decode([Buffer.from(lines.join("\n"))]);
    for (const lineEnd of ["\n", "\r", "\r\n"]) {
      const bytes = Buffer.from(lines.join(lineEnd));
      const pieces = Array.from(bytes, (byte) => Uint8Array.of(byte));
      assert.deepEqual(decode(pieces), wanted, `line end ${JSON.stringify(lineEnd)}`);
    }
  });
}
