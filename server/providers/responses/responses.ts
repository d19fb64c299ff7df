import type { MediaType } from "../../protocol/attachments.ts";
import type { ConversationState, HistoryMessage } from "../../protocol/chat.ts";
import { mediaTypesOf } from "../capabilities.ts";
import { HistoryProvider } from "../history/history.ts";
import { CANCELLED_OUTPUT, toolMessage } from "../history/tool-output.ts";
import { userMessage } from "../history/user-message.ts";
import type {
  ChatModel,
  ChatModelEvent,
  ChatModelRequest,
  Conversation,
  ConversationSetup,
  OnAnswer,
  Provider,
  ProviderEvent,
  ProviderFacts,
  Tell,
  ToolAnswer,
} from "../provider.ts";
import { LateResponsesModel, type StoredModel } from "./late-model.ts";
import type { ResponsesOptions } from "./model.ts";
import type { FinishedResponse } from "./reader.ts";

/**
 * OpenAI's Responses API. It keeps the conversation, and the state is the id of its last response; with
 * `store: false` it keeps nothing, and the state is the whole history.
 */
export function createResponses(options: ResponsesOptions): Provider {
  const { id, label, settings } = options;
  const model = new LateResponsesModel(options);
  const provider = { id, label, mediaTypes: mediaTypesOf("openai") };
  if (settings.store === false) return new HistoryProvider(provider, new StatelessResponses(model));
  return new ResponsesProvider(provider, model);
}

/** The API with its memory. */
export class ResponsesProvider implements Provider {
  readonly stateKind = "previous_response_id";
  readonly id: string;
  readonly label: string;
  readonly mediaTypes: readonly MediaType[];
  readonly models?: readonly string[];
  /** Another model of the same account can go on with the same conversation. */
  readonly model: StoredModel;

  constructor({ id, label, mediaTypes, models }: ProviderFacts, model: StoredModel) {
    this.id = id;
    this.label = label;
    this.mediaTypes = mediaTypes;
    if (models !== undefined) this.models = models;
    this.model = model;
  }

  prepare(): Promise<void> {
    return this.model.prepare();
  }

  open(setup: ConversationSetup): Conversation {
    return new ResponsesConversation(this.model, setup);
  }
}

/** The API without its memory: told everything with each request. */
class StatelessResponses implements ChatModel {
  readonly #model: StoredModel;

  constructor(model: StoredModel) {
    this.#model = model;
  }

  prepare(): Promise<void> {
    return this.#model.prepare();
  }

  stream(
    { instructions, tools, messages, onAnswer }: ChatModelRequest,
    signal: AbortSignal,
    tell: Tell<ChatModelEvent>,
  ): Promise<void> {
    const turn = { instructions, tools, messages, store: false, onAnswer };
    return this.#model.ask(turn, (finished) => ({ ...endOf(finished), message: finished.message }), signal, tell);
  }
}

class ResponsesConversation implements Conversation {
  readonly #model: StoredModel;
  readonly #setup: ConversationSetup;
  /** What the API has not been told yet. */
  #messages: HistoryMessage[];
  /** The response to continue from within this run; its calls may be open. */
  #previousId: string | undefined;
  /** Its calls that were cut: nobody runs them, and yet the API wants each answered. */
  #cutCalls: readonly string[] = [];
  /** The last response that left no call open. Only such an id may leave: the API refuses any other. */
  #settledId: string | undefined;

  constructor(model: StoredModel, setup: ConversationSetup) {
    const { state } = setup;
    this.#model = model;
    this.#setup = setup;
    this.#messages = [userMessage(setup.message, setup.attachments)];
    this.#settledId = "previous_response_id" in state ? state.previous_response_id : undefined;
    this.#previousId = this.#settledId;
  }

  ask(signal: AbortSignal, tell: Tell<ProviderEvent>, onAnswer?: OnAnswer): Promise<void> {
    const { instructions, tools } = this.#setup;
    const turn = {
      instructions,
      tools,
      messages: this.#messages,
      store: true,
      previousId: this.#previousId,
      onAnswer,
    };
    return this.#model.ask(turn, (finished) => this.#end(finished), signal, tell);
  }

  answer(answers: readonly ToolAnswer[]): void {
    this.#messages = [
      ...answers.map(({ id, output, failed }) => toolMessage(id, output, failed)),
      ...this.#cutCalls.map((id) => toolMessage(id, CANCELLED_OUTPUT, true)),
    ];
  }

  /**
   * Nothing to close: a response that was cut is not kept by the API, and one whose calls are open is
   * never handed out. The conversation goes on from the last response that was complete.
   */
  interrupt(): void {
    this.#messages = [];
  }

  #end(finished: FinishedResponse) {
    this.#previousId = finished.id;
    this.#cutCalls = finished.cutCalls;
    const isOpen = finished.calls.length + finished.cutCalls.length > 0;
    if (!isOpen) this.#settledId = finished.id;
    return endOf(finished);
  }

  state(): ConversationState {
    return this.#settledId === undefined ? {} : { previous_response_id: this.#settledId };
  }
}

function endOf({ finish, usage }: FinishedResponse) {
  return { type: "end" as const, finish, ...(usage === undefined ? {} : { usage }) };
}
