/** A chat server with scripted events, for what real servers do not send. HTTP and WebSocket on a free port. */

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { type WebSocket, WebSocketServer } from "ws";
import type { AgentInfo } from "../../server/protocol/chat.ts";
import type { NumberedEvent, StreamEvent } from "../../server/protocol/events.ts";
import { encodeFrame } from "../../server/protocol/sse.ts";
import { atEnd } from "../support/at-end.ts";
import { within } from "../support/deadline.ts";

export const INFO: AgentInfo = {
  name: "Acme Support",
  agent: "Concierge",
  auth_required: false,
  welcome: "Hi! What can I do for you?",
  suggestions: ["What can you do?"],
  continue: true,
  attachments: {
    media_types: ["image/png", "application/pdf"],
    max_bytes: 20 * 1024 * 1024,
    max_text_bytes: 1024 * 1024,
    max_count: 2,
  },
  max_body_bytes: 64 * 1024 * 1024,
};

export interface ScriptOptions {
  info?: Partial<AgentInfo>;
  /** The key that the server requires; default: none. */
  key?: string;
  /** Whether the server is down at the moment. */
  isDown?: () => boolean;
  /** `false` rejects every upgrade, like a proxy without WebSocket support. A function is called for each upgrade. */
  socket?: boolean | (() => boolean);
  /** Upgrades wait for this promise. */
  upgrade?: () => Promise<unknown>;
}

/** One received message, with the functions to answer it. */
export interface Turn {
  body: Record<string, unknown>;
  over: "socket" | "http";
  authorization: string | undefined;
  send(...events: StreamEvent[]): void;
  /** Cuts the connection without a close frame. The run continues: a client that resumes it gets later events. */
  cut(): void;
  /** Forgets the run, as servers do after a while. */
  forget(): void;
  /** Resolves when the connection is closed. */
  gone: Promise<unknown>;
}

export interface ScriptedServer {
  url: string;
  /** The next received message that was not taken yet. */
  turn(): Promise<Turn>;
  /** The next `stop`, `clear` or `resume` on a socket, or `resume` or `cancel` over HTTP. */
  control(): Promise<string>;
  /** Keys of all opened sockets. */
  readonly dialled: (string | null)[];
  /** Cuts all sockets, like a restart; with a code, closes them without further events. */
  cutSockets(code?: number): Promise<void>;
}

export const token = (data: string): StreamEvent => ({ type: "token", data });

export const done = (data: string, state = {}): StreamEvent => ({ type: "done", data, state, finish_reason: "stop" });

/** One run: its events so far, and the connections that receive the next ones. */
class ScriptedRun {
  readonly #events: NumberedEvent[] = [];
  readonly #readers = new Set<(event: NumberedEvent) => void>();

