/** Models that play a script and record their requests. */

import { setImmediate as nextTurn } from "node:timers/promises";
import type { ExchangeStart } from "../../server/agent/exchange.ts";
import { type AnswerSource, modelSource } from "../../server/agent/served-agent.ts";
import { KINDS } from "../../server/agent/states.ts";
import { ALL_MEDIA_TYPES, type MediaType } from "../../server/protocol/attachments.ts";
import type { StateKind, Usage } from "../../server/protocol/chat.ts";
import { createProvider } from "../../server/providers/create-provider.ts";
import { assistantMessage, toHistoryCall } from "../../server/providers/history.ts";
import type {
  Model,
  ModelEvent,
  ModelRequest,
  ModelSetup,
  ToolCall,
  TurnFinish,
} from "../../server/providers/provider.ts";
import { within } from "./deadline.ts";
import type { TestServer } from "./start-server.ts";

/** One action of the model. A turn whose last step does not end it ends with `end()`. */
export type Step =
  | Exclude<ModelEvent, { type: "end" }>
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
/** Pauses the turn until the promise settles. */
export const wait = (until: Promise<unknown>): Step => ({ type: "wait", for: until });
/** Sends nothing more until the request is aborted. */
export const hang: Step = { type: "hang", quiet: false };
/** Like `hang`, but an abort ends the stream without an exception. */
export const hangQuietly: Step = { type: "hang", quiet: true };
/** The stream ends without an `end`. */
export const cut: Step = { type: "cut" };

/** One model request, as the provider received it. */
export interface Asked {
  /** The input of the request's run. */
  start: ExchangeStart & { setup: ModelSetup };
  /** The whole conversation; empty for a provider that keeps it. */
  messages: ModelRequest["messages"];
  /** Messages in the request: the whole conversation, or only the new ones for a provider that keeps it. */
  sent: ModelRequest["messages"];
  /** For a provider that keeps the conversation: the response that the request continues from. */
  previousId?: string | undefined;
  /** Resolves when the request's signal is aborted. */
  readonly aborted: Promise<void>;
}

export interface ScriptedProvider extends AnswerSource {
  readonly asked: readonly Asked[];
  /** The next request that is not in `asked` yet. */
  nextAsked(): Promise<Asked>;
}

export interface ScriptedOptions {
  stateKind?: StateKind;
  mediaTypes?: readonly MediaType[];
  /** Continues after an abort, which a provider must not do. */
  deaf?: boolean;
}

/** Plays one turn for each model request, in order; a request beyond the script throws like a bug would. */
export function scriptedProvider(
  turns: readonly Turn[],
  { stateKind = "conversation_history", mediaTypes = ALL_MEDIA_TYPES, deaf = false }: ScriptedOptions = {},
): ScriptedProvider {
  const script = [...turns];
  const asked: Asked[] = [];
  let kept = 0;
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
  const modelOf = (run: ExchangeStart): Model =>
    async function* ({ messages, previousId, keep, setup }, signal) {
      const start = { ...run, setup };
      const calls: ToolCall[] = [];
      let content = "";
      const sent = structuredClone(messages);
      const request =
        stateKind === "conversation_history"
          ? { start, messages: sent, sent }
          : { start, messages: [], sent, previousId };
      for await (const event of ask(request, signal)) {
        if (event.type === "text") content += event.delta;
        if (event.type === "call") calls.push(event.call);
        if (event.type === "end") {
          // Answers in different branches of a conversation get different ids.
          const number = Math.max(Number(previousId?.slice("resp_".length) ?? 0) + 1, ++kept);
          keep(assistantMessage(content, calls.map(toHistoryCall)), { id: `resp_${number}`, cutCalls: [] });
        }
        yield [event];
      }
    };
  const facts = { id: "scripted", label: "The scripted model", mediaTypes };
  return {
    ...facts,
    stateKind,
    ask: (exchange, options) =>
      modelSource(createProvider(facts, stateKind, modelOf(exchange.start))).ask(exchange, options),
    stateOf: KINDS[stateKind].stateOf,
    asked,
    nextAsked: () => within(new Promise((resolve) => waiting.push(resolve)), "the next request to the model"),
  };
}

type Played = Exclude<ModelEvent, { type: "end" }> | { type: "end"; finish: TurnFinish; usage?: Usage };

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

// A model that never ends, for tests of backpressure.

export interface EndlessTurn {
  turn: Turn;
  /** Number of 64 KiB pieces read from the model so far. */
  taken(): number;
}

/** Far more than all buffers between server and client: without backpressure, a run ends here. */
const PIECES = 4000;

export function endlessTurn(): EndlessTurn {
  const piece = say("x".repeat(64 * 1024));
  let taken = 0;
  const turn = (function* () {
    while (taken < PIECES) {
      taken++;
      yield piece;
      // Like a real model, lets the process do other work in between.
      yield wait(nextTurn());
    }
  })();
  return { turn, taken: () => taken };
}

/** Waits until the figure no longer grows while the server answers twenty other requests. */
export async function settled(figure: () => number, { url }: TestServer): Promise<number> {
  for (;;) {
    const before = figure();
    for (let round = 0; round < 20; round++) await (await fetch(`${url}/health`)).text();
    if (before > 0 && figure() === before) return before;
  }
}
