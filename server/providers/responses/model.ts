import type { OpenAI } from "openai";
import type { HistoryMessage } from "../../protocol/chat.ts";
import { withExtraBody } from "../extra-body.ts";
import { truncated } from "../failures/failures.ts";
import type { HostedToolType, ModelSettings, OnAnswer, SpokenEvent, Tell, ToolSpec } from "../provider.ts";
import { text } from "../text.ts";
import { readMessage } from "../upstream/message.ts";
import { blamesParameter, UpstreamRefusal } from "../upstream/refusal.ts";
import { type MessageSlots, RepeatedJson } from "../upstream/repeated-json.ts";
import type { StreamReader } from "../upstream/stream.ts";
import { Upstream, type UpstreamOptions, type UpstreamRequest } from "../upstream/upstream.ts";
import { type InputItem, toInput } from "./input.ts";
import { type FinishedResponse, ResponsesReader } from "./reader.ts";

/** `obfuscation` is noise, so that the length of a packet does not tell that of its token. */
const SLOTS: MessageSlots = {
  texts: [{ key: "delta", holder: (event) => event }],
  others: ["sequence_number", "obfuscation"].map((key) => ({ key, holder: (event) => event })),
};

export interface ResponsesOptions extends UpstreamOptions {
  id: string;
  model: string;
  settings: ModelSettings;
}

/** What one request tells the API beyond what the agent's settings say. */
export interface ResponsesTurn {
  instructions: string;
  tools: readonly ToolSpec[];
  /** What the API has not been told yet. */
  messages: readonly HistoryMessage[];
  store: boolean;
  previousId?: string | undefined;
  onAnswer?: OnAnswer | undefined;
}

/** What of a request may have to be left out. */
interface RequestShape {
  input: readonly InputItem[];
  summary: boolean;
  encrypted: boolean;
}

/** One model of the Responses API, and what was learned of what it takes. */
export class ResponsesModel {
  readonly #upstream: Upstream;
  readonly #name: string;
  readonly #settings: ModelSettings;
  /** Until the API refuses the request for it: other models, and accounts that are not verified. */
  #asksForSummary: boolean;
  /** Likewise: models that do not reason have nothing to encrypt. */
  #asksForEncrypted: boolean;

  constructor(options: ResponsesOptions) {
    this.#upstream = new Upstream("/responses", options);
    this.#name = options.model;
    this.#settings = options.settings;
    this.#asksForSummary = isReasoningModel(options.model);
    this.#asksForEncrypted = this.#asksForSummary;
  }

  prepare(): Promise<void> {
    return this.#upstream.prepare();
  }

  /** One request. Tells what is said and then what `end` makes of it; rejects with a `ProviderError`. */
  ask<End>(
    turn: ResponsesTurn,
    end: (finished: FinishedResponse) => End,
    signal: AbortSignal,
    tell: Tell<SpokenEvent | End>,
  ): Promise<void> {
    const { label } = this.#upstream;
    const responses = new ResponsesReader(label);
    const source = { label, parser: new RepeatedJson(SLOTS) };
    // Others may learn at the same time: what this request asks for is its own.
    let shape: RequestShape = {
      input: toInput(turn.messages),
      summary: this.#asksForSummary,
      encrypted: this.#asksForEncrypted && !turn.store,
    };
    const request: UpstreamRequest = {
      onAnswer: turn.onAnswer,
      body: () => this.#params(turn, shape),
      adapt: ({ cause }) => {
        const learned = this.#learn(shape, cause);
        if (learned !== undefined) shape = learned;
        return learned !== undefined;
      },
    };
    const reader: StreamReader<SpokenEvent | End> = {
      read(message, said) {
        const event = readMessage(message, source);
        if (event === undefined) return false;
        said.push(...responses.read(text(event.type) || message.event, event));
        return responses.finished === undefined;
      },
      end() {
        if (responses.finished === undefined) throw truncated(label);
        return [end(responses.finished)];
      },
    };
    return this.#upstream.events(request, reader, signal, tell);
  }

