import assert from "node:assert/strict";
import { test } from "node:test";
import { say } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { startServer } from "../support/start-server.ts";

/** Sizes of a message around which RFC 6455, 5.2, writes its length in another form. */
const SIZES = [125, 126, 127, 65_535, 65_536, 65_537];

test("frames of every form of length come whole and in order, with characters of one to four bytes", async (t) => {
  const texts = SIZES.map((size, index) => {
    const empty = JSON.stringify({ type: "token", data: "", id: index + 1 });
    const start = "aé€😀";
    return start + "x".repeat(size - Buffer.byteLength(empty + start));
  });
  const server = await startServer(t, { turns: [texts.map(say)] });
  const client = await connect(t, server.socketUrl);
  const sizes: number[] = [];
  client.socket.on("message", (data: Buffer) => sizes.push(data.byteLength));
  const events = await client.run({ message: "Hi" });
  const tokens = events.filter(({ type }) => type === "token").map(({ data }) => data);
  assert.deepEqual(tokens, texts);
  assert.deepEqual(sizes.slice(0, SIZES.length), SIZES);
});
