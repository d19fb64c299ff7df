/** Claude through Anthropic's Messages API, by its own package. */

import type { Anthropic, ClientOptions } from "@anthropic-ai/sdk";
import type { HistoryMessage } from "../../protocol/chat.ts";
import { isRecord } from "../../protocol/json.ts";
import {
  type ClaudeModel,
  type ClaudeThinking,
  checkClaudeTemperature,
  claudeThinking,
  isAtLeast,
  parseClaudeModel,
} from "../claude/models.ts";
import { ForgottenThinking, refusesThinking, wantsThinking } from "../claude/thinking.ts";
import { UpstreamRefusal, upstreamCause } from "../failures.ts";
import { callsOf, HistoryProvider } from "../history.ts";
import {
  type HistoryModel,
  type HistoryRequest,
  type ModelEvent,
  type ModelSettings,
  type Provider,
  type ProviderSetup,
  requireSetting,
  type ToolSpec,
} from "../provider.ts";
import { NO_TIMEOUT, nodeFetch, type StreamedAnswer, streamedAnswer } from "../transport/fetch.ts";
import { type RetryClock, streamEvents, withExtraBody } from "../transport/request.ts";
import { type AnthropicMessage, toMessages, toolName } from "./messages.ts";
import { AnthropicReader } from "./reader.ts";

type AnthropicPackage = typeof import("@anthropic-ai/sdk");

/** The row `anthropic/NAME`. @throws ConfigError */
export async function createAnthropic(setup: ProviderSetup): Promise<Provider> {
  requireSetting(setup, "anthropicKey", "a key of your Anthropic account");
  return messagesProvider((await setup.loadPackage("@anthropic-ai/sdk")) as AnthropicPackage, setup);
}

/** A provider that speaks the Messages API. @throws ConfigError for settings that do not suit the model */
export function messagesProvider(
  { Anthropic }: Pick<AnthropicPackage, "Anthropic">,
  setup: ProviderSetup,
  clock?: RetryClock,
): Provider {
  const { model, settings, modelSettings } = setup;
  const params = modelParams(model, modelSettings);
  const client = new Anthropic(clientOptions(settings.anthropicUrl, settings.anthropicKey));
  return new HistoryProvider(setup, new MessagesModel(client, setup, params, clock));
}

/** What the package would otherwise read from the process's environment is set. */
function clientOptions(baseURL: string, apiKey: string): ClientOptions {
  return {
    baseURL,
    apiKey,
    authToken: null,
    webhookKey: null,
    // The package sends the key as a bearer token; gateways look for this header.
    defaultHeaders: { Authorization: null, "X-Api-Key": apiKey },
    fetch: nodeFetch,
    openTelemetry: false,
    logLevel: "off",
    // Its own back-off would sleep on after the client has gone.
    maxRetries: 0,
    timeout: NO_TIMEOUT,
  };
}

/** The part of a request that is the same in all. */
interface ModelParams extends ClaudeThinking {
  max_tokens: number;
  temperature?: number;
}

function modelParams(name: string, settings: ModelSettings): ModelParams {
  const model = parseClaudeModel(name);
  const max_tokens = settings.maxOutputTokens ?? defaultMaxTokens(model);
  checkClaudeTemperature(`anthropic/${name}`, model, settings);
  return {
    max_tokens,
    ...claudeThinking(`anthropic/${name}`, model, settings.reasoningEffort, max_tokens),
    ...(settings.temperature === undefined ? {} : { temperature: settings.temperature }),
  };
}

/**
 * The API demands a limit. Half of what the model can write, or all of it where that is little: thinking counts towards it,
 * and up to version 4.1 what is reserved here is missing from the context window.
 */
function defaultMaxTokens(model: ClaudeModel | undefined): number {
  if (model === undefined) return 16_384;
  if (isAtLeast(model, 4, 6)) return 64_000;
  if (isAtLeast(model, 4, 5)) return 32_000;
  if (isAtLeast(model, 3, 7)) return 16_384;
  return isAtLeast(model, 3, 5) ? 8192 : 4096;
}

/** The version of the API in which models up to 4.6 still take `temperature`, `top_p` and `top_k`. */
const SAMPLING_VERSION = "2023-06-01";
const VERSION = "2026-10-21";
const SAMPLING_PARAMETERS = ["temperature", "top_p", "top_k"];

class MessagesModel implements HistoryModel {
  readonly #client: Anthropic;
  readonly #setup: ProviderSetup;
  readonly #params: ModelParams;
  readonly #clock: RetryClock | undefined;
  readonly #forgotten = new ForgottenThinking();

  constructor(client: Anthropic, setup: ProviderSetup, params: ModelParams, clock: RetryClock | undefined) {
    this.#client = client;
    this.#setup = setup;
    this.#params = params;
    this.#clock = clock;
  }

