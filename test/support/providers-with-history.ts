/** Each provider for which the client keeps the conversation, with recorded answers. */

import type { Provider } from "../../server/providers/provider.ts";
import { claude, stream as claudeStream } from "./anthropic.ts";
import { bedrock, stream as bedrockStream } from "./bedrock.ts";
import { ok, serve, stream } from "./chat-servers.ts";
import { chatProvider, responsesProvider } from "./upstream-conversation.ts";
import type { UpstreamReply, UpstreamServer } from "./upstream-server.ts";

export interface ProviderRow {
  name: string;
  provider(upstream: UpstreamServer): Provider | Promise<Provider>;
  /** Answers with tool calls: some with thinking or signatures, some parallel. */
  calls: UpstreamReply[];
  text: UpstreamReply;
  /** Fields of a body that make up the prompt, in the order in which the API reads them; messages are last. */
  prompt: readonly string[];
}

const CHAT = ["tools", "messages"];
const chat = (name: string) => stream(`chat-completions/${name}`);
const gemini = ["gemini/thought-and-call", "gemini/parallel-calls"].map(stream);

export const PROVIDERS_WITH_HISTORY: readonly ProviderRow[] = [
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
