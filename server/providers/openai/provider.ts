/**
 * OpenAI's Responses API. It keeps the conversation, and the state is the id of its last response; with `store: false` it
 * keeps nothing, and the state is the whole history.
 */

import { ConfigError } from "../../errors.ts";
import type { MediaType } from "../../protocol/attachments.ts";
import type { ConversationState, HistoryMessage } from "../../protocol/chat.ts";
import { CANCELLED_OUTPUT, HistoryProvider, toolMessage, userMessage } from "../history.ts";
import {
  type Conversation,
  type ConversationStart,
  type ModelEvent,
  type ModelSetup,
  type OnRequestId,
  type Provider,
  type ProviderFacts,
  type ProviderSetup,
  requireSetting,
  type StoredModel,
  type StoredResponse,
  type ToolAnswer,
} from "../provider.ts";
import type { RetryClock } from "../transport/request.ts";
import { ResponsesModel } from "./model.ts";

/** The row `openai/NAME`. @throws ConfigError */
export function createOpenAi(setup: ProviderSetup, clock?: RetryClock): Provider {
  const { model, label, settings, modelSettings, limits } = setup;
  const apiKey = requireSetting(setup, "openaiKey", "a key of your OpenAI account");
  if (modelSettings.extraBody !== undefined && "store" in modelSettings.extraBody) {
    throw new ConfigError(
      "extraBody.store would break the state of every conversation: set store of the agent instead.",
    );
  }
  const responses = new ResponsesModel({
    label,
    model,
    baseURL: settings.openaiUrl,
    apiKey,
    organization: settings.openaiOrganization || undefined,
    project: settings.openaiProject || undefined,
    modelSettings,
    limits,
    clock,
  });
  if (modelSettings.store === false) {
    return new HistoryProvider(setup, {
      stream: (request, signal) =>
        responses.stream({ ...request, store: false }, ({ message }) => request.keep(message), signal),
    });
  }
  return new StoredProvider(setup, {
    stream: (request, signal) =>
      responses.stream(
        { ...request, store: true },
        ({ id, message, cutCalls }) => {
          const hasCalls = message.tool_calls !== undefined || cutCalls.length > 0;
          request.keep({ id, hasCalls, cutCalls });
        },
        signal,
      ),
  });
}

/** A provider whose API keeps the conversation. */
export class StoredProvider implements Provider {
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

  open(start: ConversationStart): Conversation {
    return new StoredConversation(this.model, start);
  }
}

class StoredConversation implements Conversation {
  readonly #model: StoredModel;
  readonly #setup: ModelSetup;
  /** What the API does not have yet. */
  #messages: HistoryMessage[];
  /** The response to continue from within this run; its calls may be open. */
  #previousId: string | undefined;
  /** Its calls that were cut: they are not carried out, but the API wants each answered. */
  #cutCalls: readonly string[] = [];
  /** The last response that left no call open. The API refuses a new message after any other. */
  #settledId: string | undefined;

  constructor(model: StoredModel, { setup, state, message, attachments }: ConversationStart) {
    this.#model = model;
    this.#setup = setup;
    this.#messages = [userMessage(message, attachments)];
    this.#previousId = state.previous_response_id;
    this.#settledId = this.#previousId;
  }

  ask(signal: AbortSignal, onRequestId?: OnRequestId): AsyncIterable<ModelEvent[]> {
    const request = {
      setup: this.#setup,
      messages: this.#messages,
      previousId: this.#previousId,
      keep: (response: StoredResponse) => this.#keep(response),
      onRequestId,
    };
    return this.#model.stream(request, signal);
  }

  answer(answers: readonly ToolAnswer[]): void {
    this.#messages = [
      ...answers.map(({ id, output, failed }) => toolMessage(id, output, failed)),
      ...this.#cutCalls.map((id) => toolMessage(id, CANCELLED_OUTPUT, false)),
    ];
  }

  /**
   * The API does not keep a response that was cut, and one with open calls is never handed out: the conversation goes on from
   * the last response that was complete.
   */
  interrupt(): void {
    this.#messages = [];
  }

  state(): ConversationState {
    return this.#settledId === undefined ? {} : { previous_response_id: this.#settledId };
  }

  #keep({ id, hasCalls, cutCalls }: StoredResponse): void {
    this.#previousId = id;
    this.#cutCalls = cutCalls;
    if (!hasCalls) this.#settledId = id;
  }
}
