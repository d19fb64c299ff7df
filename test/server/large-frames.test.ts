/** Large frames reach `ws` in pieces; what it makes of them, and what it refuses, stays what it was. */

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, request } from "node:http";
import type { Duplex } from "node:stream";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import { type WebSocket, WebSocketServer } from "ws";
import { FrameSplitter, splitLargeFrames } from "../../server/http/frame-splitter.ts";
import { within } from "../support/deadline.ts";
import { listen } from "../support/listen.ts";

const TEXT = 0x1;
const BINARY = 0x2;
const CLOSE = 0x8;
const PING = 0x9;
const LARGE = 300_001;
const MAX = 1024 * 1024;

/** A client's frame. */
function frame(opcode: number, payload: Buffer, { fin = true, isMasked = true, rsv = 0 } = {}): Buffer {
  const first = (fin ? 0x80 : 0) | rsv | opcode;
  const mask = isMasked ? 0x80 : 0;
  const { length } = payload;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = first;
  head[1] = mask | (length < 126 ? length : length < 65_536 ? 126 : 127);
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
  if (!isMasked) return Buffer.concat([head, payload]);
  const key = randomBytes(4);
  const masked = payload.map((byte, at) => byte ^ (key[at % 4] ?? 0));
  return Buffer.concat([head, key, masked]);
}

/** What a server behind the splitter was told, until the connection was over. */
interface Heard {
  messages: [length: number, isBinary: boolean][];
  pings: number;
  code: number;
}

async function hear(t: TestContext, bytes: Buffer, cuts: readonly number[] = []): Promise<Heard> {
  const sockets = new WebSocketServer({ noServer: true, maxPayload: MAX });
  const http = createServer();
  const closed = new Promise<Heard>((resolve) => {
    http.on("upgrade", (req, connection: Duplex, head) => {
      sockets.handleUpgrade(req, connection, head, (socket: WebSocket) => {
        let isText = false;
        const textBegins = () => {
          isText = true;
        };
        splitLargeFrames(connection, MAX, { received: () => {}, textBegins });
        const heard: Heard = { messages: [], pings: 0, code: 0 };
        socket.on("error", () => {});
        socket.on("ping", () => heard.pings++);
        socket.on("message", (data: Buffer, isBinary) => {
          assert.ok(data.every((byte) => byte === 0x61));
          heard.messages.push([data.length, isBinary && !isText]);
          isText = false;
        });
        socket.on("close", (code) => resolve({ ...heard, code }));
      });
    });
  });
  const url = await listen(t, http);
  const headers = {
    connection: "upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": randomBytes(16).toString("base64"),
  };
  const req = request(url, { headers }).end();
  const [, connection] = (await once(req, "upgrade")) as [unknown, Duplex];
  connection.on("error", () => {}).resume();
  let from = 0;
  for (const to of [...cuts, bytes.length]) {
    await new Promise((resolve) => connection.write(bytes.subarray(from, to), resolve));
    from = to;
  }
  const heard = await within(closed, "the end of the connection");
  connection.destroy();
  return heard;
}

const bytes = (length: number) => Buffer.alloc(length, "a");
const bye = frame(CLOSE, Buffer.from([0x03, 0xe8]));

