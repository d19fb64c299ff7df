/** Requests to one model of the Responses API, and what is known of the parameters that it does not take. */

import type { HistoryMessage } from "../../protocol/chat.ts";
import { blamesParameter, UpstreamRefusal } from "../failures.ts";
import type { ModelEvent, ModelSettings, ModelSetup, OnRequestId, TransportLimits } from "../provider.ts";
import { type ApiAddress, openAiClient, type PostStream } from "../transport/fetch.ts";
import { type RetryClock, streamEvents, type UpstreamRequest, withExtraBody } from "../transport/request.ts";
import { HOSTED_RESULTS } from "./hosted-tools.ts";
import { type InputItem, toInput, withoutReasoning } from "./input.ts";
import { type FinishedResponse, ResponsesReader } from "./reader.ts";

export interface ResponsesOptions extends ApiAddress {
  /** The provider's name in sentences for the operator. */
  label: string;
  model: string;
  modelSettings: ModelSettings;
  limits: TransportLimits;
  clock?: RetryClock | undefined;
}

/** What one request says. */
export interface ResponsesTurn {
  setup: ModelSetup;
  /** What the API does not have yet; with `store: false`, all of the conversation. */
  messages: readonly HistoryMessage[];
  store: boolean;
  previousId?: string | undefined;
  onRequestId?: OnRequestId | undefined;
}

/** What a refusal may change about a request. */
interface RequestShape {
  input: readonly InputItem[];
  /** Whether it asks for summaries of the reasoning. */
  summary: boolean;
  /** Whether it asks for the reasoning in encrypted form. */
  encrypted: boolean;
}

export class ResponsesModel {
  readonly #options: ResponsesOptions;
  readonly #post: PostStream;
  /** Until a refusal: other models do not take it, and neither do accounts that are not verified. */
  #takesSummary: boolean;
  /** Until a refusal: models that do not reason have nothing to encrypt. */
  #takesEncrypted: boolean;

  constructor(options: ResponsesOptions) {
    this.#options = options;
    this.#post = openAiClient(options);
    this.#takesSummary = isReasoningModel(options.model);
    this.#takesEncrypted = this.#takesSummary;
  }

  /** `onEnd` is called before the `end` event. */
  stream(
    turn: ResponsesTurn,
    onEnd: (finished: FinishedResponse) => void,
    signal: AbortSignal,
  ): AsyncIterable<ModelEvent[]> {
    const { label, limits, clock } = this.#options;
    // Other conversations may learn at the same time: the shape is this request's own.
    let shape: RequestShape = {
      input: toInput(turn.messages),
      summary: this.#takesSummary,
      encrypted: this.#takesEncrypted && !turn.store,
    };
    const request: UpstreamRequest = {
      label,
      limits,
      clock,
      onRequestId: turn.onRequestId,
      send: (own) => this.#post("/responses", this.#body(turn, shape), own),
      adapt: ({ cause }) => {
        const next = this.#withoutRefused(shape, cause);
        if (next !== undefined) shape = next;
        return next !== undefined;
      },
    };
    return streamEvents(request, new ResponsesReader(label, onEnd), signal);
  }

  /** The shape that may be taken after this refusal; `undefined` when nothing can be left out. */
  #withoutRefused(shape: RequestShape, cause: unknown): RequestShape | undefined {
    if (!(cause instanceof UpstreamRefusal)) return undefined;
    const { code, text } = cause.detail;
    if (code === "invalid_encrypted_content") {
      // Another account or model cannot decrypt the reasoning in the history. The conversation goes on without it.
      const input = withoutReasoning(shape.input);
      if (input !== undefined) return { ...shape, input };
    }
    if (shape.encrypted && /encrypted/i.test(text)) {
      this.#takesEncrypted = false;
      return { ...shape, encrypted: false };
    }
    if (shape.summary && blamesParameter(cause, "reasoning")) {
      this.#takesSummary = false;
      return { ...shape, summary: false };
    }
    return undefined;
  }

  #body({ setup, store, previousId }: ResponsesTurn, { input, summary, encrypted }: RequestShape): object {
    const { model, modelSettings } = this.#options;
    const { reasoningEffort, temperature, maxOutputTokens, extraBody, hostedTools = [] } = modelSettings;
    const tools = [...setup.tools.map((tool) => ({ type: "function", ...tool, strict: false })), ...hostedTools];
    const include = [
      ...hostedTools.map(({ type }) => HOSTED_RESULTS[type]),
      ...(encrypted ? ["reasoning.encrypted_content"] : []),
    ];
    const reasoning = {
      // Unless it is asked for summaries, a reasoning model thinks in silence.
      ...(summary ? { summary: "auto" } : {}),
      ...(reasoningEffort === undefined ? {} : { effort: reasoningEffort }),
    };
    const body = {
      model,
      // The API does not carry instructions over from the previous response.
      ...(setup.instructions === "" ? {} : { instructions: setup.instructions }),
      input,
      ...(tools.length === 0 ? {} : { tools }),
      ...(include.length === 0 ? {} : { include }),
      ...(Object.keys(reasoning).length === 0 ? {} : { reasoning }),
      ...(temperature === undefined ? {} : { temperature }),
      ...(maxOutputTokens === undefined ? {} : { max_output_tokens: maxOutputTokens }),
      ...(previousId === undefined ? {} : { previous_response_id: previousId }),
      store,
      stream: true,
    };
    return withExtraBody(body, extraBody);
  }
}

/** By its name: models that take `reasoning`. All others answer 400 to it, which costs one request and is remembered. */
function isReasoningModel(name: string): boolean {
  return /(?:^|[/:])(?:o\d|gpt-[5-9]|codex)(?!.*chat)/.test(name);
}
