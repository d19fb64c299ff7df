/** Ways in which an upstream can fail on the wire, byte by byte. */

import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { ErrorCode } from "../../server/protocol/errors.ts";
import { within } from "./deadline.ts";
import type { Cleanup } from "./start-server.ts";
import type { StreamedApi } from "./streamed-apis.ts";

export interface Fault {
  name: string;
  answer(socket: Socket, good: GoodAnswer): unknown;
  /** Expected end of the run; "done" if the client tolerates the fault. */
  end: ErrorCode | "done";
  /** Number of requests that the server makes. Default: 1. */
  tries?: number;
  /** For timeouts: whether the timeout occurs in the middle of the answer. */
  hasBegun?: boolean;
  /** Applies only to Bedrock's frames, or only to Server-Sent Events. */
  only?: "frames" | "events";
}

/** The parts of an answer without a fault. */
export interface GoodAnswer {
  /** The head of a response whose body ends with the connection. */
  ok: string;
  okInChunks: string;
  /** The bytes up to the first text, and the remaining bytes. */
  start: Buffer;
  rest: Buffer;
  /** The bytes up to the model's last word; usage and end markers may follow. */
  finished: Buffer;
  headers: Record<string, string>;
}

const MIB = 1024 * 1024;

type Row = [
  name: string,
  answer: Fault["answer"],
  end: Fault["end"],
  more?: Pick<Fault, "tries" | "hasBegun" | "only">,
];

