import type { OpenAI } from "openai";
import { ALL_MEDIA_TYPES, type Attachment } from "../protocol/attachments.ts";
import type { ConversationState } from "../protocol/chat.ts";
import { truncated } from "./failures.ts";
import { text } from "./json.ts";
import type {
  Conversation,
  ConversationSetup,
  ModelSettings,
  Provider,
  ProviderEvent,
  ToolAnswer,
  ToolSpec,
} from "./provider.ts";
import type { ProviderError } from "./provider-error.ts";
import { ResponsesReader } from "./responses-reader.ts";
import { toolOutput } from "./tool-output.ts";
import { readMessage, Upstream, type UpstreamOptions } from "./upstream.ts";
import { blamesParameter } from "./upstream-refusal.ts";

type ResponseParams = OpenAI.Responses.ResponseCreateParamsStreaming;
type InputItem = OpenAI.Responses.ResponseInputItem;
type InputContent = OpenAI.Responses.ResponseInputContent;

export interface ResponsesOptions extends UpstreamOptions {
  id: string;
  model: string;
  settings: ModelSettings;
}

/** OpenAI's Responses API: it keeps the conversation, and the state is the id of its last response. */
export function createResponses(options: ResponsesOptions): Provider {
  const model = new ResponsesModel(new Upstream(options), options);
  return {
    id: options.id,
    label: options.label,
    stateKind: "previous_response_id",
    mediaTypes: ALL_MEDIA_TYPES,
    open: (setup) => new ResponsesConversation(model, setup),
  };
}

/** What all conversations with one model share. */
class ResponsesModel {
  readonly upstream: Upstream;
  readonly #name: string;
  readonly #settings: ModelSettings;
  /** Until the API refuses the request for it: other models, and accounts that are not verified. */
  #asksForSummary: boolean;

  constructor(upstream: Upstream, { model, settings }: ResponsesOptions) {
    this.upstream = upstream;
    this.#name = model;
    this.#settings = settings;
    this.#asksForSummary = isReasoningModel(model);
  }

  params(): Pick<ResponseParams, "model" | "reasoning" | "temperature" | "max_output_tokens"> {
    const { reasoningEffort, temperature, maxOutputTokens } = this.#settings;
    const reasoning = {
      // Without a request for summaries, reasoning models think in silence.
      ...(this.#asksForSummary ? { summary: "auto" as const } : {}),
      ...(reasoningEffort === undefined ? {} : { effort: reasoningEffort }),
    };
    return {
      model: this.#name,
      ...(Object.keys(reasoning).length === 0 ? {} : { reasoning }),
      ...(temperature === undefined ? {} : { temperature }),
      ...(maxOutputTokens === undefined ? {} : { max_output_tokens: maxOutputTokens }),
    };
  }

  extraBody(): Readonly<Record<string, unknown>> {
    return this.#settings.extraBody ?? {};
  }

  adapt(failure: ProviderError): boolean {
    if (!this.#asksForSummary || !blamesParameter(failure.cause, "reasoning")) return false;
    this.#asksForSummary = false;
    return true;
  }
}

class ResponsesConversation implements Conversation {
  readonly #model: ResponsesModel;
  readonly #setup: ConversationSetup;
  /** What the API has not been told yet. */
  #input: InputItem[];
  /** The response to continue from within this run; its calls may be open. */
  #previousId: string | undefined;
  /** The last response that left no call open. Only such an id may leave: the API refuses any other. */
  #settledId: string | undefined;

  constructor(model: ResponsesModel, setup: ConversationSetup) {
    const { state } = setup;
    this.#model = model;
    this.#setup = setup;
    this.#input = [userItem(setup.message, setup.attachments)];
    this.#settledId = "previous_response_id" in state ? state.previous_response_id : undefined;
    this.#previousId = this.#settledId;
  }

  async *ask(signal: AbortSignal): AsyncGenerator<ProviderEvent, void> {
    const { upstream } = this.#model;
    const reader = new ResponsesReader(upstream.label);
    const batches = upstream.messages(
      {
        send: (client, options) => client.responses.create(this.#params(), options),
        adapt: (failure) => this.#model.adapt(failure),
      },
      signal,
    );
    reading: for await (const batch of batches) {
      for (const message of batch) {
        const event = readMessage(message, upstream.label);
        if (event === undefined) break reading;
        for (const said of reader.read(text(event.type) || message.event, event)) yield said;
        if (reader.outcome !== undefined) break reading;
      }
    }
    signal.throwIfAborted();
    const { outcome } = reader;
    if (outcome === undefined) throw truncated(upstream.label);
    this.#previousId = outcome.id;
    if (reader.calls.length === 0) this.#settledId = outcome.id;
    const { finish, usage } = outcome;
    yield { type: "end", finish, ...(usage === undefined ? {} : { usage }) };
  }

  answer(answers: readonly ToolAnswer[]): void {
    this.#input = answers.map((answer) => ({
      type: "function_call_output",
      call_id: answer.id,
      output: toolOutput(answer),
    }));
  }

  /**
   * Nothing to close: a response that was cut is not kept by the API, and one whose calls are open is
   * never handed out. The conversation goes on from the last response that was complete.
   */
  interrupt(): void {
    this.#input = [];
  }

  state(): ConversationState {
    return this.#settledId === undefined ? {} : { previous_response_id: this.#settledId };
  }

  #params(): ResponseParams {
    const { instructions, tools } = this.#setup;
    return {
      ...this.#model.params(),
      // The API does not carry instructions over from the previous response.
      ...(instructions === "" ? {} : { instructions }),
      input: this.#input,
      ...(tools.length === 0 ? {} : { tools: tools.map(functionTool) }),
      ...(this.#previousId === undefined ? {} : { previous_response_id: this.#previousId }),
      store: true,
      ...this.#model.extraBody(),
      // Not the author's to change: what reads the answer reads a stream.
      stream: true,
    };
  }
}

/** Models that take `reasoning`; all others answer 400 to it, which costs one request and is remembered. */
function isReasoningModel(name: string): boolean {
  return /(?:^|[/:])(?:o\d|gpt-[5-9]|codex)(?!.*chat)/.test(name);
}

function functionTool({ name, description, parameters }: ToolSpec): OpenAI.Responses.FunctionTool {
  return { type: "function", name, description, parameters, strict: false };
}

function userItem(message: string, attachments: readonly Attachment[]): InputItem {
  const said: InputContent[] = message === "" ? [] : [{ type: "input_text", text: message }];
  return { role: "user", content: [...said, ...attachments.map(inputPart)] };
}

function inputPart({ type, name, mime_type, data }: Attachment): InputContent {
  const url = `data:${mime_type};base64,${data}`;
  return type === "image"
    ? { type: "input_image", image_url: url, detail: "auto" }
    : { type: "input_file", filename: name, file_data: url };
}
