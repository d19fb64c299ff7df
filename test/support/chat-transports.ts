/** Sends the same message over JSON, SSE and WebSocket, with clients that share no code with the server. */

import assert from "node:assert/strict";
import { createParser } from "eventsource-parser";
import type { ConversationState } from "../../server/protocol/chat.ts";
import type { ErrorBody } from "../../server/protocol/errors.ts";
import type { DoneEvent, ErrorEvent, NumberedEvent, StreamEvent } from "../../server/protocol/events.ts";
import { DEADLINE_MS } from "./deadline.ts";
import { connect } from "./socket-client.ts";
import { type Cleanup, type ServerOptions, startServer, type TestServer } from "./start-server.ts";

export const TRANSPORTS = ["json", "sse", "socket"] as const;
export type TransportName = (typeof TRANSPORTS)[number];

export interface ChatMessage {
  message?: string;
  approvals?: unknown;
  continue?: unknown;
  run?: string;
  state?: unknown;
  attachments?: unknown;
  metadata?: unknown;
}

/** The result of one run, as a client saw it. */
export interface Outcome {
  /** HTTP status; 101 for the WebSocket. */
  status: number;
  /** All events as sent; for JSON only the last event, rebuilt from the body. */
  events: StreamEvent[];
  last: DoneEvent | ErrorEvent;
  headers: Headers;
  /** `tool_calls` of the JSON form. */
  toolCalls?: unknown[];
}

/** The addresses of a server. */
export type Address = Pick<TestServer, "url" | "socketUrl">;

type Send = (t: Cleanup, server: Address, message: ChatMessage) => Promise<Outcome>;

export const send: Record<TransportName, Send> = { json, sse, socket };

