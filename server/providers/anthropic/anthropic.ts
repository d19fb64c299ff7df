import type { Anthropic } from "@anthropic-ai/sdk";
import type { HistoryMessage } from "../../protocol/chat.ts";
import { mediaTypesOf } from "../capabilities.ts";
import { withExtraBody } from "../extra-body.ts";
import { truncated } from "../failures/failures.ts";
import { SetupError } from "../failures/provider-error.ts";
import { callIds, callsOf } from "../history/calls.ts";
import { HistoryProvider } from "../history/history.ts";
import type {
  ChatModel,
  ChatModelEvent,
  ChatModelRequest,
  ModelSettings,
  Provider,
  ProviderSetup,
  Tell,
  ToolSpec,
} from "../provider.ts";
import { readBaseUrl, readToken } from "../settings.ts";
import { readMessage } from "../upstream/message.ts";
import { type MessageSlots, RepeatedJson } from "../upstream/repeated-json.ts";
import { type StreamOptions, type StreamReader, type StreamRequest, streamEvents } from "../upstream/stream.ts";
import { type AnthropicClass, AnthropicClient } from "./client.ts";
import { ForgottenThinking } from "./forgotten-thinking.ts";
import { toMessages, toolName } from "./messages.ts";
import { type ModelParams, mayThink, modelParams } from "./models.ts";
import { AnthropicReader } from "./reader.ts";
import { explainRefusal, refusesThinking, wantsThinking } from "./refusal.ts";

const LABEL = "Anthropic";

const SLOTS: MessageSlots = {
  texts: ["text", "thinking"].map((key) => ({ key, holder: ({ delta }) => delta })),
  others: [],
};

/** The row `anthropic/NAME`: Claude through Anthropic's Messages API, by its own package. */
export async function createAnthropic(setup: ProviderSetup): Promise<Provider> {
  const { model, env, times, settings } = setup;
  const apiKey = readToken(env, "ANTHROPIC_API_KEY");
  if (apiKey === undefined) {
    throw new SetupError(
      `model "anthropic/${model}" needs ANTHROPIC_API_KEY: set it to a key of your Anthropic account.`,
    );
  }
  const baseUrl = readBaseUrl(env, "ANTHROPIC_BASE_URL") ?? "https://api.anthropic.com";
  const sdk = (await setup.loadPackage("@anthropic-ai/sdk")) as typeof import("@anthropic-ai/sdk");
  return createMessagesProvider({ sdk: sdk.Anthropic, model, baseUrl, apiKey, times, settings });
}

export interface MessagesOptions extends Pick<StreamOptions, "times" | "clock"> {
  sdk: AnthropicClass;
  model: string;
  baseUrl: string;
  apiKey: string;
  settings: ModelSettings;
}

/** A provider that speaks the Messages API. @throws SetupError for settings that do not suit the model */
export function createMessagesProvider(options: MessagesOptions): Provider {
  const chat = new MessagesModel(options);
  return new HistoryProvider({ id: "anthropic", label: LABEL, mediaTypes: mediaTypesOf("anthropic") }, chat);
}

class MessagesModel implements ChatModel {
  readonly #client: AnthropicClient;
  readonly #stream: StreamOptions;
  readonly #model: string;
  readonly #params: ModelParams;
  readonly #extraBody: Readonly<Record<string, unknown>>;
  readonly #forgotten = new ForgottenThinking();

  constructor({ sdk, model, baseUrl, apiKey, times, clock, settings }: MessagesOptions) {
    this.#client = new AnthropicClient(sdk, { baseUrl, apiKey }, times.firstChunk);
    this.#stream = { label: LABEL, times, ...(clock === undefined ? {} : { clock }) };
    this.#model = model;
    this.#params = modelParams(model, settings);
    this.#extraBody = settings.extraBody ?? {};
  }

  prepare(): Promise<void> {
    return this.#client.prepare();
  }

  stream(request: ChatModelRequest, signal: AbortSignal, tell: Tell<ChatModelEvent>): Promise<void> {
    const messages = new AnthropicReader();
    const source = { label: LABEL, parser: new RepeatedJson(SLOTS) };
    const reader: StreamReader<ChatModelEvent> = {
      read(message, said) {
        const event = readMessage(message, source);
        if (event === undefined || event.type === "message_stop") return false;
        said.push(...messages.read(event));
        return true;
      },
      end() {
        if (!messages.finished) throw truncated(LABEL);
        return messages.end(callIds(request.messages), LABEL);
      },
    };
    return streamEvents(this.#request(request), this.#stream, reader, signal, tell);
  }

  /**
   * Thinking goes back whenever the API takes it. It does not when something before it has changed (the
   * agent's instructions, its tools, an attachment that the history had no room for) or another account
   * made it; then the conversation goes on without. And where thinking is missing from a turn with calls
   * (another model's, or one without), older models refuse to go on thinking in it.
   */
  #request(request: ChatModelRequest): StreamRequest {
    let params = this.#params;
    return {
      onAnswer: request.onAnswer,
      send: (signal) => this.#client.send(this.#body(request, params), signal).catch(explainRefusal),
      adapt: ({ cause }) => {
        const thinking = request.messages.filter(hasThinking);
        if (refusesThinking(cause) && this.#forgotten.forget(thinking)) return true;
        if (!wantsThinking(cause) || params.thinking === undefined) return false;
        const { thinking: _thinking, ...rest } = params;
        params = rest;
        return true;
      },
    };
  }

  #body({ instructions, tools, messages }: ChatModelRequest, params: ModelParams): Record<string, unknown> {
    const thinks = mayThink(this.#model, this.#extraBody.thinking ?? params.thinking);
    const turns = toMessages(messages, (message) => thinks && !this.#forgotten.has(message));
    const body = {
      model: this.#model,
      ...params,
      ...(instructions.trim() === "" ? {} : { system: [cached(systemBlock(instructions))] }),
      messages: withCachePoint(turns),
      ...toolParams(tools, messages),
      stream: true,
    };
    return withExtraBody(body, this.#extraBody);
  }
}

function hasThinking(message: HistoryMessage): boolean {
  return message.role === "assistant" && message.thinking_blocks !== undefined;
}

function systemBlock(text: string): Anthropic.TextBlockParam {
  return { type: "text", text };
}

/**
 * Two points up to which the API keeps what it has read: tools and instructions, which all conversations
 * share, and all of this one, which its next request begins with.
 */
function withCachePoint(turns: Anthropic.MessageParam[]): Anthropic.MessageParam[] {
  const last = turns.at(-1);
  const block = Array.isArray(last?.content) ? last.content.at(-1) : undefined;
  if (last?.role !== "user" || !Array.isArray(last.content) || block === undefined) return turns;
  const content = [...last.content.slice(0, -1), cached(block)];
  return [...turns.slice(0, -1), { ...last, content }];
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
  const description = "No longer available.";
  const gone = [...names].map((name) => toolParam({ name, description, parameters: {} }));
  return { tools: gone, tool_choice: { type: "none" } };
}

function toolParam({ name, description, parameters }: ToolSpec): Anthropic.Tool {
  // Which draft a schema follows is not the API's business.
  const { $schema: _draft, ...schema } = parameters;
  return { name, description, input_schema: { ...schema, type: "object" } };
}
