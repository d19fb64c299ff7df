/** Connections to named runs, which a test can cut at any point. */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createParser } from "eventsource-parser";
import type { NumberedEvent, SocketEvent } from "../../server/protocol/events.ts";
import { post } from "./chat-transports.ts";
import { DEADLINE_MS, within } from "./deadline.ts";
import { connect } from "./socket-client.ts";
import type { Cleanup, TestServer } from "./start-server.ts";

export type Address = Pick<TestServer, "url" | "socketUrl">;

/** A connection over which a run's events arrive. */
export interface RunLine {
  /** The next event; fails if the connection ends before. */
  next(): Promise<NumberedEvent>;
  /** All events up to and including `done` or `error`. */
  rest(): Promise<NumberedEvent[]>;
  /** Cuts the connection, like a network failure. */
  cut(): Promise<void>;
}

/** The request: a message, or the events of a run after the event `after`. */
export type Wish = { message?: string; run?: string; [field: string]: unknown } | { resume: string; after: number };

export interface LineOptions {
  key?: string;
}

export type OpenLine = (t: Cleanup, server: Address, wish: Wish, options?: LineOptions) => Promise<RunLine>;

export const LINES = ["sse", "socket"] as const;
export const openLine: Record<(typeof LINES)[number], OpenLine> = { sse, socket };

export const newRun = (): string => randomUUID();

async function sse(t: Cleanup, server: Address, wish: Wish, options = {}): Promise<RunLine> {
  const answer = await ask(t, server, wish, options);
  assert.equal(answer.status, 200);
  const events: NumberedEvent[] = [];
  const parser = createParser({ onEvent: ({ data }) => events.push(JSON.parse(data)) });
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  assert.ok(reader);
  return line(
    async () => {
      while (events.length === 0) {
        const { done, value } = await within(reader.read(), "the next event of the stream");
        assert.ok(!done, "the stream ended before its run");
        parser.feed(value);
      }
      return events.shift();
    },
    () => reader.cancel(),
  );
}

/** The same request as `sse`, for tests of its error responses. */
export async function ask(t: Cleanup, { url }: Address, wish: Wish, { key }: LineOptions = {}): Promise<Response> {
  const leaving = new AbortController();
  t.after(() => leaving.abort());
  const signal = AbortSignal.any([leaving.signal, AbortSignal.timeout(DEADLINE_MS)]);
  const authorization: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  if ("resume" in wish) {
    const headers = { "last-event-id": String(wish.after), ...authorization };
    return fetch(`${url}/api/chat/runs/${wish.resume}`, { headers, signal });
  }
  return post({ url }, { stream: true, ...wish }, { headers: authorization, signal });
}

async function socket(t: Cleanup, server: Address, wish: Wish, { key }: LineOptions = {}): Promise<RunLine> {
  const query = key === undefined ? "" : `?key=${key}`;
  const client = await connect(t, `${server.socketUrl}${query}`);
  client.socket.on("error", (error: NodeJS.ErrnoException) => {
    // A server or proxy that is killed may reset its open connections instead of closing them.
    if (error.code !== "ECONNRESET" && error.code !== "EPIPE") throw error;
  });
  client.send("resume" in wish ? { type: "resume", run: wish.resume, after: wish.after } : wish);
  return line(
    async () => {
      const event = await client.next();
      assert.ok(isNumbered(event), `an event of a run, not ${JSON.stringify(event)}`);
      return event;
    },
    async () => client.socket.terminate(),
  );
}

function isNumbered(event: SocketEvent): event is NumberedEvent {
  return "id" in event;
}

function line(next: () => Promise<NumberedEvent | undefined>, cut: () => Promise<void>): RunLine {
  const one = async () => {
    const event = await next();
    assert.ok(event);
    return event;
  };
  return {
    next: one,
    cut,
    async rest() {
      const events: NumberedEvent[] = [];
      for (;;) {
        const event = await one();
        events.push(event);
        if (event.type === "done" || event.type === "error") return events;
      }
    },
  };
}

type Read = (t: Cleanup, server: Address, wish: Wish & { run: string }) => Promise<string>;

/** All bytes that a client receives of a run, including those after it resumes the run. */
export const readBytes: Record<"json" | "sse" | "socket", Read> = {
  async json(_t, server, { run: _run, ...wish }) {
    const answer = await post(server, { ...wish, stream: false });
    return JSON.stringify([...answer.headers]) + (await answer.text());
  },
  async sse(t, server, wish) {
    const answer = await post(server, { ...wish, stream: true });
    const first = await answer.text();
    const again = await (await openLine.sse(t, server, { resume: wish.run, after: 0 })).rest();
    return JSON.stringify([...answer.headers]) + first + JSON.stringify(again);
  },
  async socket(t, server, wish) {
    const client = await connect(t, server.socketUrl);
    let frames = "";
    client.socket.on("message", (frame) => {
      frames += String(frame);
    });
    client.send(wish);
    for (let type = ""; type !== "done" && type !== "error"; ) ({ type } = await client.next());
    const again = await (await openLine.socket(t, server, { resume: wish.run, after: 0 })).rest();
    return frames + JSON.stringify(again);
  },
};