  readonly send = (...events: StreamEvent[]) => {
    for (const event of events) {
      const numbered = { ...event, id: this.#events.length + 1 };
      this.#events.push(numbered);
      for (const write of this.#readers) write(numbered);
    }
  };

  attach(after: number, write: (event: NumberedEvent) => void): void {
    this.#events.slice(after).forEach(write);
    this.#readers.add(write);
  }
}

export async function startScriptedServer(t: TestContext, options: ScriptOptions = {}): Promise<ScriptedServer> {
  const turns = channel<Turn>();
  const controls = channel<string>();
  const dialled: (string | null)[] = [];
  const runs = new Map<string, ScriptedRun>();
  const isRight = (key: string | null | undefined) => options.key === undefined || key === options.key;
  const takesSockets = () => (typeof options.socket === "function" ? options.socket() : options.socket !== false);

  /** Answers a message with a new run, or resumes a known run. */
  const begin = (turn: Omit<Turn, "send" | "forget">, write: (event: NumberedEvent) => void) => {
    const id = String(turn.body.run);
    const known = runs.get(id);
    const run = known ?? new ScriptedRun();
    runs.set(id, run);
    run.attach(0, write);
    if (!known) turns.push({ ...turn, send: run.send, forget: () => runs.delete(id) });
  };

  const answerSocket = (socket: WebSocket) => {
    // One function per socket, so that a run does not send an event to the socket twice.
    const send = (event: object) => socket.send(JSON.stringify(event));
    socket.on("message", (data) => {
      const body = JSON.parse(String(data));
      if (body.type !== undefined) controls.push(body.type);
      if (body.type === "clear") send({ type: "cleared", data: "" });
      if (body.type === "resume") {
        const known = runs.get(body.run);
        if (known) known.attach(body.after, send);
        else send({ type: "error", data: "no such run", code: "run_not_found", retryable: false });
      }
      if (body.type !== undefined) return;
      const cut = () => socket.terminate();
      begin({ body, over: "socket", authorization: undefined, cut, gone: once(socket, "close") }, send);
    });
  };

  const answerHttp = async (req: IncomingMessage, res: ServerResponse) => {
    const [, id = "", cancel] = /^\/api\/chat\/runs\/([^/]+)(\/cancel)?$/.exec(req.url ?? "") ?? [];
    const known = runs.get(id);
    if (id !== "" && (cancel || !known)) {
      if (cancel && known) controls.push("cancel");
      const error = { code: "run_not_found", message: "no such run" };
      res.writeHead(known ? 200 : 404).end(JSON.stringify(known ? {} : { error }));
      return;
    }
    let text = "";
    for await (const chunk of req) text += chunk;
    res.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    res.flushHeaders();
    const write = (event: NumberedEvent) => {
      res.write(encodeFrame(event));
      if (event.type === "done" || event.type === "error") res.end();
    };
    if (known) {
      controls.push("resume");
      known.attach(Number(req.headers["last-event-id"]), write);
      return;
    }
    const { authorization } = req.headers;
    const cut = () => res.destroy();
    begin({ body: JSON.parse(text), over: "http", authorization, cut, gone: once(res, "close") }, write);
  };

  const http = createServer((req, res) => {
    res.setHeader("access-control-allow-origin", "*");
    if (options.isDown?.()) req.socket.destroy();
    else if (req.url === "/api/info") {
      const auth_required = options.key !== undefined;
      res.end(JSON.stringify({ ...INFO, auth_required, ...options.info }));
    } else if (isRight(req.headers.authorization?.replace("Bearer ", ""))) void answerHttp(req, res);
    else res.writeHead(401).end(JSON.stringify({ error: { code: "unauthorized", message: "a key is needed" } }));
  });
  const sockets = new WebSocketServer({ noServer: true });
  http.on("upgrade", async (req, stream, head) => {
    await options.upgrade?.();
    if (options.isDown?.()) stream.destroy();
    else if (!takesSockets()) stream.end("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n");
    else {
      sockets.handleUpgrade(req, stream, head, (socket) => {
        const key = new URL(req.url ?? "/", "http://x").searchParams.get("key");
        dialled.push(key);
        if (isRight(key)) answerSocket(socket);
        else refuse(socket);
      });
    }
  });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  atEnd(t, () => {
    // An element still in the page would reconnect at once, and its connection would keep the process alive.
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
    async cutSockets(code) {
      const closed = [...sockets.clients].map((socket) => once(socket, "close"));
      for (const socket of sockets.clients) code ? socket.close(code) : socket.terminate();
      await Promise.all(closed);
    },
  };
}

function refuse(socket: WebSocket): void {
  const event = { type: "error", data: "a key is needed", code: "unauthorized", retryable: false };
  socket.send(JSON.stringify(event));
  socket.close(4401);
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
    next: () => {
      const value = new Promise<T>((resolve) => {
        const first = values.shift();
        if (first === undefined) readers.push(resolve);
        else resolve(first);
      });
      return within(value, "the next message to the server");
    },
  };
}
