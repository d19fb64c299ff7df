/** A chat server whose answers a test scripts, event by event. Real HTTP and WebSocket on a free port. */

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { type WebSocket, WebSocketServer } from "ws";
import type { AgentInfo } from "../../server/protocol/chat.ts";
import type { StreamEvent } from "../../server/protocol/events.ts";
import { within } from "../support/deadline.ts";
import { answerHttp, answerSocket, type Runs, type Turn } from "./scripted-runs.ts";

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
  max_body_bytes: 64 * 1024 * 1024,
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

export interface ScriptedServer {
  url: string;
  /** The next message that is not taken yet. */
  turn(): Promise<Turn>;
  /** The next `stop`, `clear` or `resume` on a socket, or `resume` or `cancel` over HTTP. */
  control(): Promise<string>;
  /** Keys with which sockets were opened. */
  readonly dialled: (string | null)[];
  /** Cuts all sockets, as a restart would; with a code, closes them and says no more. */
  cutSockets(code?: number): Promise<void>;
}

export const token = (data: string): StreamEvent => ({ type: "token", data });

export const done = (data: string, state = {}): StreamEvent => ({
  type: "done",
  data,
  state,
  finish_reason: "stop",
});

export async function startScriptedServer(t: TestContext, options: ScriptOptions = {}): Promise<ScriptedServer> {
  const turns = channel<Turn>();
  const controls = channel<string>();
  const dialled: (string | null)[] = [];
  const runs: Runs = new Map();
  const isRight = (key: string | null | undefined) => options.key === undefined || key === options.key;

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
