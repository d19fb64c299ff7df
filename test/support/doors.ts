/** One client per door: how it sends and what it receives. test/server/doors.test.ts runs the same tests on all. */

import { WebSocket } from "ws";
import type { StreamEvent } from "../../server/protocol/events.ts";
import { type Address, readEventStream } from "./chat-transports.ts";
import { DEADLINE_MS } from "./deadline.ts";
import { SocketClient } from "./socket-client.ts";
import type { Cleanup } from "./start-server.ts";

export const KEY = "a-key-of-the-programs";

/** Opens every door with this key. */
export const DOOR_ENV = { PARLEY_API_KEY: KEY, PARLEY_OPENAI_API: "on", PARLEY_MCP: "on" };

/** A message, or a text that is sent as the raw body. */
export type Sent = string | { message: unknown; goesOn?: Heard["goesOn"]; name?: string };

/** Identifies the sender. */
export interface Sender {
  key?: string;
  origin?: string;
}

/** What the client of a door has received at the end of the answer. */
export interface Heard {
  /** The answer's text, as the client shows it. */
  text: string;
  thoughts: string;
  /** Names of the tools that have finished, sorted. */
  tools: string[];
  finish: string | undefined;
  /** Input and output tokens. */
  usage: [number, number] | undefined;
  error: { code: string; message: string } | undefined;
  /** Fields that the client sends with its next message to continue the conversation. */
  goesOn: object;
}

/** An answer in progress. */
export interface OpenAnswer {
  heard: Promise<Heard>;
  leave(): void;
  stop(): Promise<unknown>;
}

export interface TestedDoor {
  /** Whether the client receives the answer as a stream; only then can it stop it or repeat a named message. */
  isStreamed: boolean;
  /** The client's text for an answer of several turns. */
  textOf(turns: string[]): string;
  /** Fields that the client never receives. */
  deafTo: readonly (keyof Heard)[];
  /** The door's own names of finish reasons, where they differ from ours. */
  finishes: Readonly<Record<string, string>>;
  open(t: Cleanup, server: Address, sent: Sent, sender?: Sender): Promise<OpenAnswer>;
}

const lastOf = (turns: string[]): string => turns.at(-1) ?? "";
const allOf = (turns: string[]): string => turns.join("\n\n");

/** How to write a request and read its response. */
interface HttpDoor {
  path: string;
  body(message: Exclude<Sent, string>): object;
  headers?(message: Exclude<Sent, string>): Record<string, string>;
  read(text: string, sent: Exclude<Sent, string>): Heard;
  readError(body: { error: Heard["error"] }): Heard["error"];
}

const NOTHING: Heard = {
  text: "",
  thoughts: "",
  tools: [],
  finish: undefined,
  usage: undefined,
  error: undefined,
  goesOn: {},
};

function overHttp({ path, body, headers = () => ({}), read, readError }: HttpDoor): TestedDoor["open"] {
  return async (_t, { url }, sent, { key = KEY, origin } = {}) => {
    const message = typeof sent === "string" ? { message: sent } : sent;
    const leaving = new AbortController();
    const authorization = `Bearer ${key}`;
    const response = fetch(url + path, {
      method: "POST",
      headers: {
        authorization,
        "content-type": "application/json",
        ...(origin === undefined ? {} : { origin }),
        ...headers(message),
      },
      body: typeof sent === "string" ? sent : JSON.stringify(body(message)),
      signal: AbortSignal.any([leaving.signal, AbortSignal.timeout(DEADLINE_MS)]),
    });
    const heard = response.then(async (answer) => {
      const text = await answer.text();
      return answer.ok ? read(text, message) : { ...NOTHING, error: readError(JSON.parse(text)) };
    });
    heard.catch(() => {});
    return {
      heard,
      leave: () => leaving.abort(),
      async stop() {
        const run = (await response).headers.get("x-run-id");
        return fetch(`${url}/api/chat/runs/${run}/cancel`, { method: "POST", headers: { authorization } });
      },
    };
  };
}