const ROWS: Row[] = [
  ["resets the connection", (s) => s.resetAndDestroy(), "provider_error"],
  ["closes without a word", (s) => s.end(), "provider_error"],
  ["says nothing", () => {}, "provider_timeout"],
  ["stops inside the head", (s) => s.write("HTTP/1.1 200 OK\r\ncontent-ty"), "provider_timeout"],
  [
    "sends the head without coming to its end",
    (s) => trickle(s, "HTTP/1.1 200 OK\r\nx-filler: ", "x"),
    "provider_timeout",
  ],
  ["sends interim responses only", (s) => trickle(s, "", "HTTP/1.1 103 Early Hints\r\n\r\n"), "provider_timeout"],
  ["sends interim responses first", (s, { ok, start, rest }) => s.end(joined(INTERIM, ok, start, rest)), "done"],
  [
    "switches protocols",
    (s) => s.end("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
    "provider_error",
  ],
  ["falls silent after the head", (s, { ok }) => s.write(ok), "provider_timeout"],
  [
    "falls silent in the answer",
    (s, { ok, start }) => s.write(joined(ok, start)),
    "provider_timeout",
    { hasBegun: true },
  ],
  ["speaks no HTTP", (s) => s.end("SSH-2.0-OpenSSH_9.2\r\n"), "provider_error"],
  [
    "sends a head of any length",
    (s) => writeForEver(s, "HTTP/1.1 200 OK\r\n", `x-filler: ${"x".repeat(1000)}\r\n`),
    "provider_error",
  ],
  ["redirects", (s) => s.end(head("307 Temporary Redirect", { location: "http://127.0.0.1:9/" })), "provider_error"],
  ["has no content", (s) => s.end(head("204 No Content")), "provider_error"],
  [
    "sends a page with status 200",
    (s) => s.end(joined(head("200 OK", { "content-type": "text/html" }), "<h1>Welcome</h1>")),
    "provider_error",
  ],
  [
    "names another content type",
    (s, { start, rest }) => s.end(joined(head("200 OK", { "content-type": "text/plain" }), start, rest)),
    "provider_error",
    { only: "frames" },
  ],
  ...[{ "content-type": "application/json" }, { "content-type": "text/plain" }, {}].map(
    (headers): Row => [
      `sends its events under ${JSON.stringify(headers)}`,
      (s, { start, rest }) => byteByByte(s, { ok: head("200 OK", headers), start, rest }),
      "done",
      { only: "events" },
    ],
  ),
  [
    "says that the answer is compressed",
    (s, { headers, start, rest }) =>
      s.end(joined(head("200 OK", { ...headers, "content-encoding": "gzip" }), start, rest)),
    "provider_error",
  ],
  [
    "asks to wait for long",
    (s) => s.end(head("429 Too Many Requests", { "retry-after": "30" })),
    "provider_rate_limited",
  ],
  [
    "asks to wait and does not say how long",
    (s) => s.end(head("429 Too Many Requests")),
    "provider_rate_limited",
    { tries: 3 },
  ],
  [
    "refuses with a body without end",
    (s) => writeForEver(s, head("401 Unauthorized"), "x".repeat(10_000)),
    "provider_auth",
  ],
  ["refuses with a body that falls silent", (s) => s.write(`${head("401 Unauthorized")}{"err`), "provider_auth"],
  ["refuses with a body that is cut", (s) => s.end(`${chunkedHead("401 Unauthorized")}ff\r\n{"err`), "provider_auth"],
  [
    "announces more bytes than it sends",
    (s, { headers, start }) => s.end(joined(head("200 OK", { ...headers, "content-length": "100000" }), start)),
    "provider_truncated",
  ],
  [
    "writes a chunk that is none",
    (s, { okInChunks, start }) => s.end(joined(okInChunks, chunk(start), "no number\r\n")),
    "provider_truncated",
  ],
  ["resets the connection in the answer", (s, { ok, start }) => resetLater(s, joined(ok, start)), "provider_truncated"],
  ["resets the connection after its last word", (s, { ok, finished }) => resetLater(s, joined(ok, finished)), "done"],
  [
    "sends an event that is no JSON",
    (s, { ok, start }) => s.end(joined(ok, start, "data: {never\n\n")),
    "provider_error",
    { only: "events" },
  ],
  [
    "reports an error in a field of that name",
    (s, { ok, start }) => s.end(joined(ok, start, `error: ${OVERFLOW}\n\ndata: [DONE]\n\n`)),
    "context_too_long",
    { only: "events" },
  ],
  [
    "sends a line of 20 MiB",
    (s, { ok, start }) => s.write(joined(ok, start, "data: ", Buffer.alloc(20 * MIB, "x"))),
    "provider_error",
    { only: "events" },
  ],
  [
    "sends comments without end",
    (s, { ok }) => writeForEver(s, ok, `: ${"x".repeat(MIB)}\n\n`),
    "provider_error",
    { only: "events" },
  ],
  [
    "sends bytes that are no frames",
    (s, { ok, start }) => s.end(joined(ok, start, Buffer.alloc(1000))),
    "provider_error",
    { only: "frames" },
  ],
  [
    "announces a frame of 4 GiB",
    (s, { ok, start }) => writeForEver(s, joined(ok, start, Buffer.alloc(4, 255), Buffer.alloc(4)), Buffer.alloc(MIB)),
    "provider_error",
    { only: "frames" },
  ],
  ["sends a byte at a time", byteByByte, "done"],
];

export const FAULTS: Fault[] = ROWS.map(([name, answer, end, more]) => ({ name, answer, end, ...more }));

const OVERFLOW = '{"code":400,"message":"the request exceeds the available context size, try increasing it"}';

/** Not `100 Continue`: undici rejects it if the request did not ask for it. */
const INTERIM = "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </y>\r\n\r\n";

/** The API's answer without a fault. */
export function answerOf({ contentType, bytes, fixtures, startOf, finishOf }: StreamedApi): GoodAnswer {
  const all = bytes(fixtures.text);
  const split = startOf(all);
  const headers = { "content-type": contentType };
  return {
    headers,
    ok: head("200 OK", headers),
    okInChunks: chunkedHead("200 OK", headers),
    start: all.subarray(0, split),
    rest: all.subarray(split),
    finished: all.subarray(0, finishOf(all)),
  };
}

export function joined(...parts: readonly (string | Uint8Array)[]): Buffer {
  return Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part)));
}

