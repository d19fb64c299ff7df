/**
 * A history goes out to a client and comes back with the next message: what the model then gets begins with the same bytes as
 * before, so that the provider reads them from its prompt cache.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { readState } from "../../server/agent/state.ts";
import type { ConversationState } from "../../server/protocol/chat.ts";
import { textContent } from "../../server/providers/history.ts";
import type { Provider } from "../../server/providers/provider.ts";
import { claude, stream as claudeStream } from "../support/anthropic.ts";
import { bedrock, stream as bedrockStream } from "../support/bedrock.ts";
import { ok, serve, stream } from "../support/chat-servers.ts";
import { IMAGE_AND_PDF } from "../support/files.ts";
import { ask, type Conversation, chatProvider, open, responsesProvider } from "../support/upstream-conversation.ts";
import { startUpstream, type UpstreamReply, type UpstreamServer } from "../support/upstream-server.ts";

const TOOLS = ["get_weather", "get_time"].map((name) => ({
  name,
  description: "For a test.",
  parameters: { type: "object", properties: { city: { type: "string" } } },
}));

interface Row {
  name: string;
  provider(upstream: UpstreamServer): Provider | Promise<Provider>;
  /** Answers with calls: with thoughts or signatures, and in parallel. */
  calls: UpstreamReply[];
  text: UpstreamReply;
  /** What of a body the prompt is made of, in the order in which the API reads it; the messages are the last. */
  prompt: readonly string[];
}

const CHAT = ["tools", "messages"];
const chat = (name: string) => stream(`chat-completions/${name}`);
const gemini = ["gemini/thought-and-call", "gemini/parallel-calls"].map(stream);

const ROWS: Row[] = [
  {
    name: "litellm",
    provider: chatProvider,
    calls: ["litellm-claude-thinking-and-call", "litellm-gemini-signature", "two-parallel-calls"].map(chat),
    text: stream("chat-completions/deepseek-reasoning-and-text"),
    prompt: CHAT,
  },
  {
    name: "compatible",
    provider: ({ url }) => serve("compatible/m", { COMPATIBLE_BASE_URL: url }),
    calls: [
      "deepseek-reasoning-and-call",
      "groq-reasoning-and-call",
      "mistral-thinking-and-call",
      "openrouter-reasoning-details",
      "two-parallel-calls",
    ].map(chat),
    text: stream("chat-completions/think-tags"),
    prompt: CHAT,
  },
  {
    name: "gemini",
    provider: ({ url }) => serve("gemini/gemini-3-pro", { GEMINI_API_KEY: "AIza-test", GEMINI_BASE_URL: url }),
    calls: gemini,
    text: stream("gemini/thoughts-flagged"),
    prompt: CHAT,
  },
  {
    name: "vertex",
    provider: ({ url }) => serve("vertex/gemini-3-pro", { VERTEX_BASE_URL: url, VERTEX_ACCESS_TOKEN: "ya29.test" }),
    calls: [stream("gemini/vertex-thoughts-and-call"), ...gemini],
    text: ok(),
    prompt: CHAT,
  },
  {
    name: "ollama",
    provider: ({ url }) => serve("ollama/qwen3:8b", { OLLAMA_BASE_URL: url }),
    calls: ["ollama/reasoning-and-call", "ollama/parallel-calls"].map(stream),
    text: stream("ollama/text"),
    prompt: CHAT,
  },
  {
    name: "anthropic",
    provider: claude,
    calls: ["thinking-and-tool", "interleaved-thinking", "parallel-tools"].map(claudeStream),
    text: claudeStream("thinking"),
    prompt: ["tools", "system", "messages"],
  },
  {
    name: "bedrock",
    provider: bedrock,
    calls: ["claude-thinking-and-call", "claude-interleaved-thinking", "two-parallel-calls"].map(bedrockStream),
    text: bedrockStream("text"),
    prompt: ["toolConfig", "system", "messages"],
  },
  {
    name: "openai, store: false",
    provider: (upstream) => responsesProvider(upstream, { model: "gpt-5.2", settings: { store: false } }),
    calls: ["encrypted-reasoning-and-calls", "reasoning-and-two-calls"].map((name) => stream(`responses/${name}`)),
    text: stream("responses/web-search"),
    prompt: ["tools", "instructions", "input"],
  },
];

/** Asks until the model makes no more calls; each second one fails. */
async function run(conversation: Conversation): Promise<ConversationState> {
  for (;;) {
    const { events, error } = await ask(conversation);
    if (error !== undefined) throw error;
    const calls = events.flatMap((event) => (event.type === "call" ? [event.call] : []));
    if (calls.length === 0) return conversation.state();
    conversation.answer(
      calls.map(({ id, name }, index) => ({ id, name, content: textContent(`“${name}” 👋`), failed: index % 2 === 1 })),
    );
  }
}

/** The state as a client gets it, keeps it and sends it back. */
function overTheWire(state: ConversationState): ConversationState {
  const limits = { maxHistoryItems: 1_000, maxHistoryBytes: 1e6 };
  const binding = {
    kind: "conversation_history",
    agent: "a",
    provider: "p",
    user: undefined,
    secrets: [],
    ownSecrets: [],
    limits,
  } as const;
  return readState(JSON.parse(JSON.stringify(state)), binding);
}

/** The prompt of a request as one text; where it is cached is no part of it. */
function promptOf(body: Readonly<Record<string, unknown>>, fields: readonly string[]): string {
  const text = JSON.stringify(fields.map((field) => body[field]));
  return text.replaceAll(/,"cache_control":\{"type":"ephemeral"\}/g, "");
}

for (const { name, provider, calls, text, prompt } of ROWS) {
  test(`${name}: each request of a conversation begins with the whole one before it, also after the client had the history`, async () => {
    await using upstream = await startUpstream(...calls, text, ...calls, text, text);
    const model = await provider(upstream);
    let state: ConversationState = {};
    for (const message of ["What is this?", "And that?", "Thanks"]) {
      const attachments = IMAGE_AND_PDF.filter(({ mime_type: type }) => model.mediaTypes.includes(type));
      state = overTheWire(await run(open(model, { tools: TOOLS, message, attachments, state })));
    }
    const prompts = upstream.calls.map(({ json }) => promptOf(json, prompt));
    assert.ok(prompts.length > 2 * calls.length + 2);
    for (const [index, next] of prompts.entries()) {
      // Without the brackets that end the list of messages.
      const before = (prompts[index - 1] ?? "").slice(0, -2);
      const at = [...before].findIndex((char, place) => char !== [...next][place]);
      assert.ok(next.startsWith(before), `request ${index} differs at ${at}: …${next.slice(at - 200, at + 200)}`);
    }
  });
}
