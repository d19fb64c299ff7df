/** Questions for each Python server, in addition to those for all agents. Unanswerable ones are skipped tests. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { LLMock } from "@copilotkit/aimock";
import { type Address, send, TRANSPORTS } from "../support/chat-transports.ts";
import type { Cleanup } from "../support/start-server.ts";
import { PYTHON, type PythonServer, RECORDERS, titleOf } from "./python.ts";

/** A server and its surroundings. */
interface Asked extends PythonServer {
  t: Cleanup;
  model: LLMock;
  /** Starts a Parley agent that calls this server's agent, or another one at `path`. */
  serve(path?: string): Promise<Address>;
}

interface Message {
  role: string;
  content?: string | { type: string; text?: string }[];
}

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const PICTURE = { type: "image", name: "dot.png", mime_type: "image/png", data: PNG };
const NO_LONGER = "was attached here earlier and is no longer included";

const lastBody = (model: LLMock) => (model.getRequests().at(-1)?.body ?? {}) as { messages?: Message[] };

/** The conversation in the model's last request. */
function textsSent(model: LLMock): string[] {
  const messages = (lastBody(model).messages ?? []).filter(({ role }) => role === "user" || role === "assistant");
  return messages.map(({ content = "" }) =>
    typeof content === "string" ? content : content.map(({ text = "" }) => text).join(""),
  );
}

const said = (...numbers: number[]) => numbers.flatMap((n) => [`number ${n}`, `I am number ${n}.`]);

async function askNumber(t: Cleanup, server: Address, n: number, state?: unknown): Promise<unknown> {
  const { last } = await send.sse(t, server, { message: `number ${n}`, state });
  assert.equal(last.data, `I am number ${n}.`);
  return last.state;
}

async function askInThreeTurns({ t, model, serve }: Asked): Promise<void> {
  const server = await serve();
  let state: unknown;
  for (const n of [1, 2, 1]) state = await askNumber(t, server, n, state);
  assert.deepEqual(textsSent(model), [...said(1, 2), "number 1"]);
}

async function askFromBefore({ t, model, serve, remembers = false }: Asked): Promise<void> {
  const server = await serve();
  const first = await askNumber(t, server, 1);
  const turns = [2, 3, 3];
  for (const [index, n] of turns.entries()) {
    await askNumber(t, server, n, first);
    const others = remembers ? turns.slice(0, index) : [];
    assert.deepEqual(textsSent(model), [...said(1, ...others), `number ${n}`]);
  }
}

async function showPicture({ t, model, serve, remembers = false }: Asked): Promise<void> {
  model.onMessage("what is this", { content: "A dot." });
  const server = await serve();
  const { last } = await send.sse(t, server, { message: "what is this", attachments: [PICTURE] });
  assert.equal(last.data, "A dot.");
  assert.ok(JSON.stringify(lastBody(model)).includes(PNG), "the model gets the picture");
  const next = await send.json(t, server, { message: "thanks", state: last.state });
  assert.equal(next.last.data, "You are welcome.");
  const sent = JSON.stringify(lastBody(model));
  assert.equal(sent.includes(PNG), remembers, "the model gets it again");
  assert.equal(sent.includes(NO_LONGER), !remembers, "the model reads that it was there");
}

async function askInOnePiece({ t, model, serve, whole = "none" }: Asked): Promise<void> {
  const server = await serve(whole === "none" ? undefined : whole);
  const before = model.getRequests().length;
  for (const transport of TRANSPORTS) {
    const { events, last, toolCalls } = await send[transport](t, server, {
      message: "where is order 4711, in one piece",
    });
    assert.equal(last.data, "Order 4711 is on its way.");
    const rows = toolCalls ?? events.filter(({ type }) => type === "tool_result");
    assert.equal(rows.length, 1);
    if (transport === "json") continue;
    const tokens = events.flatMap((event) => (event.type === "token" ? [event.data] : []));
    assert.equal(tokens.join(""), last.data);
    if (whole !== "none") assert.equal(tokens.length, 1);
  }
  const streamed = model.getRequests().slice(before);
  for (const { body } of streamed) assert.equal(Boolean((body as { stream?: boolean }).stream), whole === "none");
}

async function askForWords({ t, serve }: Asked): Promise<void> {
  const server = await serve("asks");
  const answers = [
    [{ approved: true, reason: "A1" }, "A1"],
    // The agent has no other way to receive a refusal.
    [{ approved: false }, '{"approved": false}'],
    [{ message: "B2" }, "B2"],
  ] as const;
  for (const [answer, heard] of answers) {
    const { last } = await send.sse(t, server, { message: "cancel an order" });
    assert.ok(last.type === "done" && last.finish_reason === "approval_required", JSON.stringify(last));
    const [asked] = last.approvals ?? [];
    assert.deepEqual([asked?.question, asked?.text], [true, "Which order is it?"]);
    const sent = "message" in answer ? answer : { approvals: [{ id: asked?.id, ...answer }] };
    const { last: second } = await send.sse(t, server, { ...sent, state: last.state });
    assert.equal(second.data, `cancelled ${heard}`);
  }
}

const QUESTIONS: [title: (server: PythonServer) => string, ask: (asked: Asked) => Promise<void>][] = [
  [() => "three turns reach its model whole", askInThreeTurns],
  [
    ({ remembers }) =>
      remembers
        ? "an answer from an earlier state comes from its own thread, which goes on"
        : "other answers from an earlier state know nothing of each other",
    askFromBefore,
  ],
  [({ remembers }) => `a picture reaches its model, ${remembers ? "and stays in its thread" : "once"}`, showPicture],
  [
    ({ whole }) => (whole === undefined ? "it cannot turn streaming of its model off" : "an answer comes in one piece"),
    askInOnePiece,
  ],
];

type Serve = (t: Cleanup, name: string, url: string) => Promise<Address>;

/** Tests the servers that have started, by name and address. */
export function askInPython(urls: Iterable<[name: string, url: string]>, model: LLMock, serve: Serve): void {
  for (const [name, url] of urls) {
    const row = PYTHON[name] ?? {};
    const asked = (t: Cleanup): Asked => ({
      ...{ ...row, t, model },
      serve: (path = row.path ?? "") => serve(t, name, new URL(path, `${new URL(url).origin}/`).href),
    });
    for (const [title, ask] of QUESTIONS) test(`${titleOf(name)}: ${title(row)}`, (t) => ask(asked(t)));
    if (row.asks === false) test(`${titleOf(name)}: it asks for words, not for approval`, (t) => askForWords(asked(t)));
    RECORDERS.get(name)?.compare(titleOf(name));
  }
}