  /**
   * Thinking goes back whenever the API takes it. It does not when something before it has changed (the agent's instructions,
   * its tools, an attachment that the history had no room for) or another account made it; then the conversation goes on
   * without. And older models refuse to think on in an answer with calls whose thinking is missing, as that of another model.
   */
  stream(request: HistoryRequest, signal: AbortSignal): AsyncIterable<ModelEvent[]> {
    const { label, limits } = this.#setup;
    let params = this.#params;
    const sent = {
      label,
      limits,
      clock: this.#clock,
      onRequestId: request.onRequestId,
      send: (own: AbortSignal) => this.#send(this.#body(request, params), own),
      adapt: ({ cause }: { cause?: unknown }) => {
        if (!(cause instanceof UpstreamRefusal) || cause.status !== 400) return false;
        const { text } = cause.detail;
        if (refusesThinking(text) && this.#forgotten.forget(request.messages.filter(hasThinking))) return true;
        if (!wantsThinking(text) || params.thinking === undefined) return false;
        const { thinking: _thinking, ...rest } = params;
        params = rest;
        return true;
      },
    };
    return streamEvents(sent, new AnthropicReader(label, request), signal);
  }

  /** Not by `messages.create`, which prints warnings about models that are to be retired. */
  async #send(body: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<StreamedAnswer> {
    const isSampling = SAMPLING_PARAMETERS.some((name) => name in body);
    const headers = { "anthropic-version": isSampling ? SAMPLING_VERSION : VERSION };
    try {
      const options = { body, headers, signal, stream: true };
      return streamedAnswer(await this.#client.post("/v1/messages", options).asResponse());
    } catch (error) {
      nameSubject(upstreamCause(error));
      throw error;
    }
  }

  #body({ setup: { instructions, tools }, messages }: HistoryRequest, params: ModelParams): Record<string, unknown> {
    const { model, modelSettings } = this.#setup;
    const thinks = mayThink(model, modelSettings.extraBody?.thinking ?? params.thinking);
    const body = {
      model,
      ...params,
      ...(instructions.trim() === "" ? {} : { system: [cached({ type: "text", text: instructions })] }),
      messages: withCachePoint(toMessages(messages, (message) => thinks && !this.#forgotten.has(message))),
      ...toolParams(tools, messages),
      stream: true,
    };
    return withExtraBody(body, modelSettings.extraBody);
  }
}

function hasThinking(message: HistoryMessage): boolean {
  return message.role === "assistant" && message.thinking_blocks !== undefined;
}

/** Whether a request with this configuration of thinking can make use of earlier thoughts. */
function mayThink(model: string, thinking: unknown): boolean {
  // Without a configuration no known model thinks: `claudeThinking` gives one to those that would.
  if (thinking === undefined) return parseClaudeModel(model) === undefined;
  return !isRecord(thinking) || thinking.type !== "disabled";
}

/**
 * Two points up to which the API keeps what it has read: tools and instructions, which all conversations share, and all of this
 * conversation, with which its next request begins.
 */
function withCachePoint(messages: AnthropicMessage[]): AnthropicMessage[] {
  const last = messages.at(-1);
  const block = last?.content.at(-1);
  if (last?.role !== "user" || block === undefined) return messages;
  return [...messages.slice(0, -1), { ...last, content: [...last.content.slice(0, -1), cached(block)] }];
}

function cached<Block extends Anthropic.ContentBlockParam>(block: Block): Block {
  return { ...block, cache_control: { type: "ephemeral" } };
}

/** A history with calls needs tools in the request: where the agent has none left, none may be called. */
function toolParams(
  tools: readonly ToolSpec[],
  history: readonly HistoryMessage[],
): { tools?: Anthropic.Tool[]; tool_choice?: Anthropic.ToolChoiceNone } {
  if (tools.length > 0) return { tools: tools.map(toolParam) };
  const names = new Set(callsOf(history).map((call) => toolName(call.function.name)));
  if (names.size === 0) return {};
  const lost = [...names].map((name) => toolParam({ name, description: "No longer available.", parameters: {} }));
  return { tools: lost, tool_choice: { type: "none" } };
}

function toolParam({ name, description, parameters }: ToolSpec): Anthropic.Tool {
  // The API does not need to know which draft a schema follows.
  const { $schema: _draft, ...schema } = parameters;
  return { name, description, input_schema: { ...schema, type: "object" } };
}

/** Puts what Anthropic's refusals say only in their sentences into the fields that the rules of `failures.ts` read. */
function nameSubject(cause: unknown): void {
  if (!(cause instanceof UpstreamRefusal) || cause.detail.param !== "") return;
  const { detail } = cause;
  // "messages.1.content.0: ...", "max_tokens: ...", "thinking.enabled.budget_tokens: ..."
  const subject = /^([a-z_]+)(?:\.[\w.]+)?: /.exec(detail.text);
  // `"thinking.type.enabled" is not supported for this model`, `` `temperature` is deprecated ``
  const quoted = /^["`]([a-z_]+)[\w.]*["`] (?:is|may|must|cannot)\b/.exec(detail.text);
  detail.param = subject?.[1] ?? quoted?.[1] ?? "";
  if (/credit balance/i.test(detail.text)) detail.code = "insufficient_quota";
  if (/content filtering policy/i.test(detail.text)) detail.code = "content_filter";
  if (/exceed context limit/i.test(detail.text)) detail.code = "context_length_exceeded";
}
