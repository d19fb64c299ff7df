/** Conversations with a scripted upstream, for the tests of providers. */

import assert from "node:assert/strict";
import { Exchange, type ExchangeStart } from "../../server/agent/exchange.ts";
import { ModelTurn } from "../../server/agent/model-turn.ts";
import type { RunContext } from "../../server/agent/run-context.ts";
import { modelSource } from "../../server/agent/served-agent.ts";
import { type End, MAX_FILE_CHARS } from "../../server/agent/states.ts";
import { readSettings } from "../../server/config/settings.ts";
import type { ConversationState, WaitingCalls } from "../../server/protocol/chat.ts";
import { ApiError } from "../../server/protocol/errors.ts";
import { createChatCompletions } from "../../server/providers/chat-completions/model.ts";
import { PROVIDER_ROWS, type ProviderId } from "../../server/providers/index.ts";
import * as hostedTools from "../../server/providers/openai/hosted-tools.ts";
import { createOpenAi } from "../../server/providers/openai/provider.ts";
import type {
  ModelEvent,
  ModelSettings,
  ModelSetup,
  Provider,
  ProviderSetup,
  RetryClock,
  ToolAnswer,
  TransportLimits,
} from "../../server/providers/provider.ts";
import { startUpstream, type UpstreamReply, type UpstreamServer } from "./upstream-server.ts";

export interface TestProvider {
  limits?: TransportLimits;
  model?: string;
  apiKey?: string;
  /** The agent's model settings. */
  settings?: ModelSettings;
  clock?: RetryClock;
}

/** Far longer than any test: only tests that set their own limits see a timeout. */
export const PATIENT: TransportLimits = { firstChunkMs: 20_000, idleMs: 20_000 };

/** Does not wait between retries. */
export const INSTANT_CLOCK: RetryClock = { wait: async () => {}, random: () => 0.5 };

/** The setup that a row of the provider table receives. */
export function setupOf(id: ProviderId, env: Record<string, string>, options: TestProvider = {}): ProviderSetup {
  const { label, mediaTypes } = PROVIDER_ROWS[id];
  const { model = "gpt-4o", settings: modelSettings = {}, limits = PATIENT, clock = INSTANT_CLOCK } = options;
  const loadPackage = (name: string) => import(name);
  return { id, label, mediaTypes, model, settings: readSettings(env), modelSettings, limits, clock, loadPackage };
}

export function responsesProvider(upstream: Pick<UpstreamServer, "url">, options: TestProvider = {}): Provider {
  const { apiKey = "sk-test" } = options;
  const env = { OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: upstream.url };
  return createOpenAi(setupOf("openai", env, options), hostedTools);
}

export function chatProvider(upstream: Pick<UpstreamServer, "url">, options: TestProvider = {}): Provider {
  const { apiKey = "sk-test" } = options;
  return createChatCompletions({ ...setupOf("litellm", {}, options), baseURL: upstream.url, apiKey });
}

/** One run of a conversation with a model, as the agent loop does it. */
export class Conversation {
  readonly #source: ReturnType<typeof modelSource>;
  readonly #exchange: Exchange;
  readonly #setup: ModelSetup;
  /** The text that clients get in place of an answer. */
  #text: string | undefined;

  constructor(provider: Provider, setup: ModelSetup, start: ExchangeStart) {
    this.#source = modelSource(provider);
    this.#exchange = new Exchange(start);
    this.#setup = setup;
  }

