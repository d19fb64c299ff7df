/** Models that say what a test has scripted, and remember what they were asked. */

import { ALL_MEDIA_TYPES, type MediaType } from "../../server/protocol/attachments.ts";
import type { AssistantMessage, ConversationState, StateKind, Usage } from "../../server/protocol/chat.ts";
import { openHistory } from "../../server/providers/history/history.ts";
import type {
  ChatModelEvent,
  ChatModelRequest,
  Conversation,
  ConversationSetup,
  Provider,
  ProviderEvent,
  Tell,
  ToolAnswer,
  ToolCall,
  TurnFinish,
} from "../../server/providers/provider.ts";
import { within } from "./deadline.ts";

/** One thing that the model does. A turn whose last step ends nothing ends with `end()`. */
export type Step =
  | Exclude<ProviderEvent, { type: "end" }>
  | { type: "end"; finish: TurnFinish; usage?: Usage }
  | { type: "throw"; error: unknown }
  | { type: "wait"; for: Promise<unknown> }
  | { type: "hang"; quiet: boolean }
  | { type: "cut" };

export type Turn = Iterable<Step>;

export const say = (delta: string): Step => ({ type: "text", delta });
export const think = (delta: string): Step => ({ type: "thinking", delta });
export const call = (id: string, name: string, args: unknown = {}): Step => ({
  type: "call",
  call: { id, name, arguments: typeof args === "string" ? args : JSON.stringify(args) },
});
export const end = (finish: TurnFinish = "stop", usage?: Usage): Step => ({
  type: "end",
  finish,
  ...(usage === undefined ? {} : { usage }),
});
export const fail = (error: unknown): Step => ({ type: "throw", error });
/** Holds the turn back until the promise settles. */
export const wait = (until: Promise<unknown>): Step => ({ type: "wait", for: until });
/** Says nothing more until the request is aborted. */
export const hang: Step = { type: "hang", quiet: false };
/** The same, but the abort ends the stream without an exception. */
export const hangQuietly: Step = { type: "hang", quiet: true };
/** The stream ends without an `end`. */
export const cut: Step = { type: "cut" };

/** One model request, as the provider was told it. */
export interface Asked {
  /** Of the conversation that it belongs to. */
  setup: ConversationSetup;
  /** The whole conversation; empty for a provider that keeps it. */
  messages: ChatModelRequest["messages"];
  /** For a provider that keeps the conversation: what it continues from. */
  previousId?: string | undefined;
  /** Settles when the request's signal is aborted. */
  readonly aborted: Promise<void>;
}

export interface ScriptedProvider extends Provider {
  readonly asked: readonly Asked[];
  /** The next request that `asked` does not hold yet. */
  nextAsked(): Promise<Asked>;
}

export interface ScriptedOptions {
  stateKind?: StateKind;
  mediaTypes?: readonly MediaType[];
  /** Goes on talking after an abort, as a provider must not. */
  deaf?: boolean;
}

/** Plays one turn for each model request, in order; a request beyond the script fails as a bug would. */
export function scriptedProvider(
  turns: readonly Turn[],
  { stateKind = "conversation_history", mediaTypes = ALL_MEDIA_TYPES, deaf = false }: ScriptedOptions = {},
): ScriptedProvider {
  const script = [...turns];
  const asked: Asked[] = [];
  const waiting: ((asked: Asked) => void)[] = [];
  const ask = (request: Omit<Asked, "aborted">, signal: AbortSignal): AsyncIterable<Played> => {
    const ended = new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    const entry: Asked = {
      ...request,
      get aborted() {
        return within(ended, "the abort of the model's request");
      },
    };
    asked.push(entry);
    waiting.shift()?.(entry);
    const turn = script.shift();
    if (turn === undefined) throw new Error("the test scripted no turn for this request");
    return play(turn, deaf ? new AbortController().signal : signal);
  };
  return {
    id: "scripted",
    label: "The scripted model",
    stateKind,
    mediaTypes,
    asked,
    nextAsked: () => within(new Promise((resolve) => waiting.push(resolve)), "the next request to the model"),
    open: (setup) =>
      stateKind === "conversation_history"
        ? openHistory({ stream: (...asked) => keep(ask, setup, ...asked) }, setup)
        : new KeptConversation(ask, setup),
  };
}

type Played = Exclude<ProviderEvent, { type: "end" }> | { type: "end"; finish: TurnFinish };
type Ask = (request: Omit<Asked, "aborted">, signal: AbortSignal) => AsyncIterable<Played>;

async function* play(turn: Turn, signal: AbortSignal): AsyncGenerator<Played, void> {
  for (const step of turn) {
    signal.throwIfAborted();
    switch (step.type) {
      case "throw":
        throw step.error;
      case "wait":
        await step.for;
        break;
      case "hang":
        await new Promise((resolve) => {
          signal.addEventListener("abort", resolve, { once: true });
        });
        if (step.quiet) return;
        throw signal.reason;
      case "cut":
        return;
      default:
        yield step;
        if (step.type === "end") return;
    }
  }
  yield { type: "end", finish: "stop" };
}

/** The history's model: the `end` brings the assistant's message. */
async function keep(
  ask: Ask,
  setup: ConversationSetup,
  { messages }: ChatModelRequest,
  signal: AbortSignal,
  tell: Tell<ChatModelEvent>,
): Promise<void> {
  let content = "";
  const calls: ToolCall[] = [];
  for await (const event of ask({ setup, messages: structuredClone(messages) }, signal)) {
    if (event.type === "text") content += event.delta;
    if (event.type === "call") calls.push(event.call);
    if (event.type !== "end") {
      await tell([event]);
      continue;
    }
    const tool_calls = calls.map(({ id, name, arguments: args }) => ({
      id,
      type: "function" as const,
      function: { name, arguments: args },
    }));
    const message: AssistantMessage = {
      role: "assistant",
      content,
      ...(calls.length === 0 ? {} : { tool_calls }),
    };
    await tell([{ ...event, message }]);
  }
}

/** A conversation that the provider keeps: responses are `resp_1`, `resp_2`, … within one state. */
class KeptConversation implements Conversation {
  readonly #ask: Ask;
  readonly #setup: ConversationSetup;
  #settled: string | undefined;
  #previous: string | undefined;

  constructor(ask: Ask, setup: ConversationSetup) {
    this.#ask = ask;
    this.#setup = setup;
    const { state } = setup;
    this.#settled = "previous_response_id" in state ? state.previous_response_id : undefined;
    this.#previous = this.#settled;
  }

  async ask(signal: AbortSignal, tell: Tell<ProviderEvent>): Promise<void> {
    const request = { setup: this.#setup, messages: [], previousId: this.#previous };
    let calls = 0;
    for await (const event of this.#ask(request, signal)) {
      if (event.type === "call") calls++;
      if (event.type === "end") {
        const number = Number(this.#previous?.slice("resp_".length) ?? 0) + 1;
        this.#previous = `resp_${number}`;
        if (calls === 0) this.#settled = this.#previous;
      }
      await tell([event]);
    }
  }

  answer(_answers: readonly ToolAnswer[]): void {}

  interrupt(_said: string): void {}

  state(): ConversationState {
    return this.#settled === undefined ? {} : { previous_response_id: this.#settled };
  }
}
