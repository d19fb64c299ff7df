/** Actions of the soak test's clients, each of which verifies that nothing was lost or duplicated. */

import { randomUUID } from "node:crypto";
import { Agent, type IncomingMessage, request } from "node:http";
import { createParser } from "eventsource-parser";
import { WebSocket } from "ws";
import type { NumberedEvent, SocketEvent } from "../../server/protocol/events.ts";
import { answerTo, CALLED, type Kind, messageOf, type Order } from "./upstream.ts";

/** A PNG of about a megabyte, of which only the header is valid. */
const FILE = Buffer.alloc(1024 * 1024);
Buffer.from("89504e470d0a1a0a0000000d49484452", "hex").copy(FILE);
const attachments = [{ type: "image", name: "a.png", mime_type: "image/png", data: FILE.toString("base64") }];

/** Expected end of each kind of message. */
const ENDS: Record<Kind, string> = {
  text: "done",
  tools: "done",
  "busy-once": "done",
  cut: "provider_truncated",
  reset: "provider_truncated",
  page: "provider_error",
  garbage: "provider_error",
  busy: "provider_overloaded",
  limited: "provider_rate_limited",
  silent: "provider_timeout",
};

/** Follows the events of one run, over any number of connections. */
class Following {
  after = 0;
  #text = "";
  #results = 0;
  #end: string | undefined;
  readonly #order: Order;

  constructor(order: Order) {
    this.#order = order;
  }

  get hasEnded(): boolean {
    return this.#end !== undefined;
  }

  take(event: NumberedEvent): void {
    if (event.id !== this.after + 1) throw new Error(`event ${event.id} follows ${this.after}`);
    if (this.hasEnded) throw new Error(`${event.type} follows the end`);
    this.after = event.id;
    if (event.type === "token") this.#text += event.data;
    if (event.type === "tool_result") this.#results++;
    if (event.type === "done") this.#end = "done";
    if (event.type === "error") this.#end = event.code;
  }

  /** Throws if the answer is not the expected one. */
  prove(): void {
    const { kind } = this.#order;
    if (this.#end !== ENDS[kind]) throw new Error(`${kind} ended with ${this.#end ?? "nothing"}`);
    const whole = answerTo(this.#order);
    const isRight = this.#end === "done" ? this.#text === whole : whole.startsWith(this.#text);
    if (!isRight) throw new Error(`${kind} said ${this.#text.length} of ${whole.length} characters`);
    if (kind === "tools" && this.#results !== CALLED.length) throw new Error("a result is missing");
  }
}

export type Action = (server: string, order: Order) => Promise<void>;

// No connection reuse, so that the number of descriptors shows leaks rather than pools.
const agent = new Agent({ keepAlive: false });

function open(server: string, method: string, path: string, body?: unknown, headers = {}) {
  return new Promise<IncomingMessage>((resolve, reject) => {
    const options = { method, agent, headers: { "content-type": "application/json", ...headers } };
    request(`${server}${path}`, options, resolve)
      .once("error", reject)
      .end(body === undefined ? undefined : JSON.stringify(body));
  });
}

export async function json(server: string, order: Order, more = {}): Promise<void> {
  const body = { message: messageOf(order), stream: false, ...more };
  const answer = await open(server, "POST", "/api/chat", body);
  const { response, error } = JSON.parse(Buffer.concat(await answer.toArray()).toString());
  const end = answer.statusCode === 200 ? "done" : error.code;
  if (end !== ENDS[order.kind]) throw new Error(`${order.kind} ended with ${end}`);
  if (end === "done" && response !== answerTo(order)) throw new Error("another answer");
}

/** Reads until the end, or disconnects once `isEnough`. */
async function readStream(answer: IncomingMessage, run: Following, isEnough = () => false) {
  if (answer.statusCode !== 200) throw new Error(`status ${answer.statusCode}`);
  const parser = createParser({ onEvent: ({ data }) => run.take(JSON.parse(data)) });
  try {
    for await (const piece of answer.setEncoding("utf8")) {
      parser.feed(piece);
      if (isEnough()) return answer.destroy();
    }
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ECONNRESET")) throw error;
  }
  return undefined;
}

export async function sse(server: string, order: Order, more = {}): Promise<void> {
  const run = new Following(order);
  await readStream(await open(server, "POST", "/api/chat", { message: messageOf(order), stream: true, ...more }), run);
  run.prove();
}

export const upload: Action = (server, order) => (order.id % 2 === 0 ? json : sse)(server, order, { attachments });

/** Disconnects in the middle and never returns. */
export const drop: Action = async (server, order) => {
  const run = new Following(order);
  const answer = await open(server, "POST", "/api/chat", { message: messageOf(order), stream: true });
  await readStream(answer, run, () => run.after > 3);
};

/** Loses its connection repeatedly, and resumes over the other transport each time. */
export const resume: Action = async (server, order) => {
  const run = new Following(order);
  const id = randomUUID();
  const body = { message: messageOf(order), stream: true, run: id };
  const enough = () => {
    const until = run.after + 15;
    return () => run.after >= until;
  };
  await readStream(await open(server, "POST", "/api/chat", body), run, enough());
  for (let line = 0; !run.hasEnded; line++) {
    if (line % 2 === 0) {
      await follow(server, { type: "resume", run: id, after: run.after }, run, enough());
      continue;
    }
    const headers = { "last-event-id": String(run.after) };
    await readStream(await open(server, "GET", `/api/chat/runs/${id}`, undefined, headers), run, enough());
  }
  run.prove();
};

export const socket: Action = async (server, order) => {
  const run = new Following(order);
  await follow(server, { message: messageOf(order) }, run, () => false);
  run.prove();
};

/** Sends one message on a new socket, and reads until the run ends or `isEnough`. */
function follow(server: string, message: unknown, run: Following, isEnough: () => boolean) {
  return new Promise<void>((resolve, reject) => {
    const line = new WebSocket(`${server.replace("http", "ws")}/ws/chat`);
    line.on("open", () => line.send(JSON.stringify(message)));
    line.on("message", (data) => {
      if (line.readyState !== WebSocket.OPEN) return;
      try {
        const event: SocketEvent = JSON.parse(String(data));
        if (!("id" in event)) throw new Error(`${event.type}: ${event.data}`);
        run.take(event as NumberedEvent);
        if (run.hasEnded || isEnough()) line.terminate();
      } catch (error) {
        reject(error);
        line.terminate();
      }
    });
    line.on("error", reject);
    line.on("close", () => resolve());
  });
}
