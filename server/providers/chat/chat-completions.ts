import { ALL_MEDIA_TYPES, type MediaType } from "../../protocol/attachments.ts";
import type { HistoryMessage } from "../../protocol/chat.ts";
import { isRecord } from "../../protocol/is-record.ts";
import { withExtraBody } from "../extra-body.ts";
import { truncated } from "../failures/failures.ts";
import type { ProviderError } from "../failures/provider-error.ts";
import { callIds } from "../history/calls.ts";
import type { ChatModel, ChatModelEvent, ChatModelRequest, ModelSettings, Tell } from "../provider.ts";
import { readMessage } from "../upstream/message.ts";
import { type MessageSlots, RepeatedJson } from "../upstream/repeated-json.ts";
import type { StreamReader } from "../upstream/stream.ts";
import { Upstream, type UpstreamOptions, type UpstreamRequest } from "../upstream/upstream.ts";
import { type ChatDialect, type HistoryQuirks, PLAIN_DIALECT, type SettingQuirks } from "./dialect.ts";
import { type SentMessage, sentMessages } from "./messages.ts";
import { learn, NO_HISTORY_QUIRKS, NO_SETTING_QUIRKS, type RequestQuirks } from "./quirks.ts";
import { ChatReader } from "./reader.ts";

export interface ChatCompletionsOptions extends Omit<UpstreamOptions, "explain"> {
  id: string;
  /** The model's name as the server knows it. */
  model: string;
  mediaTypes?: readonly MediaType[];
  settings: ModelSettings;
  dialect?: ChatDialect;
}

const deltaOf = ({ choices }: Readonly<Record<string, unknown>>): unknown => {
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isRecord(choice) ? choice.delta : undefined;
};

/** `obfuscation` is OpenAI's: noise, so that the length of a packet does not tell that of its token. */
const SLOTS: MessageSlots = {
  texts: ["content", "reasoning_content", "reasoning"].map((key) => ({ key, holder: deltaOf })),
  others: [{ key: "obfuscation", holder: (chunk) => chunk }],
};

/** A model behind OpenAI's Chat Completions API, and what was learned of what it takes. */
export class ChatCompletionsModel implements ChatModel {
  readonly #upstream: Upstream;
  readonly #model: string;
  readonly #settings: ModelSettings;
  readonly #mediaTypes: readonly MediaType[];
  readonly #dialect: ChatDialect;
  #settingQuirks: SettingQuirks = NO_SETTING_QUIRKS;
  /** Of each conversation alone: its history is the client's, and must not shape another's requests. */
  readonly #historyQuirks = new WeakMap<readonly HistoryMessage[], HistoryQuirks>();

  constructor(options: ChatCompletionsOptions) {
    const { dialect = PLAIN_DIALECT } = options;
    this.#upstream = new Upstream("/chat/completions", { ...options, explain: dialect.explain });
    this.#model = options.model;
    this.#settings = options.settings;
    this.#mediaTypes = options.mediaTypes ?? ALL_MEDIA_TYPES;
    this.#dialect = dialect;
  }

  prepare(): Promise<void> {
    return this.#upstream.prepare();
  }

  stream(request: ChatModelRequest, signal: AbortSignal, tell: Tell<ChatModelEvent>): Promise<void> {
    const { label } = this.#upstream;
    const { explain, thinkTags } = this.#dialect;
    const chat = new ChatReader(label, thinkTags);
    const source = { label, explain, parser: new RepeatedJson(SLOTS) };
    const reader: StreamReader<ChatModelEvent> = {
      read(message, said) {
        const chunk = readMessage(message, source);
        if (chunk === undefined) return false;
        chat.read(chunk, said);
        return true;
      },
      end() {
        if (!chat.finished) throw truncated(label);
        return chat.end(callIds(request.messages));
      },
    };
    return this.#upstream.events(this.#request(request), reader, signal, tell);
  }

  #request(request: ChatModelRequest): UpstreamRequest {
    // Others may learn at the same time: what this request was shaped by is its own.
    let quirks: RequestQuirks = {
      settings: this.#settingQuirks,
      history: this.#historyQuirks.get(request.messages) ?? NO_HISTORY_QUIRKS,
    };
    let body = this.#body(request, quirks);
    return {
      onAnswer: request.onAnswer,
      body: () => body,
      adapt: (failure: ProviderError) => {
        const learned = learn(failure.cause, { ...quirks, body, dialect: this.#dialect });
        if (learned === undefined) return false;
        quirks = {
          settings: { ...quirks.settings, ...learned.settings },
          history: { ...quirks.history, ...learned.history },
        };
        this.#settingQuirks = { ...this.#settingQuirks, ...learned.settings };
        this.#historyQuirks.set(request.messages, quirks.history);
        body = this.#body(request, quirks);
        return true;
      },
    };
  }

  #body({ instructions, tools, messages }: ChatModelRequest, quirks: RequestQuirks) {
    const dialect = this.#dialect;
    const rules = { dialect, mediaTypes: this.#mediaTypes, quirks: quirks.history };
    const system: SentMessage[] = instructions === "" ? [] : [{ role: "system", content: instructions }];
    const functions = tools.map(({ name, description, parameters }) => ({
      type: "function",
      function: { name, description, parameters: dialect.parameters(parameters) },
    }));
    const body = {
      model: this.#model,
      ...(functions.length === 0 ? {} : { tools: functions }),
      ...(quirks.settings.usage ? { stream_options: { include_usage: true } } : {}),
      stream: true,
    };
    return {
      ...withExtraBody(body, dialect.settings(this.#settings, quirks.settings)),
      messages: [...system, ...sentMessages(messages, rules)],
    };
  }
}