const chatBody = ({ message, name, goesOn }: Exclude<Sent, string>) => ({ message, run: name, ...goesOn });
const ourError: HttpDoor["readError"] = ({ error }) => error && { code: error.code, message: error.message };

const json: TestedDoor = {
  isStreamed: false,
  textOf: lastOf,
  deafTo: ["thoughts"],
  finishes: {},
  open: overHttp({
    path: "/api/chat",
    body: (sent) => ({ ...chatBody(sent), stream: false }),
    read(text) {
      const { response, state, finish_reason: finish, usage, tool_calls: calls = [] } = JSON.parse(text);
      const tools = calls.map(({ tool }: { tool: string }) => tool).sort();
      return { ...NOTHING, text: response, tools, finish, usage: tokensOf(usage), goesOn: { state } };
    },
    readError: ourError,
  }),
};

const sse: TestedDoor = {
  isStreamed: true,
  textOf: lastOf,
  deafTo: [],
  finishes: {},
  open: overHttp({
    path: "/api/chat",
    body: (sent) => ({ ...chatBody(sent), stream: true }),
    read: (text) => heardOf(readEventStream(text)),
    readError: ourError,
  }),
};

const tokensOf = (usage?: { input_tokens: number; output_tokens: number }): Heard["usage"] =>
  usage && [usage.input_tokens, usage.output_tokens];

function heardOf(events: readonly StreamEvent[]): Heard {
  const heard = { ...NOTHING, tools: [] as string[] };
  for (const event of events) {
    if (event.type === "thinking") heard.thoughts += event.data;
    if (event.type === "tool_result") heard.tools.push(event.data.tool);
    if (event.type === "error") heard.error = { code: event.code, message: event.data };
    if (event.type === "done") {
      const { data: text, finish_reason: finish, state } = event;
      Object.assign(heard, { text, finish, usage: tokensOf(event.usage), goesOn: { state } });
    }
  }
  heard.tools.sort();
  return heard;
}

/** Error codes by the close code of a WebSocket. */
const CLOSED: Readonly<Record<number, string>> = { 1009: "request_too_large", 4403: "forbidden", 4429: "rate_limited" };

const socket: TestedDoor = {
  isStreamed: true,
  textOf: lastOf,
  deafTo: [],
  finishes: {},
  async open(t, { socketUrl }, sent, { key = KEY, origin } = {}) {
    const ws = new WebSocket(`${socketUrl}?key=${key}`, origin === undefined ? {} : { origin });
    t.after(() => ws.terminate());
    const client = new SocketClient(ws);
    await new Promise((resolve, reject) => ws.once("open", resolve).once("error", reject));
    ws.send(typeof sent === "string" ? sent : JSON.stringify(chatBody(sent)));
    const ended = client.closed.then(({ code, reason }): Heard => {
      return { ...NOTHING, error: { code: CLOSED[code] ?? String(code), message: reason } };
    });
    const said = client.until("done", "error").then((events) => heardOf(events as StreamEvent[]));
    const heard = Promise.race([said.catch(() => ended), ended]);
    heard.then(
      () => ws.close(),
      () => {},
    );
    return { heard, leave: () => ws.terminate(), stop: async () => client.send({ type: "stop" }) };
  },
};

interface ChatChoice {
  message?: { content: string; reasoning_content?: string };
  delta?: { content?: string; reasoning_content?: string };
  finish_reason: string | null;
}

interface Completion {
  choices: ChatChoice[];
  usage?: { prompt_tokens: number; completion_tokens: number };
  event?: { data: { description: string; done: boolean } };
  error?: { code: string; message: string };
}

