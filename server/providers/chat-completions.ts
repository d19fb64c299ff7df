import type { OpenAI } from "openai";
import { ALL_MEDIA_TYPES, type MediaType } from "../protocol/attachments.ts";
import type { HistoryMessage, HistoryToolCall, UserMessage } from "../protocol/chat.ts";
import { ChatReader } from "./chat-reader.ts";
import { truncated } from "./failures.ts";
import { openHistory } from "./history.ts";
import type {
  ChatModel,
  ChatModelEvent,
  ChatModelRequest,
  ModelSettings,
  Provider,
  ToolSpec,
} from "./provider.ts";
import type { ProviderError } from "./provider-error.ts";
import { readMessage, Upstream, type UpstreamOptions } from "./upstream.ts";
import { blamesParameter } from "./upstream-refusal.ts";

type ChatParams = OpenAI.ChatCompletionCreateParamsStreaming;

export interface ChatCompletionsOptions extends UpstreamOptions {
  id: string;
  /** The model's name as the server knows it. */
  model: string;
  mediaTypes?: readonly MediaType[];
  settings: ModelSettings;
}

/** A provider that speaks OpenAI's Chat Completions API, whoever's server it is. */
export function createChatCompletions(options: ChatCompletionsOptions): Provider {
  const { id, label, mediaTypes = ALL_MEDIA_TYPES } = options;
  const chat = new ChatCompletionsModel(new Upstream(options), options);
  return {
    id,
    label,
    stateKind: "conversation_history",
    mediaTypes,
    open: (setup) => openHistory(chat, setup),
  };
}

class ChatCompletionsModel implements ChatModel {
  readonly #upstream: Upstream;
  readonly #model: string;
  readonly #settings: ModelSettings;
  /** Until a server refuses the request for it. */
  #asksForUsage = true;

  constructor(upstream: Upstream, { model, settings }: ChatCompletionsOptions) {
    this.#upstream = upstream;
    this.#model = model;
    this.#settings = settings;
  }

  async *stream(
    request: ChatModelRequest,
    signal: AbortSignal,
  ): AsyncGenerator<ChatModelEvent, void> {
    const { label } = this.#upstream;
    const reader = new ChatReader();
    const batches = this.#upstream.messages(
      {
        send: (client, options) => client.chat.completions.create(this.#params(request), options),
        adapt: (failure) => this.#adapt(failure),
      },
      signal,
    );
    reading: for await (const batch of batches) {
      for (const message of batch) {
        const chunk = readMessage(message, label);
        if (chunk === undefined) break reading;
        for (const event of reader.read(chunk)) yield event;
      }
    }
    signal.throwIfAborted();
    if (!reader.finished) throw truncated(label);
    for (const event of reader.end(callIds(request.messages), label)) yield event;
  }

  #adapt(failure: ProviderError): boolean {
    if (!this.#asksForUsage || !blamesParameter(failure.cause, "stream_options")) return false;
    this.#asksForUsage = false;
    return true;
  }

  #params({ instructions, tools, messages }: ChatModelRequest): ChatParams {
    const system = instructions === "" ? [] : [{ role: "system", content: instructions }];
    const { reasoningEffort, temperature, maxOutputTokens, extraBody } = this.#settings;
    return {
      model: this.#model,
      // Extra fields of earlier answers go along: the package's types know only OpenAI's own.
      messages: [...system, ...sendable(messages)] as ChatParams["messages"],
      ...(tools.length === 0 ? {} : { tools: tools.map(functionTool) }),
      ...(reasoningEffort === undefined ? {} : { reasoning_effort: reasoningEffort }),
      ...(temperature === undefined ? {} : { temperature }),
      // The older name: LiteLLM maps it, and other servers may know no other.
      ...(maxOutputTokens === undefined ? {} : { max_tokens: maxOutputTokens }),
      ...(this.#asksForUsage ? { stream_options: { include_usage: true } } : {}),
      ...extraBody,
      // Not the author's to change: what reads the answer reads a stream.
      stream: true,
    };
  }
}

function callIds(history: readonly HistoryMessage[]): Set<string> {
  const ids = new Set<string>();
  for (const message of history) {
    if (message.role !== "assistant") continue;
    for (const call of message.tool_calls ?? []) ids.add(call.id);
  }
  return ids;
}

function functionTool({ name, description, parameters }: ToolSpec): OpenAI.ChatCompletionTool {
  // Some servers refuse the keyword that only says which draft a schema follows.
  const { $schema: _draft, ...schema } = parameters;
  return { type: "function", function: { name, description, parameters: schema } };
}

/** The history as strict servers take it. What the client holds stays as it is. */
function sendable(history: readonly HistoryMessage[]): HistoryMessage[] {
  const messages: HistoryMessage[] = [];
  for (const message of history) {
    const before = messages.at(-1);
    // Strict chat templates demand that user and assistant take turns.
    if (message.role === "user" && before?.role === "user") {
      messages[messages.length - 1] = joined(before, message);
    } else if (message.role === "assistant" && message.tool_calls !== undefined) {
      messages.push({ ...message, tool_calls: message.tool_calls.map(withReadableArguments) });
    } else {
      messages.push(message);
    }
  }
  return messages;
}

function joined(first: UserMessage, second: UserMessage): UserMessage {
  const [a, b] = [first.content, second.content];
  if (typeof a === "string" && typeof b === "string") {
    return { role: "user", content: [a, b].filter((text) => text !== "").join("\n\n") };
  }
  return { role: "user", content: [...parts(a), ...parts(b)] };
}

function parts(content: UserMessage["content"]) {
  if (typeof content !== "string") return content;
  return content === "" ? [] : [{ type: "text" as const, text: content }];
}

/** Servers parse the arguments of earlier calls: broken ones would make each later request fail. */
function withReadableArguments(call: HistoryToolCall): HistoryToolCall {
  try {
    JSON.parse(call.function.arguments);
    return call;
  } catch {
    const written = JSON.stringify({ unparsed_arguments: call.function.arguments });
    return { ...call, function: { ...call.function, arguments: written } };
  }
}