  async *ask(signal: AbortSignal): AsyncGenerator<ModelEvent[]> {
    const observer = { answered() {}, report() {}, end() {} };
    const turn = new ModelTurn(this.#exchange, observer, this.#setup, Number.POSITIVE_INFINITY);
    const context = { signal } as RunContext;
    for await (const batch of this.#source.ask(this.#exchange, { setup: this.#setup, context })) {
      turn.read(batch);
      yield batch;
    }
  }

  answer(answers: readonly ToolAnswer[]): void {
    for (const answer of answers) this.#exchange.answer(answer);
  }

  /** Ends the run before the model has finished. */
  interrupt(text: string): void {
    this.#text = text;
  }

  /** The state of the conversation; until the run has ended, the initial one. */
  state(): ConversationState {
    const { entries, start } = this.#exchange;
    const last = entries.at(-1);
    const hasAnswered = last?.type === "turn" && last.kept !== undefined && last.kept.tool_calls === undefined;
    return hasAnswered || this.#text !== undefined
      ? this.#stateAt({ type: "answered", text: this.#text ?? "" })
      : start.state;
  }

  openState(waiting: WaitingCalls): ConversationState {
    return this.#stateAt({ type: "waiting", waiting });
  }

  #stateAt(end: End): ConversationState {
    return this.#source.stateOf(this.#exchange, end, MAX_FILE_CHARS).state;
  }
}

/** A conversation that says "Hi" and has no tools, unless the test says otherwise. */
export function open(
  provider: Provider,
  { instructions = "Be brief.", tools = [], ...start }: Partial<ModelSetup & ExchangeStart> = {},
): Conversation {
  return new Conversation(provider, { instructions, tools }, { state: {}, message: "Hi", attachments: [], ...start });
}

/** One turn's events, and what the turn threw. */
export interface Turn {
  events: ModelEvent[];
  error: unknown;
}

/** Makes one model request and collects its events, also if it fails. `onEvent` is called for each event. */
export async function ask(
  conversation: Conversation,
  signal: AbortSignal = new AbortController().signal,
  onEvent: (event: ModelEvent) => void = () => {},
): Promise<Turn> {
  const events: ModelEvent[] = [];
  try {
    for await (const batch of conversation.ask(signal)) {
      // Intermediate `usage` events only serve the records of unfinished runs.
      events.push(...batch.filter(({ type }) => type !== "usage"));
      batch.forEach(onEvent);
    }
    return { events, error: undefined };
  } catch (error) {
    return { events, error };
  }
}

/** Makes one model request with these upstream replies: returns the turn, the state after it, and the request. */
export async function askOnce(
  providerOf: (upstream: UpstreamServer) => Provider | Promise<Provider>,
  replies: UpstreamReply | readonly UpstreamReply[],
  start: Parameters<typeof open>[1] = {},
) {
  await using upstream = await startUpstream(...[replies].flat());
  const conversation = open(await providerOf(upstream), start);
  const turn = await ask(conversation);
  // biome-ignore lint/suspicious/noExplicitAny: each test knows the body of its request.
  const sent: any = upstream.calls[0]?.json;
  return { ...turn, state: conversation.state(), calls: upstream.calls, sent };
}

/** Makes one model request and breaks off at the first event. */
export async function leave(conversation: Conversation): Promise<void> {
  const left = new Error("left");
  const { error } = await ask(conversation, undefined, () => {
    throw left;
  });
  assert.equal(error, left);
}

/** Words that visitors must not see. */
const VENDORS =
  /OpenAI|Anthropic|Claude|Gemini|Vertex|Google|Bedrock|AWS|Ollama|LiteLLM|model server|base URL|API key|quota|settings/i;

/** A failure on the model's side, with one message for visitors and another in `detail` for the operator. */
export type ProviderFailure = ApiError & { readonly detail: string };

/** The failure of a turn; throws if the turn did not fail. */
export function failureOf({ error }: Turn): ProviderFailure {
  if (!(error instanceof ApiError)) throw new Error("the turn did not fail with an ApiError", { cause: error });
  assert.doesNotMatch(error.message, VENDORS);
  assert.notEqual(error.detail, undefined);
  return error as ProviderFailure;
}

/** All text of a turn. */
export function said({ events }: Turn, type: "text" | "thinking" = "text"): string {
  return events.map((event) => (event.type === type ? event.delta : "")).join("");
}