/** Chat Completions, as a whole response or streamed. */
function openai(stream: boolean): TestedDoor {
  return {
    isStreamed: stream,
    textOf: allOf,
    deafTo: stream ? [] : ["tools"],
    finishes: { max_turns: "length", stopped: "stop", approval_required: "stop", refused: "stop" },
    open: overHttp({
      path: "/v1/chat/completions",
      body({ message, goesOn }) {
        const { history = [] } = (goesOn ?? {}) as { history?: object[] };
        const messages = [...history, { role: "user", content: message }];
        return { model: "any", messages, stream, ...(stream ? { stream_options: { include_usage: true } } : {}) };
      },
      headers: ({ name }) => (name === undefined ? {} : { "idempotency-key": name }),
      read(text, { message, goesOn }) {
        const { history = [] } = (goesOn ?? {}) as { history?: object[] };
        const heard = readCompletion(stream ? readChunks(text) : [JSON.parse(text)]);
        const added = [
          { role: "user", content: message },
          { role: "assistant", content: heard.text },
        ];
        return { ...heard, goesOn: { history: [...history, ...added] } };
      },
      readError: ({ error }) => error && { code: error.code, message: error.message },
    }),
  };
}

/** The chunks of a stream, which has to end with `[DONE]`. */
export function readChunks(text: string): Completion[] {
  const frames = text.split("\n\n").filter((frame) => frame !== "" && !frame.startsWith(":"));
  if (frames.pop() !== "data: [DONE]") throw new Error(`the stream does not end with [DONE]: ${text.slice(-100)}`);
  return frames.map((frame) => JSON.parse(frame.replace(/^data: /, "")));
}

function readCompletion(parts: readonly Completion[]): Heard {
  const heard = { ...NOTHING, tools: [] as string[] };
  for (const { choices = [], usage, event, error } of parts) {
    if (error !== undefined) heard.error = { code: error.code, message: error.message };
    if (usage !== undefined) heard.usage = [usage.prompt_tokens, usage.completion_tokens];
    if (event?.data.done) heard.tools.push(event.data.description);
    for (const { message, delta = message, finish_reason: finish } of choices) {
      heard.text += delta?.content ?? "";
      heard.thoughts += delta?.reasoning_content ?? "";
      heard.finish = finish ?? heard.finish;
    }
  }
  heard.tools.sort();
  return heard;
}

interface McpMessage {
  method?: string;
  params?: { message?: string };
  result: {
    content: { text: string }[];
    structuredContent?: { conversation: string };
    isError: boolean;
    _meta: { code: string };
  };
}

const mcp: TestedDoor = {
  // MCP clients receive progress, but the answer only at its end.
  isStreamed: false,
  textOf: lastOf,
  deafTo: ["thoughts", "usage", "finish"],
  finishes: { approval_required: "stop" },
  open: overHttp({
    path: "/mcp",
    headers: () => ({ accept: "application/json, text/event-stream" }),
    body: ({ message, goesOn }) => ({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "ask", arguments: { message, ...goesOn }, _meta: { progressToken: 1 } },
    }),
    read(text) {
      const lines = text.split("\n").map((line) => line.replace("data: ", ""));
      const said: McpMessage[] = lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
      const [{ result }] = said.slice(-1) as [McpMessage];
      const { content, structuredContent, isError, _meta } = result;
      const [{ text: answer } = { text: "" }] = content;
      if (isError) return { ...NOTHING, error: { code: _meta.code, message: answer } };
      const tools = said.flatMap(({ params }) => params?.message ?? []).sort();
      return {
        ...NOTHING,
        text: answer,
        tools,
        finish: "stop",
        goesOn: { conversation: structuredContent?.conversation },
      };
    },
    readError: (body) => {
      const { message, data } = body.error as unknown as { message: string; data: { code: string } };
      return { code: data.code, message };
    },
  }),
};

export const DOORS = {
  JSON: json,
  SSE: sse,
  WebSocket: socket,
  "Chat Completions": openai(false),
  "Chat Completions, streamed": openai(true),
  MCP: mcp,
} satisfies Record<string, TestedDoor>;