  /** The request as it may be taken after this refusal; `undefined` when nothing can be left out. */
  #learn(shape: RequestShape, cause: unknown): RequestShape | undefined {
    const input = withoutRefusedReasoning(shape.input, cause);
    if (input !== undefined) return { ...shape, input };
    if (shape.encrypted && blamesEncrypted(cause)) {
      this.#asksForEncrypted = false;
      return { ...shape, encrypted: false };
    }
    if (shape.summary && blamesParameter(cause, "reasoning")) {
      this.#asksForSummary = false;
      return { ...shape, summary: false };
    }
    return undefined;
  }

  #params(turn: ResponsesTurn, { input, summary, encrypted }: RequestShape) {
    const { instructions, store, previousId } = turn;
    const { temperature, maxOutputTokens, extraBody } = this.#settings;
    const reasoning = this.#reasoning(summary);
    const tools = this.#tools(turn.tools);
    const include = this.#include(encrypted);
    const params = {
      model: this.#name,
      // The API does not carry instructions over from the previous response.
      ...(instructions === "" ? {} : { instructions }),
      input: [...input],
      ...(tools.length === 0 ? {} : { tools }),
      ...(include.length === 0 ? {} : { include }),
      ...(Object.keys(reasoning).length === 0 ? {} : { reasoning }),
      ...(temperature === undefined ? {} : { temperature }),
      ...(maxOutputTokens === undefined ? {} : { max_output_tokens: maxOutputTokens }),
      ...(previousId === undefined ? {} : { previous_response_id: previousId }),
      store,
      stream: true,
    };
    return withExtraBody(params, extraBody);
  }

  #reasoning(summary: boolean): OpenAI.Reasoning {
    const { reasoningEffort } = this.#settings;
    return {
      // Without a request for summaries, reasoning models think in silence.
      ...(summary ? { summary: "auto" } : {}),
      ...(reasoningEffort === undefined ? {} : { effort: reasoningEffort }),
    };
  }

  #tools(tools: readonly ToolSpec[]): OpenAI.Responses.Tool[] {
    const hosted = this.#settings.hostedTools ?? [];
    // The agent's author writes their fields, of which Parley knows only the type.
    return [...tools.map(functionTool), ...(hosted as unknown as OpenAI.Responses.Tool[])];
  }

  #include(encrypted: boolean): OpenAI.Responses.ResponseIncludable[] {
    const hosted = this.#settings.hostedTools ?? [];
    return [
      ...hosted.map(({ type }) => RESULTS_OF[type]),
      ...(encrypted ? ["reasoning.encrypted_content" as const] : []),
    ];
  }
}

/** Without being asked, the API tells that a tool of its own ran, but not what came of it. */
const RESULTS_OF = {
  web_search: "web_search_call.action.sources",
  file_search: "file_search_call.results",
  code_interpreter: "code_interpreter_call.outputs",
} as const satisfies Record<HostedToolType, OpenAI.Responses.ResponseIncludable>;

/** Models that take `reasoning`; all others answer 400 to it, which costs one request and is remembered. */
function isReasoningModel(name: string): boolean {
  return /(?:^|[/:])(?:o\d|gpt-[5-9]|codex)(?!.*chat)/.test(name);
}

function functionTool({ name, description, parameters }: ToolSpec): OpenAI.Responses.FunctionTool {
  return { type: "function", name, description, parameters, strict: false };
}

function blamesEncrypted(cause: unknown): boolean {
  return cause instanceof UpstreamRefusal && /encrypted/i.test(cause.detail.text);
}

/**
 * Another account or model cannot decrypt the reasoning of earlier turns. What was said and done still
 * makes a conversation without it.
 */
function withoutRefusedReasoning(input: readonly InputItem[], cause: unknown): InputItem[] | undefined {
  if (!(cause instanceof UpstreamRefusal)) return undefined;
  if (cause.detail.code !== "invalid_encrypted_content") return undefined;
  const rest = input.filter((item) => item.type !== "reasoning");
  return rest.length < input.length ? rest : undefined;
}
