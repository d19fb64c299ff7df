/** The providers behind a LiteLLM proxy: the LiteLLM configuration of each, and how to read the requests to each. */

import type { ResponseOverrides } from "@copilotkit/aimock";
import type { LiteLlmModel } from "./litellm-proxy.ts";

// biome-ignore lint/suspicious/noExplicitAny: a provider's own JSON; a wrong reading fails the test.
type Json = any;

/** The parts of a provider's request that all providers have in common. */
export interface Told {
  /** The content of images and PDFs, as base64. */
  files: string[];
  /** Earlier thinking that the request contains. */
  thoughts: unknown[];
  results: string[];
}

/** The fake behind LiteLLM. */
export interface Behind {
  /** Without a path and without a slash at the end. */
  url: string;
  /** A key file of Google Cloud. */
  googleCredentials: string;
}

export interface ProviderRow {
  /** The model name in requests to LiteLLM. */
  name: string;
  /** Prefix of the model name in LiteLLM's requests to the provider. */
  model: string;
  params(upstream: Behind): LiteLlmModel["litellm_params"];
  path: string;
  takesPdf: boolean;
  /** Whether the model's reasoning effort can be set; LiteLLM rejects the setting for the others. */
  takesEffort: boolean;
  /** Whether aimock's thinking passes through LiteLLM. */
  thinks: boolean;
  /** aimock's thinking "Two cities." as it appears in the next request. */
  replayed: readonly unknown[];
  /** With the field names that aimock accepts for this provider; it has none for Ollama. */
  usage: NonNullable<ResponseOverrides["usage"]>;
  told(json: Json): Told;
}

/** Collects the defined results of `read` over the parts of all messages. */
function each<Value>(lists: Json[], read: (part: Json) => Value | undefined): Value[] {
  return lists.flat().flatMap((part) => {
    const value = read(part);
    return value === undefined ? [] : [value];
  });
}

/** The content of a data URL; `undefined` for other URLs. */
const base64Of = (url: string | undefined) => /^data:[^,]*;base64,(.*)$/.exec(url ?? "")?.[1];

const OPENAI: ProviderRow = {
  name: "gpt",
  model: "gpt-4o",
  params: ({ url }) => ({ model: "openai/gpt-4o", api_key: "mock", api_base: `${url}/v1` }),
  path: "/v1/chat/completions",
  takesPdf: true,
  takesEffort: false,
  // OpenAI's Chat Completions returns no thinking.
  thinks: false,
  replayed: [],
  usage: { prompt_tokens: 30, completion_tokens: 12, total_tokens: 42 },
  told({ messages }) {
    const parts = messages.map(({ content }: Json) => (Array.isArray(content) ? content : []));
    return {
      files: each(parts, (part) => base64Of(part.image_url?.url ?? part.file?.file_data)),
      thoughts: each(messages, ({ reasoning_content }) => reasoning_content),
      results: each(messages, ({ role, content }) => (role === "tool" ? content : undefined)),
    };
  },
};

/** Gets the thinking of OpenAI's models: LiteLLM translates Chat Completions to the Responses API. */
const OPENAI_RESPONSES: ProviderRow = {
  name: "gpt-responses",
  model: "gpt-5.2",
  params: ({ url }) => ({ model: "openai/responses/gpt-5.2", api_key: "mock", api_base: `${url}/v1` }),
  path: "/v1/responses",
  takesPdf: true,
  takesEffort: true,
  thinks: true,
  // aimock omits its thinking from the final response, which is where LiteLLM reads it for the next request.
  replayed: [],
  usage: { input_tokens: 30, output_tokens: 12 },
  told({ input }) {
    const parts = input.map(({ content }: Json) => (Array.isArray(content) ? content : []));
    return {
      files: each(parts, (part) => base64Of(part.image_url ?? part.file_data)),
      thoughts: each(input, (item) => (item.type === "reasoning" ? item : undefined)),
      results: each(input, ({ type, output }) => (type === "function_call_output" ? output[0].text : undefined)),
    };
  },
};

