/** The model of all agents, and the requests that they send it. */

import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { after } from "node:test";
import { LLMock } from "@copilotkit/aimock";

export const ANSWER = "Order 4711 is on its way.";

/** The first text of an agent inside a tool, before its answer. */
export const INNER_WORDS = "Let me look behind the desk.";

/** Request bodies as received: the fake's own journal keeps less. */
const asked: Record<string, unknown>[] = [];

export const model = new LLMock({ port: 0 });

const callsFor = (userMessage: string, ...toolCalls: { name: string; arguments: string }[]) =>
  model.addFixture({ match: { userMessage, hasToolResult: false }, response: { toolCalls } });

const cancel = (order: string) => ({ name: "cancel_order", arguments: JSON.stringify({ order }) });

const LOOK = { name: "get_order_status", arguments: '{"order":"4711"}' };

callsFor("where is order 4711", LOOK);
callsFor("cancel them", cancel("A1"), cancel("B2"));
// Some frameworks continue with only the tool results: there, too, these words select the next response.
callsFor("cancel, then look", cancel("then look"));
callsFor("ask the desk", { name: "ask_desk", arguments: '{"input":"cancel A1"}' });
callsFor("cancel A1", cancel("A1"));
// In Mastra, agents as tools are named after the agents.
model.addFixture({
  match: {
    userMessage: "have the desk look",
    hasToolResult: false,
    predicate: ({ tools }) => JSON.stringify(tools ?? []).includes("agent-desk"),
  },
  response: { toolCalls: [{ name: "agent-desk", arguments: '{"prompt":"look it up"}' }] },
});
callsFor("have the desk look", { name: "ask_desk", arguments: '{"input":"look it up"}' });
model.addFixture({
  match: { userMessage: "look it up", hasToolResult: false },
  response: { content: INNER_WORDS, toolCalls: [LOOK, { name: "ask_carrier", arguments: '{"order":"4711"}' }] },
});
model.onMessage("slowly", { content: "word ".repeat(60) }, { latency: 50, chunkSize: 5 });
model.onMessage("fail", { error: { message: "the key is sk-secret", type: "invalid_request_error" }, status: 400 });
model.onMessage("never mind", { content: "As you like." });
model.onMessage("thanks", { content: "You are welcome." });
for (let n = 0; n < 50; n++) model.onMessage(new RegExp(`number ${n}$`), { content: `I am number ${n}.` });
model.addFixture({
  match: {
    predicate({ messages }) {
      const said = JSON.stringify(messages);
      const isDecided = said.includes("then look") && messages.some(({ role }) => role === "tool");
      return (isDecided || said.includes("look instead")) && !said.includes("on its way");
    },
  },
  response: { toolCalls: [LOOK] },
});
// After the lookup above.
model.onMessage("look instead", { content: ANSWER });
model.addFixture({ match: { hasToolResult: true }, response: { content: ANSWER }, chunkSize: 6 });
await model.start();
after(() => model.stop());

const front = createServer(async (message, response) => {
  const { method, url = "", headers } = message;
  const pieces: Buffer[] = [];
  for await (const piece of message) pieces.push(piece);
  const body = Buffer.concat(pieces);
  asked.push(JSON.parse(body.toString() || "{}"));
  const sent = request(new URL(url, model.url), { method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  response.on("close", () => sent.destroy());
  sent.on("error", () => response.destroy());
  sent.end(body);
});
await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
after(() => front.close());

export const MODEL_URL = `http://127.0.0.1:${(front.address() as AddressInfo).port}/v1`;

export const requests = (): number => asked.length;

/** All requests from number `first` on, as one text. */
export const saidSince = (first: number): string => JSON.stringify(asked.slice(first));

export const lastAsked = (): string => JSON.stringify(asked.at(-1));

export const lastBody = (): Record<string, unknown> => asked.at(-1) ?? {};

/** The texts of user and assistant in the request of this number, for either API. */
export function textsOf(number: number): string[] {
  const { messages, input } = (asked[number] ?? {}) as { messages?: Said[]; input?: Said[] };
  const said = (messages ?? input ?? []).filter(({ role }) => role === "user" || role === "assistant");
  return said.map(({ content }) =>
    typeof content === "string" ? content : content.map(({ text = "" }) => text).join(""),
  );
}

interface Said {
  role?: string;
  content: string | { text?: string }[];
}