const CASES: [name: string, frames: Buffer[], heard: Heard][] = [
  [
    "texts and binaries, small, large and empty, come whole and in order",
    [
      frame(TEXT, bytes(5)),
      frame(TEXT, bytes(LARGE)),
      frame(BINARY, bytes(LARGE)),
      frame(TEXT, bytes(0)),
      frame(TEXT, bytes(70_000)),
      bye,
    ],
    {
      messages: [
        [5, false],
        [LARGE, false],
        [LARGE, true],
        [0, false],
        [70_000, false],
      ],
      pings: 0,
      code: 1000,
    },
  ],
  [
    "fragments of which some are large are one message, and pings between them are heard",
    [
      frame(TEXT, bytes(3), { fin: false }),
      frame(PING, bytes(2)),
      frame(0, bytes(LARGE), { fin: false }),
      frame(PING, bytes(2)),
      frame(0, bytes(LARGE)),
      bye,
    ],
    { messages: [[2 * LARGE + 3, false]], pings: 2, code: 1000 },
  ],
  [
    "what follows a close frame is not read",
    [frame(TEXT, bytes(LARGE)), bye, frame(TEXT, bytes(LARGE)), frame(TEXT, bytes(1))],
    { messages: [[LARGE, false]], pings: 0, code: 1000 },
  ],
  [
    "a frame that is larger than a message may be is refused by its header",
    [frame(TEXT, bytes(MAX + 1)).subarray(0, 14)],
    { messages: [], pings: 0, code: 1006 },
  ],
  [
    "a large fragment that makes the message too large is refused by its header",
    [frame(TEXT, bytes(MAX - 10), { fin: false }), frame(0, bytes(LARGE)).subarray(0, 14)],
    { messages: [], pings: 0, code: 1006 },
  ],
  [
    "a large frame without a mask is refused",
    [frame(TEXT, bytes(LARGE), { isMasked: false })],
    { messages: [], pings: 0, code: 1006 },
  ],
  [
    "a large frame with a bit that nobody agreed on is refused",
    [frame(TEXT, bytes(LARGE), { rsv: 0x40 })],
    { messages: [], pings: 0, code: 1006 },
  ],
];

for (const [name, frames, heard] of CASES) {
  test(name, async (t) => assert.deepEqual(await hear(t, Buffer.concat(frames)), heard));
}

test("a header that comes byte by byte is read", async (t) => {
  const first = frame(TEXT, bytes(4));
  const all = Buffer.concat([first, frame(TEXT, bytes(LARGE)), bye]);
  const cuts = Array.from({ length: 16 }, (_, at) => first.length + at);
  const { messages } = await hear(t, all, cuts);
  assert.deepEqual(messages, [
    [4, false],
    [LARGE, false],
  ]);
});

test("wherever chunks end, the frames hold the same payloads, and no large one is left", () => {
  const lengths = fc.array(fc.integer({ min: 0, max: 400_000 }), { minLength: 1, maxLength: 4 });
  const sizes = fc.array(fc.integer({ min: 1, max: 200_000 }), { minLength: 1, maxLength: 6 });
  const check = (payloads: readonly number[], chunks: readonly number[]) => {
    const given = Buffer.concat(payloads.map((length) => frame(BINARY, bytes(length))));
    const passed: Buffer[] = [];
    const splitter = new FrameSplitter(
      MAX,
      (piece) => passed.push(Buffer.from(piece)),
      () => {},
    );
    for (let at = 0, turn = 0; at < given.length; turn++) {
      const size = chunks[turn % chunks.length] ?? 1;
      splitter.push(given.subarray(at, at + size));
      at += size;
    }
    const read = readFrames(Buffer.concat(passed));
    assert.ok(read.every(({ length }) => length <= 128 * 1024));
    const whole: number[] = [];
    let sum = 0;
    for (const { length, fin } of read) {
      sum += length;
      if (fin) whole.push(sum);
      if (fin) sum = 0;
    }
    assert.deepEqual(whole, payloads);
  };
  fc.assert(fc.property(lengths, sizes, check), { numRuns: 40 });
});

/** The frames in these bytes, unmasked and looked at. */
function readFrames(all: Buffer): { length: number; fin: boolean }[] {
  const frames: { length: number; fin: boolean }[] = [];
  for (let at = 0; at < all.length; ) {
    const short = (all[at + 1] ?? 0) & 0x7f;
    const size = short === 126 ? 4 : short === 127 ? 10 : 2;
    const length = size === 2 ? short : size === 4 ? all.readUInt16BE(at + 2) : Number(all.readBigUInt64BE(at + 2));
    const key = all.subarray(at + size, at + size + 4);
    const payload = all.subarray(at + size + 4, at + size + 4 + length);
    assert.ok(payload.every((byte, index) => (byte ^ (key[index % 4] ?? 0)) === 0x61));
    frames.push({ length, fin: ((all[at] ?? 0) & 0x80) !== 0 });
    at += size + 4 + length;
  }
  return frames;
}