const ANTHROPIC: ProviderRow = {
  name: "claude",
  model: "claude-sonnet-4-5",
  params: ({ url }) => ({ model: "anthropic/claude-sonnet-4-5", api_key: "mock", api_base: url }),
  path: "/v1/messages",
  takesPdf: true,
  takesEffort: true,
  thinks: true,
  replayed: [{ type: "thinking", thinking: "Two cities.", signature: "aimock-placeholder-signature" }],
  usage: { input_tokens: 30, output_tokens: 12 },
  told({ messages }) {
    const parts = messages.map(({ content }: Json) => content);
    return {
      files: each(parts, (part) => part.source?.data),
      thoughts: each(parts, (part) => (part.type === "thinking" ? part : undefined)),
      results: each(parts, (part) => (part.type === "tool_result" ? part.content : undefined)),
    };
  },
};

const GEMINI: ProviderRow = {
  name: "gemini",
  model: "gemini-2.5-pro",
  params: ({ url }) => ({ model: "gemini/gemini-2.5-pro", api_key: "mock", api_base: `${url}/v1beta` }),
  path: "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
  takesPdf: true,
  takesEffort: true,
  thinks: true,
  replayed: [{ thought: true, text: "Two cities." }],
  usage: { promptTokenCount: 30, candidatesTokenCount: 12, totalTokenCount: 42 },
  told({ contents }) {
    const parts = contents.map((content: Json) => content.parts);
    return {
      files: each(parts, (part) => part.inline_data?.data),
      thoughts: each(parts, (part) => (part.thought === true ? part : undefined)),
      results: each(parts, (part) => part.function_response?.response.content),
    };
  },
};

const VERTEX: ProviderRow = {
  ...GEMINI,
  name: "vertex",
  params: ({ url, googleCredentials }) => ({
    model: "vertex_ai/gemini-2.5-pro",
    api_base: url,
    vertex_project: "acme",
    vertex_location: "us-central1",
    vertex_credentials: googleCredentials,
  }),
  path: "/v1/projects/acme/locations/us-central1/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
};

const BEDROCK: ProviderRow = {
  name: "bedrock",
  model: "us.anthropic.claude-sonnet-4-5",
  params: ({ url }) => ({
    model: "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    aws_access_key_id: "mock",
    aws_secret_access_key: "mock",
    aws_region_name: "us-east-1",
    aws_bedrock_runtime_endpoint: url,
  }),
  path: "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream",
  takesPdf: true,
  takesEffort: true,
  thinks: true,
  // aimock does not sign Bedrock's thinking, and LiteLLM turns unsigned thinking into text.
  replayed: [],
  usage: { input_tokens: 30, output_tokens: 12 },
  told({ messages }) {
    const parts = messages.map(({ content }: Json) => content);
    return {
      files: each(parts, (part) => (part.image ?? part.document)?.source.bytes),
      thoughts: each(parts, (part) => part.reasoningContent),
      results: each(parts, (part) => part.toolResult?.content[0].text),
    };
  },
};

const OLLAMA: ProviderRow = {
  name: "ollama",
  model: "qwen3-vl",
  params: ({ url }) => ({ model: "ollama_chat/qwen3-vl", api_base: url }),
  path: "/api/chat",
  takesPdf: false,
  takesEffort: true,
  // aimock sends `reasoning_content`, which LiteLLM does not read here: Ollama itself sends `thinking`.
  thinks: false,
  replayed: [],
  usage: {},
  told({ messages }) {
    return {
      files: messages.flatMap(({ images }: Json) => images ?? []),
      thoughts: each(messages, ({ thinking }) => thinking),
      results: each(messages, ({ role, content }) => (role === "tool" ? content : undefined)),
    };
  },
};

export const PROVIDER_ROWS: readonly ProviderRow[] = [
  OPENAI,
  OPENAI_RESPONSES,
  ANTHROPIC,
  GEMINI,
  BEDROCK,
  VERTEX,
  OLLAMA,
];
