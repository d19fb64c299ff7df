/** Claude through Anthropic's Messages API. */

import { requireSetting } from "../../config/settings.ts";
import type { HistoryMessage } from "../../protocol/chat.ts";
import { isRecord } from "../../protocol/json.ts";
import { type AlternatingMessage, ForgottenThinking, lostTools } from "../claude/messages.ts";
import {
  type ClaudeModel,
  type ClaudeThinking,
  checkClaudeTemperature,
  claudeThinking,
  isAtLeast,
  parseClaudeModel,
} from "../claude/models.ts";
import { createProvider } from "../create-provider.ts";
import { UpstreamRefusal } from "../failures.ts";
import type { Model, ModelRequest, ModelSettings, Provider, ProviderSetup, ToolSpec } from "../provider.ts";
import { EVENT_STREAM, requestStream, type Sending, type StreamedAnswer } from "../transport/fetch.ts";
import { streamEvents, withExtraBody } from "../transport/request.ts";
import { type Block, toMessages } from "./messages.ts";
import { AnthropicReader } from "./reader.ts";

/** The row `anthropic/NAME`. @throws ConfigError */
export function createAnthropic(setup: ProviderSetup): Provider {
  requireSetting(setup, "anthropicKey", "a key of your Anthropic account");
  const params = modelParams(setup.model, setup.modelSettings);
  return createProvider({ ...setup, citesResults: true }, "conversation_history", messagesModel(setup, params));
}

/** The fields that are the same in all requests. */
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
 * The API demands a limit: half of what the model can write, or all of it where that is little. Thinking counts towards
 * it, and up to version 4.1 the limit is subtracted from the context window.
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

/**
 * Thinking is sent back whenever the API accepts it. The API refuses it if something before it has changed
 * (instructions, tools, an attachment that the history had no room for) or another account made it; it is then left
 * out. Older models also refuse to think in an answer with calls that lack their thinking, such as another model's.
 */
function messagesModel(setup: ProviderSetup, params: ModelParams): Model {
  const forgotten = new ForgottenThinking();
  return (request, signal) => {
    const shape = { thinks: params.thinking !== undefined };
    const sent = {
      setup,
      observer: request.observer,
      send: (sending: Sending) => {
        const thinking = shape.thinks ? params.thinking : undefined;
        return send(setup, messagesBody(setup, request, { ...params, thinking }, forgotten), sending);
      },
      adapt: (refusal: UpstreamRefusal) => forgotten.adapt(refusal, request.messages.filter(hasThinking), shape),
    };
    return streamEvents(sent, () => new AnthropicReader(request), signal);
  };
}

async function send(
  { settings: { anthropicUrl, anthropicKey } }: ProviderSetup,
  body: Record<string, unknown>,
  sending: Sending,
): Promise<StreamedAnswer> {
  const isSampling = SAMPLING_PARAMETERS.some((name) => name in body);
  const headers = {
    accept: EVENT_STREAM,
    "content-type": "application/json",
    // Some gateways refuse a request that names no client.
    "user-agent": "parley-agent",
    "x-api-key": anthropicKey,
    "anthropic-version": isSampling ? SAMPLING_VERSION : VERSION,
  };
  const url = `${anthropicUrl.replace(/\/$/, "")}/v1/messages`;
  try {
    return await requestStream(url, { method: "POST", headers, body: JSON.stringify(body), ...sending }, EVENT_STREAM);
  } catch (error) {
    if (error instanceof UpstreamRefusal) nameSubject(error.detail);
    throw error;
  }
}

function messagesBody(
  { model, modelSettings }: ProviderSetup,
  { setup: { instructions, tools }, messages }: ModelRequest,
  params: ModelParams,
  forgotten: ForgottenThinking,
): Record<string, unknown> {
  const thinks = mayThink(model, modelSettings.extraBody?.thinking ?? params.thinking);
  const body = {
    model,
    ...params,
    ...(instructions.trim() === "" ? {} : { system: [cached({ type: "text", text: instructions })] }),
    messages: withCachePoint(toMessages(messages, (message) => thinks && !forgotten.has(message))),
    ...toolParams(tools, messages),
    stream: true,
  };
  return withExtraBody(body, modelSettings.extraBody);
}

function hasThinking(message: HistoryMessage): boolean {
  return message.role === "assistant" && message.thinking_blocks !== undefined;
}

/** Whether a request with this configuration of thinking can use earlier thoughts. */
function mayThink(model: string, thinking: unknown): boolean {
  // Known models do not think without a configuration: `claudeThinking` gives one to those that would.
  if (thinking === undefined) return parseClaudeModel(model) === undefined;
  return !isRecord(thinking) || thinking.type !== "disabled";
}

type Message = AlternatingMessage<Block>;

/**
 * Sets the second of two cache points. The first covers tools and instructions, which all conversations share; the
 * second covers the conversation so far, with which its next request begins.
 */
function withCachePoint(messages: Message[]): Message[] {
  const last = messages.at(-1);
  const block = last?.content.at(-1);
  if (last?.role !== "user" || block === undefined) return messages;
  return [...messages.slice(0, -1), { ...last, content: [...last.content.slice(0, -1), cached(block)] }];
}

function cached(block: Block): Block & { cache_control: object } {
  return { ...block, cache_control: { type: "ephemeral" } };
}

/** Tools that the agent no longer has are declared for the calls in the history, but none may be called. */
function toolParams(tools: readonly ToolSpec[], history: readonly HistoryMessage[]): Record<string, unknown> {
  if (tools.length > 0) return { tools: tools.map(toolParam) };
  const lost = lostTools(history);
  return lost.length === 0 ? {} : { tools: lost.map(toolParam), tool_choice: { type: "none" } };
}

function toolParam({ name, description, parameters }: ToolSpec): Record<string, unknown> {
  return { name, description, input_schema: parameters };
}

/** Copies what Anthropic's refusals say only in their text into the fields that the rules of `failures.ts` read. */
export function nameSubject(detail: UpstreamRefusal["detail"]): void {
  if (detail.param !== "") return;
  // "messages.1.content.0: ...", "max_tokens: ...", "thinking.enabled.budget_tokens: ..."
  const subject = /^([a-z_]+)(?:\.[\w.]+)?: /.exec(detail.text);
  // `"thinking.type.enabled" is not supported for this model`, `` `temperature` is deprecated ``
  const quoted = /^["`]([a-z_]+)[\w.]*["`] (?:is|may|must|cannot)\b/.exec(detail.text);
  detail.param = subject?.[1] ?? quoted?.[1] ?? "";
  if (/credit balance/i.test(detail.text)) detail.code = "insufficient_quota";
  if (/content filtering policy/i.test(detail.text)) detail.code = "content_filter";
}
