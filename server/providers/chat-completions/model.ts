/** Any server of OpenAI's Chat Completions API: LiteLLM, vLLM, llama.cpp, Ollama, Gemini, … */

import type { MediaType } from "../../protocol/attachments.ts";
import type { HistoryMessage } from "../../protocol/chat.ts";
import { HistoryProvider } from "../history.ts";
import type {
  HistoryModel,
  HistoryRequest,
  ModelEvent,
  ModelSettings,
  Provider,
  ProviderFacts,
  TransportLimits,
} from "../provider.ts";
import { type ApiAddress, openAiClient, type PostStream } from "../transport/fetch.ts";
import { type RetryClock, streamEvents, withExtraBody } from "../transport/request.ts";
import { type ChatDialect, type HistoryQuirks, PLAIN_DIALECT, type SettingQuirks } from "./dialect.ts";
import { type SentMessage, sentMessages } from "./messages.ts";
import { learn, NO_HISTORY_QUIRKS, NO_SETTING_QUIRKS, type RequestQuirks } from "./quirks.ts";
import { ChatReader } from "./reader.ts";

export interface ChatCompletionsOptions extends ProviderFacts, ApiAddress {
  /** The model's name as the server knows it. */
  model: string;
  limits: TransportLimits;
  modelSettings: ModelSettings;
  dialect?: ChatDialect;
  /** For tests. */
  clock?: RetryClock | undefined;
}

/** A provider that speaks the Chat Completions API. */
export function createChatCompletions(options: ChatCompletionsOptions): Provider {
  const { id, label, mediaTypes } = options;
  return new HistoryProvider({ id, label, mediaTypes }, new ChatCompletionsModel(options));
}

/** A model of such a server, and what was learned of what it takes. */
class ChatCompletionsModel implements HistoryModel {
  readonly #options: ChatCompletionsOptions;
  readonly #dialect: ChatDialect;
  readonly #mediaTypes: readonly MediaType[];
  readonly #post: PostStream;
  #settingQuirks: SettingQuirks = NO_SETTING_QUIRKS;
  /** Of each conversation alone: its history is the client's, and must not shape another's requests. */
  readonly #historyQuirks = new WeakMap<readonly HistoryMessage[], HistoryQuirks>();

  constructor(options: ChatCompletionsOptions) {
    this.#options = options;
    this.#dialect = options.dialect ?? PLAIN_DIALECT;
    this.#mediaTypes = options.mediaTypes;
    this.#post = openAiClient(options);
  }

  stream(request: HistoryRequest, signal: AbortSignal): AsyncIterable<ModelEvent[]> {
    const { label, limits, clock } = this.#options;
    const { explain, thinkTags } = this.#dialect;
    // Other requests may learn at the same time: what this one was shaped by is its own.
    let quirks: RequestQuirks = {
      settings: this.#settingQuirks,
      history: this.#historyQuirks.get(request.messages) ?? NO_HISTORY_QUIRKS,
    };
    let body = this.#body(request, quirks);
    const sent = {
      label,
      limits,
      clock,
      explain,
      onRequestId: request.onRequestId,
      send: (own: AbortSignal) => this.#post("/chat/completions", body, own),
      adapt: ({ cause }: { cause?: unknown }) => {
        const learned = learn(cause, { ...quirks, body, dialect: this.#dialect });
        if (learned === undefined) return false;
        quirks = this.#remember(request.messages, quirks, learned);
        body = this.#body(request, quirks);
        return true;
      },
    };
    return streamEvents(sent, new ChatReader(label, request, thinkTags), signal);
  }

  #remember(
    messages: readonly HistoryMessage[],
    { settings, history }: RequestQuirks,
    learned: Partial<{ settings: Partial<SettingQuirks>; history: Partial<HistoryQuirks> }>,
  ): RequestQuirks {
    const quirks = { settings: { ...settings, ...learned.settings }, history: { ...history, ...learned.history } };
    this.#settingQuirks = { ...this.#settingQuirks, ...learned.settings };
    this.#historyQuirks.set(messages, quirks.history);
    return quirks;
  }

  #body({ setup, messages }: HistoryRequest, quirks: RequestQuirks) {
    const { instructions, tools } = setup;
    const dialect = this.#dialect;
    const rules = { dialect, mediaTypes: this.#mediaTypes, quirks: quirks.history };
    const system: SentMessage[] = instructions === "" ? [] : [{ role: "system", content: instructions }];
    const functions = tools.map(({ name, description, parameters }) => ({
      type: "function",
      function: { name, description, parameters: dialect.parameters(parameters) },
    }));
    const body = {
      model: this.#options.model,
      ...(functions.length === 0 ? {} : { tools: functions }),
      ...(quirks.settings.usage ? { stream_options: { include_usage: true } } : {}),
      stream: true,
    };
    return {
      ...withExtraBody(body, dialect.settings(this.#options.modelSettings, quirks.settings)),
      messages: [...system, ...sentMessages(messages, rules)],
    };
  }
}
