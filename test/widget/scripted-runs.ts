/** The runs of a scripted server: what was said in each, and the two transports that hear it. */

import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { WebSocket } from "ws";
import type { NumberedEvent, SocketEvent, StreamEvent } from "../../server/protocol/events.ts";
import { encodeFrame } from "../../server/protocol/sse.ts";

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

/** One run: its events so far, and whoever hears them now. */
class ScriptedRun {
  readonly #events: NumberedEvent[] = [];
  #reader: ((event: NumberedEvent) => void) | undefined;

  readonly send = (...events: StreamEvent[]) => {
    for (const event of events) {
      const numbered = { ...event, id: this.#events.length + 1 };
      this.#events.push(numbered);
      this.#reader?.(numbered);
    }
  };

  attach(after: number, reader: (event: NumberedEvent) => void): void {
    this.#events.slice(after).forEach(reader);
    this.#reader = reader;
  }
}

/** By the name that the client gave. */
export type Runs = Map<string, ScriptedRun>;

const NOT_FOUND = { code: "run_not_found", message: "no such run" };

/** Takes what a socket says until it closes. */
export function answerSocket(
  socket: WebSocket,
  runs: Runs,
  onTurn: (turn: Turn) => void,
  onControl: (type: string) => void,
): void {
  const write = (event: NumberedEvent) => socket.send(JSON.stringify(event));
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

/** Answers one request: a new run, or one that is known already. */
export async function answerHttp(
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
  const write = (event: NumberedEvent) => {
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
