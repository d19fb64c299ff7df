/** A chat server whose answers a test scripts, event by event. Real HTTP and WebSocket on a free port. */

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { type WebSocket, WebSocketServer } from "ws";
import type { AgentInfo } from "../../server/protocol/chat.ts";
import { type EncodedEvent, encodeEvent } from "../../server/protocol/encoded-event.ts";
import type { SocketEvent, StreamEvent } from "../../server/protocol/events.ts";
import { encodeFrame } from "../../server/protocol/sse.ts";

export const INFO: AgentInfo = {
  name: "Acme Support",
  agent: "Concierge",
  auth_required: false,
  welcome: "Hi! What can I do for you?",
  suggestions: ["What can you do?"],
  attachments: {
    media_types: ["image/png", "application/pdf"],
    max_bytes: 20 * 1024 * 1024,
    max_count: 2,
  },
};

export interface ScriptOptions {
  info?: Partial<AgentInfo>;
  /** The key to ask for; none lets everybody in. */
  key?: string;
  /** Whether nobody answers at the moment. */
  isDown?: () => boolean;
  /** `false` refuses every upgrade, as a proxy that knows no WebSocket does. */
  socket?: boolean;
}

/** One message that the server received, and the means to answer it. */
export interface Turn {
  body: Record<string, unknown>;
  over: "socket" | "http";
  authorization: string | undefined;
  send(...events: StreamEvent[]): void;
  /** Cuts the line without a word. The run goes on: what is sent meanwhile is there for who comes back. */
  cut(): void;
  /** Forgets the run, as a server does that nobody came back to. */
  forget(): void;
  /** Resolves when the client has gone (HTTP) or has sent this message (socket). */
  gone: Promise<unknown>;
}

export interface ScriptedServer {
  url: string;
  /** The next message that is not taken yet. */
  turn(): Promise<Turn>;
  /** The next `stop`, `clear` or `resume` on a socket, or `resume` or `cancel` over HTTP. */
  control(): Promise<string>;
  /** Keys with which sockets were opened. */
  readonly dialled: (string | null)[];
  /** Cuts all sockets, as a restart would. */
  cutSockets(): Promise<void>;
}

export const token = (data: string): StreamEvent => ({ type: "token", data });

export const done = (data: string, state = {}): StreamEvent => ({
  type: "done",
  data,
  state,
  finish_reason: "stop",
});

export async function startScriptedServer(
  t: TestContext,
  options: ScriptOptions = {},
): Promise<ScriptedServer> {
  const turns = channel<Turn>();
  const controls = channel<string>();
  const dialled: (string | null)[] = [];
  const runs: Runs = new Map();
  const isRight = (key: string | null | undefined) =>
    options.key === undefined || key === options.key;

  const http = createServer((req, res) => {
    res.setHeader("access-control-allow-origin", "*");
    if (options.isDown?.()) {
      req.socket.destroy();
      return;
    }
    if (req.url === "/api/info") {
      const auth_required = options.key !== undefined;
      res.end(JSON.stringify({ ...INFO, auth_required, ...options.info }));
    } else if (isRight(req.headers.authorization?.replace("Bearer ", ""))) {
      void answerHttp(req, res, runs, turns.push, controls.push);
    } else {
      const error = { code: "unauthorized", message: "a key is needed" };
      res.writeHead(401).end(JSON.stringify({ error }));
    }
  });
  const sockets = new WebSocketServer({ noServer: true });
  http.on("upgrade", (req, stream, head) => {
    if (options.isDown?.()) {
      stream.destroy();
      return;
    }
    if (options.socket === false) {
      stream.end("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n");
      return;
    }
    sockets.handleUpgrade(req, stream, head, (socket) => {
      const key = new URL(req.url ?? "/", "http://x").searchParams.get("key");
      dialled.push(key);
      if (isRight(key)) answerSocket(socket, runs, turns.push, controls.push);
      else refuse(socket);
    });
  });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  t.after(() => {
    // An element that is still in the page dials again at once, and its line would keep the process.
    http.prependListener("connection", (connection) => connection.destroy());
    for (const socket of sockets.clients) socket.terminate();
    http.closeAllConnections();
    http.close();
  });
  const { port } = http.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    turn: turns.next,
    control: controls.next,
    dialled,
    async cutSockets() {
      const closed = [...sockets.clients].map((socket) => once(socket, "close"));
      for (const socket of sockets.clients) socket.terminate();
      await Promise.all(closed);
    },
  };
}