/** Posts a chat request; a body that is not a string is sent as JSON. */
export function post(
  server: Pick<Address, "url">,
  body: unknown,
  init: Omit<RequestInit, "body" | "method"> = {},
): Promise<Response> {
  return fetch(`${server.url}/api/chat`, {
    signal: AbortSignal.timeout(DEADLINE_MS),
    ...init,
    method: "POST",
    headers: { "content-type": "application/json", ...init.headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

/** The sender: a page with this key, behind a proxy that forwards this address. */
export interface From {
  key?: string;
  address?: string;
}

export function askFrom(server: Pick<Address, "url">, { key, address }: From = {}): Promise<Response> {
  const headers = {
    ...(key === undefined ? {} : { authorization: `Bearer ${key}`, origin: "https://x.example" }),
    ...(address === undefined ? {} : { "x-forwarded-for": address }),
  };
  return post(server, { message: "Hi", stream: false }, { headers });
}

/** Like `send.json`, but accepts another time limit than `DEADLINE_MS`. */
export async function json(
  _t: Cleanup,
  server: Address,
  message: ChatMessage,
  init: Pick<RequestInit, "signal"> = {},
): Promise<Outcome> {
  const response = await post(server, { ...message, stream: false }, init);
  const body = JSON.parse(await response.text());
  const { status, headers } = response;
  if (status !== 200) {
    const last = refusal(body);
    return { status, events: [last], last, headers };
  }
  assert.equal(body.done, true);
  const { response: data, done: _done, tool_calls: toolCalls = [], ...rest } = body;
  const last: DoneEvent = { ...rest, type: "done", data };
  return { status, events: [last], last, headers, toolCalls };
}

/** Converts an HTTP error to the event that a stream would have sent. */
function refusal({ error: { message, ...error }, ...beside }: ErrorBody): ErrorEvent {
  return { type: "error", data: message, ...error, ...beside };
}

async function sse(_t: Cleanup, server: Address, message: ChatMessage): Promise<Outcome> {
  const response = await post(server, { ...message, stream: true });
  const { status, headers } = response;
  const text = await response.text();
  if (status !== 200) {
    const last = refusal(JSON.parse(text));
    return { status, events: [last], last, headers };
  }
  const events = readEventStream(text);
  return { status, events, last: terminal(events), headers };
}

async function socket(t: Cleanup, server: Address, message: ChatMessage): Promise<Outcome> {
  const client = await connect(t, server.socketUrl);
  const events: StreamEvent[] = [];
  for (const event of await client.run(message)) {
    assert.ok(event.type !== "cleared");
    events.push(numbered(event, "id" in event ? events.length + 1 : undefined));
  }
  client.socket.close();
  await client.closed;
  assert.deepEqual(client.unread, [], "nothing follows the last event of a run");
  return { status: 101, events, last: terminal(events), headers: new Headers() };
}

/**
 * Decodes a whole stream that begins after the event `after`. Asserts that the fields `event` and `id` match the JSON
 * and that the ids count up; returns the events without ids.
 */
export function readEventStream(text: string, after = 0): StreamEvent[] {
  const events: StreamEvent[] = [];
  const parser = createParser({
    onEvent({ event, data, id }) {
      const parsed: NumberedEvent = JSON.parse(data);
      assert.equal(event, parsed.type);
      assert.equal(id, String(parsed.id));
      events.push(numbered(parsed, after + events.length + 1));
    },
    onError(error) {
      throw error;
    },
  });
  parser.feed(text);
  return events;
}

/** Asserts an event's number and removes it. An error in reply to a command has none. */
function numbered(event: StreamEvent & { id?: number }, expected: number | undefined): StreamEvent {
  const { id, ...rest } = event;
  assert.equal(id, expected, "events are numbered 1, 2, 3 and so on");
  return rest;
}

/** The values of one field. */
export function fieldOf<Item, Key extends keyof Item>(items: readonly Item[], key: Key): Item[Key][] {
  return items.map((item) => item[key]);
}

export const typesOf = (events: readonly { type: string }[]): string[] => fieldOf(events, "type");

/** Returns the only `done` or `error`, which must be the last event. */
export function terminal(events: readonly StreamEvent[]): DoneEvent | ErrorEvent {
  const last = events.at(-1);
  const ends = events.filter(({ type }) => type === "done" || type === "error");
  assert.equal(ends.length, 1, `one terminal event, not ${JSON.stringify(ends)}`);
  assert.ok(last?.type === "done" || last?.type === "error", "the terminal event is the last");
  return last;
}

/**
 * Sends one message over each transport, each time to a new server with the same setup. Asserts that all three
 * transports gave the client the same; returns the outcomes.
 */
export async function onEveryTransport(
  t: Cleanup,
  setup: () => ServerOptions | Promise<ServerOptions>,
  message: ChatMessage,
): Promise<Record<TransportName, Outcome>> {
  const outcomes = {
    json: await send.json(t, await startServer(t, await setup()), message),
    sse: await send.sse(t, await startServer(t, await setup()), message),
    socket: await send.socket(t, await startServer(t, await setup()), message),
  };
  assertSame(outcomes);
  return outcomes;
}

export function assertSame({ json, sse, socket }: Record<TransportName, Outcome>): void {
  if (sse.status === 200) assert.deepEqual(timeless(sse.events), timeless(socket.events));
  if (sse.last.type === "done") {
    assert.deepEqual(unnamed(json.last), unnamed(sse.last));
    assert.deepEqual(unnamed(json.last), unnamed(socket.last));
    assert.deepEqual(json.toolCalls?.map(timelessCall), joinedCalls(sse.events).map(timelessCall));
    return;
  }
  const failureOf = ({ last }: Outcome) => (last.type === "error" ? [last.data, last.code, last.retryable] : last.type);
  assert.deepEqual(failureOf(json), failureOf(sse));
  assert.deepEqual(failureOf(json), failureOf(socket));
}

/** The `tool_call` and `tool_result` events joined by call, like `tool_calls` of the JSON form. */
function joinedCalls(events: readonly StreamEvent[]): object[] {
  const calls = new Map<string, object>();
  for (const event of events) {
    if (event.type !== "tool_call" && event.type !== "tool_result") continue;
    calls.set(event.data.id, { ...calls.get(event.data.id), title: undefined, ...event.data });
  }
  return [...calls.values()];
}

const timelessCall = (call: unknown) => ({ title: undefined, ...(call as object), duration_ms: undefined });

/** Fields of a waiting approval that differ on each run. */
const UNTIMED = { nonce: "", ledger: "", expires_at: "" };

/** Events without values that differ on each run: durations, expiry times and the conversation's id. */
export function timeless(events: readonly StreamEvent[]): unknown[] {
  return events.map((event) => {
    if (event.type === "tool_approval") return { ...event, data: without(event.data, "expires_at") };
    return event.type === "tool_result" ? { ...event, data: without(event.data, "duration_ms") } : unnamed(event);
  });
}

/** An event whose state lacks its conversation id and its signature. */
function unnamed<Event extends StreamEvent>(event: Event): Event {
  if (!("state" in event) || event.state === undefined) return event;
  const approvals = "approvals" in event ? event.approvals?.map((one) => without(one, "expires_at")) : undefined;
  return { ...event, ...(approvals && { approvals }), state: without(stateOf(event) ?? {}, "signature") };
}

/** The state of an event, without values that differ on each run: the conversation's id and the signature of `open`. */
export function stateOf({ state }: { state?: ConversationState }): ConversationState | undefined {
  if (state === undefined) return undefined;
  const { conversation, ...rest } = state;
  if (Object.keys(rest).length > 0) assert.match(conversation ?? "", /^[\w-]{36}$/);
  if (rest.open === undefined) return rest;
  const { signature, waiting, ...open } = rest.open;
  assert.match(signature ?? "", /^[\w-]{43}$/);
  return { ...rest, open: waiting === undefined ? open : { ...open, waiting: { ...waiting, ...UNTIMED } } };
}

function without<Value extends object, Key extends string>(value: Value, ...keys: Key[]) {
  const entries = Object.entries(value).filter(([key]) => !keys.some((name) => name === key));
  return Object.fromEntries(entries) as Omit<Value, Key>;
}