/** Writes a little on each turn of the event loop until the client closes. */
async function trickle(socket: Socket, start: string, more: string): Promise<void> {
  socket.write(start);
  while (!socket.destroyed) {
    socket.write(more);
    await nextTurn();
  }
}

async function resetLater(socket: Socket, sent: Buffer): Promise<void> {
  socket.write(sent);
  // A reset discards unread bytes, and the reader is in this process.
  for (let turn = 0; turn < 3; turn++) await nextTurn();
  socket.resetAndDestroy();
}

async function byteByByte(
  socket: Socket,
  { ok, start, rest }: Pick<GoodAnswer, "ok" | "start" | "rest">,
): Promise<void> {
  socket.setNoDelay(true);
  for (const byte of joined(ok, start, rest)) {
    socket.write(Buffer.of(byte));
    await nextTurn();
  }
  socket.end();
}

// A model API on a bare socket: sends the bytes that a test wants, even if they are not HTTP.

/** Handles one request after it has arrived. */
export type Answer = (socket: Socket) => unknown;

export interface FaultyUpstream {
  /** As a base URL: ends in `/v1`. */
  readonly url: string;
  /** Number of requests so far. */
  readonly requests: number;
  /** Sets the handler of all further requests. */
  answer(answer: Answer): void;
  /** Resolves when no connection is open any more, whichever side closed it. */
  allClosed(): Promise<void>;
  /** Stops listening. */
  stop(): Promise<void>;
}

export async function startFaultyUpstream(t: Cleanup): Promise<FaultyUpstream> {
  const sockets = new Set<Socket>();
  let answer: Answer = (socket) => socket.destroy();
  let requests = 0;
  const server = createServer(async (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    // The client resets connections that it no longer needs.
    socket.on("error", () => {});
    await wholeRequest(socket);
    if (socket.destroyed) return;
    requests++;
    answer(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const stop = async () => {
    for (const socket of sockets) socket.destroy();
    if (!server.listening) return;
    server.close();
    await once(server, "close");
  };
  t.after(stop);
  return {
    url: `http://127.0.0.1:${address.port}/v1`,
    get requests() {
      return requests;
    },
    answer(next) {
      answer = next;
    },
    async allClosed() {
      // Not `once`, which rejects on a reset.
      const open = [...sockets].filter((socket) => !socket.closed);
      const ends = open.map((socket) => new Promise((closed) => socket.once("close", closed)));
      await within(Promise.all(ends), "the end of every connection");
    },
    stop,
  };
}

/** Resolves when the head and its announced body have been read, or the connection is closed. */
async function wholeRequest(socket: Socket): Promise<void> {
  let request = "";
  for (;;) {
    const [, length = "0"] = /\r\ncontent-length: (\d+)\r\n/i.exec(request) ?? [];
    const head = request.indexOf("\r\n\r\n");
    if (head !== -1 && request.length - head - 4 >= Number(length)) return;
    const piece = await new Promise<Buffer | undefined>((resolve) => {
      socket.once("data", resolve);
      socket.once("close", () => resolve(undefined));
    });
    if (piece === undefined) return;
    request += piece.toString("latin1");
  }
}

/** The head of a response whose body ends with the connection. */
export function head(status: string, headers: Readonly<Record<string, string>> = {}): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status}\r\nconnection: close\r\n${lines.join("")}\r\n`;
}

/** The head of a chunked response, whose missing end a client can detect. */
export function chunkedHead(status: string, headers: Readonly<Record<string, string>> = {}) {
  return head(status, { ...headers, "transfer-encoding": "chunked" });
}

/** One chunk of a chunked response. */
export function chunk(bytes: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);
}

/** Writes until the client closes the connection. */
export function writeForEver(socket: Socket, start: string | Uint8Array, piece: string | Uint8Array): void {
  const more = () => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.on("drain", more);
  socket.write(start);
  more();
}