function refuse(socket: WebSocket): void {
  const event = { type: "error", data: "a key is needed", code: "unauthorized", retryable: false };
  socket.send(JSON.stringify(event));
  socket.close(4401);
}

/** One run: its events so far, and whoever hears them now. */
class ScriptedRun {
  readonly #events: EncodedEvent[] = [];
  #reader: ((event: EncodedEvent) => void) | undefined;

  readonly send = (...events: StreamEvent[]) => {
    for (const event of events) {
      const encoded = encodeEvent(event, this.#events.length + 1);
      this.#events.push(encoded);
      this.#reader?.(encoded);
    }
  };

  attach(after: number, reader: (event: EncodedEvent) => void): void {
    this.#events.slice(after).forEach(reader);
    this.#reader = reader;
  }
}

type Runs = Map<string, ScriptedRun>;

const NOT_FOUND = { code: "run_not_found", message: "no such run" };

function answerSocket(
  socket: WebSocket,
  runs: Runs,
  onTurn: (turn: Turn) => void,
  onControl: (type: string) => void,
): void {
  const write = ({ json }: EncodedEvent) => socket.send(json);
  const send = (event: SocketEvent) => socket.send(JSON.stringify(event));
  socket.on("message", (data) => {
    const body = JSON.parse(String(data));
    if (body.type === "clear") send({ type: "cleared", data: "" });
    if (body.type === "resume") {
      const { code, message } = NOT_FOUND;
      const known = runs.get(body.run);
      if (known) known.attach(body.after, write);
      else socket.send(JSON.stringify({ type: "error", data: message, code, retryable: false }));
    }
    if (body.type !== undefined) {
      onControl(body.type);
      return;
    }
    const known = runs.get(body.run);
    if (known) {
      known.attach(0, write);
      return;
    }
    const run = new ScriptedRun();
    runs.set(body.run, run);
    run.attach(0, write);
    onTurn({
      body,
      over: "socket",
      authorization: undefined,
      send: run.send,
      cut: () => socket.terminate(),
      forget: () => runs.delete(body.run),
      gone: once(socket, "close"),
    });
  });
}

async function answerHttp(
  req: IncomingMessage,
  res: ServerResponse,
  runs: Runs,
  onTurn: (turn: Turn) => void,
  onControl: (type: string) => void,
): Promise<void> {
  const [, id = "", cancel] = /^\/api\/chat\/runs\/([^/]+)(\/cancel)?$/.exec(req.url ?? "") ?? [];
  const known = runs.get(id);
  if (id !== "" && (cancel || !known)) {
    if (cancel && known) onControl("cancel");
    res.writeHead(known ? 200 : 404).end(JSON.stringify(known ? {} : { error: NOT_FOUND }));
    return;
  }
  let text = "";
  for await (const chunk of req) text += chunk;
  res.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  res.flushHeaders();
  const write = (event: EncodedEvent) => {
    res.write(encodeFrame(event));
    if (event.type === "done" || event.type === "error") res.end();
  };
  if (known) {
    onControl("resume");
    known.attach(Number(req.headers["last-event-id"]), write);
    return;
  }
  const body = JSON.parse(text);
  const run = new ScriptedRun();
  runs.set(body.run, run);
  run.attach(0, write);
  onTurn({
    body,
    over: "http",
    authorization: req.headers.authorization,
    send: run.send,
    cut: () => res.destroy(),
    forget: () => runs.delete(body.run),
    gone: once(res, "close"),
  });
}

function channel<T>(): { push: (value: T) => void; next: () => Promise<T> } {
  const values: T[] = [];
  const readers: ((value: T) => void)[] = [];
  return {
    push(value) {
      const reader = readers.shift();
      if (reader) reader(value);
      else values.push(value);
    },
    next: () =>
      new Promise((resolve) => {
        const value = values.shift();
        if (value === undefined) readers.push(resolve);
        else resolve(value);
      }),
  };
}
