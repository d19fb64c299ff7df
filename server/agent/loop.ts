/** The loop: model, tools, model again, until the answer. */

import { isOnlyForOperator, type Settings } from "../config/settings.ts";
import type { RunEvent, RunObserver, RunWords } from "../observe/run-observer.ts";
import type { ApprovalDecision, FinishReason } from "../protocol/chat.ts";
import { ApiError, toApiError } from "../protocol/errors.ts";
import { type DoneEvent, type ErrorEvent, errorEvent, type StreamEvent } from "../protocol/events.ts";
import type { AskedCall, ModelEvent, ModelSetup, ToolAnswer, ToolCall } from "../providers/provider.ts";
import type { ApprovalLedger } from "./approvals.ts";
import type { WithheldAnswer } from "./decisions.ts";
import { Exchange, type ExchangeStart, SEPARATOR } from "./exchange.ts";
import { askAuthor } from "./hooks.ts";
import { ModelTurn } from "./model-turn.ts";
import { abortError, abortKind } from "./run-aborted.ts";
import type { Proposals, RunContext } from "./run-context.ts";
import type { IsHidden } from "./sealed.ts";
import type { ServedAgent } from "./served-agent.ts";
import type { Sources } from "./sources.ts";
import { sealState } from "./state.ts";
import { type End, type EndState, MAX_FILE_CHARS } from "./states.ts";
import { isToolError, type Tool } from "./tool-definition.ts";
import type { ToolTexts } from "./tool-texts.ts";
import { hiderOf, hidesAny } from "./tool-words.ts";
import type { Calling } from "./tools.ts";

/** Modules that are loaded only when needed: for tool calls, approvals, hooks that decide, and sources. */
const OPTIONAL = {
  tools: () => import("./tools.ts"),
  approvals: () => import("./approvals.ts"),
  decisions: () => import("./decisions.ts"),
  sources: () => import("./sources.ts"),
};

/** Whether a batch has a source, or a character that may begin a citation mark. */
function hasSources(batch: readonly ModelEvent[]): boolean {
  return batch.some((event) => event.type === "source" || (event.type === "text" && /[【\uE200]/.test(event.delta)));
}

/** One message to answer. Its state has been checked. */
export interface RunRequest extends ExchangeStart {
  /** What a door's client adds to the agent's instructions. An agent with `run` does not get it. */
  readonly instructions?: string;
  /** The person's decision on each call that waits in the state. */
  readonly approvals?: readonly ApprovalDecision[];
  /** Ids of calls in the state that clients may not read. */
  readonly hidden?: ReadonlySet<string>;
}

/** One run: the agent that serves it, the request that it answers, and its context. */
export interface AgentRun {
  readonly served: ServedAgent;
  /** Values may change while the server runs. */
  readonly settings: Settings;
  readonly request: RunRequest;
  readonly context: RunContext;
  /** What the agent has proposed through `context.suggest` and `context.title`. */
  readonly proposals: Proposals;
  readonly ledger: ApprovalLedger;
}

type NotByItself = "stopped" | "refused" | "approval_required";

/** Sent in place of an empty answer, which would look like a fault. `stop`: only if tools have run. */
const FALLBACK_TEXT: Record<Exclude<FinishReason, NotByItself>, string> = {
  stop: "I have nothing to add.",
  length: "The answer was cut by the token limit before it began.",
  content_filter: "The model's provider withheld this answer.",
  max_turns: "I stopped here: this took more steps than I may take for one message.",
};

/** Answers one message. */
export class Loop {
  readonly #run: AgentRun;
  readonly #observer: RunObserver;
  /** Present if the agent has `onAnswer`. */
  #withheld: WithheldAnswer | undefined;
  #exchange: Exchange;
  /** The latest model request. */
  #turn: ModelTurn | undefined;
  /** The tools that the model may call, once they are known. */
  #tools: ReadonlyMap<string, Tool> = new Map();
  /** Texts for people about calls that run elsewhere. */
  #texts: ToolTexts | undefined;
  /** Present as soon as the answer may have sources. */
  #sources: Sources | undefined;
  /** Whether `onMessage` has let the message pass. */
  #isAdmitted = false;
  /** Whether the decisions on the calls that waited in the state, if any, have been applied. */
  #hasBegun = false;

  constructor(run: AgentRun, observer: RunObserver) {
    this.#run = run;
    this.#observer = observer;
    this.#exchange = this.#exchangeOf(run.request);
  }

  /**
   * Yields events in batches, one for each packet of the model's answer. The last event is the only `done` or `error`;
   * after an abort of the kind `gone` there is neither. Never throws.
   */
  async *events(): AsyncGenerator<RunEvent[], void> {
    const { served, context, settings } = this.#run;
    const { signal } = context;
    try {
      const refusal = await this.#admit();
      if (refusal !== undefined) return void (yield this.#refused(refusal));
      const setup = await this.#setUp();
      yield* this.#carryOutDecisions();
      const asking = { context, setup };
      const adapt = this.#adaptation();
      for (let turnsLeft = served.agent.maxTurns - 1; ; turnsLeft--) {
        signal.throwIfAborted();
        const observer = this.#observer.modelRequest();
        const turn = new ModelTurn(this.#exchange, observer, setup, settings.maxToolOutputChars);
        this.#turn = turn;
        try {
          for await (const batch of served.provider.ask(this.#exchange, {
            ...asking,
            observer,
          })) {
            // A model that keeps sending after the abort is not read any further.
            if (signal.aborted) {
              turn.readDone(batch);
              throw signal.reason;
            }
            const sources = this.#sources ?? (hasSources(batch) ? await this.#withSources() : undefined);
            const said = turn.read(sources?.read(batch) ?? batch, sources);
            const events = adapt === undefined ? said : await adapt(said);
            if (events.length > 0) yield events;
          }
          turn.complete(signal);
        } catch (error) {
          const said = turn.fail(error, signal);
          if (said.length > 0) yield adapt === undefined ? said : await adapt(said);
          throw error;
        }
        const last = (await this.#endOfTurn(turnsLeft === 0)) ?? (yield* this.#goOn());
        if (last !== undefined) return void (yield last);
      }
    } catch (error) {
      const last = signal.aborted ? this.#aborted() : this.failed(error);
      if (last !== undefined) yield [last];
    }
  }

  /** The texts of the run for its record. */
  get words(): RunWords {
    const { start, said: answer, allSaid: said } = this.#exchange;
    const isShown = this.#withheld === undefined || this.#withheld.isReleased;
    return { message: start.message, ...(isShown ? { answer, said } : { answer: "", said: "" }) };
  }

  failed(error: unknown): ErrorEvent {
    // A model that ignores the abort may still be answering.
    this.#turn?.fail(error, this.#run.context.signal);
    this.#observer.failure(error);
    return this.#errorEvent(toApiError(error));
  }

  #exchangeOf(request: ExchangeStart): Exchange {
    return new Exchange(request, this.#run.served.agent.ownRun !== undefined);
  }

  /** Asks `onMessage`, if there is one. Returns its refusal, if any. @throws ApiError, or the reason of an abort */
  async #admit(): Promise<string | undefined> {
    const { request, context, served } = this.#run;
    const { onMessage, onAnswer } = served.agent.hooks;
    const decisions = (onMessage ?? onAnswer) && (await OPTIONAL.decisions());
    this.#withheld = decisions && onAnswer && new decisions.WithheldAnswer(onAnswer);
    if (decisions !== undefined && this.#exchange.message !== undefined) {
      const { refuse, message } = await decisions.decideOnMessage(served.agent.hooks, request, context, served.hookMs);
      if (refuse !== undefined) return refuse;
      if (message !== undefined) this.#exchange = this.#exchangeOf({ ...request, message });
    }
    this.#isAdmitted = true;
    return undefined;
  }

  /** What the model gets in addition to the messages. @throws as `askAuthor` does */
  async #setUp(): Promise<ModelSetup> {
    const { served, context, request } = this.#run;
    const { hookMs } = served;
    const { instructions: given } = served.agent;
    const instructions =
      typeof given === "string"
        ? given.toWellFormed()
        : askAuthor("instructions(ctx)", async (ctx) => checkInstructions(await given(ctx)), context, hookMs);
    const [ofTools] = await Promise.all([served.toolsFor(context), instructions]);
    this.#tools = ofTools.tools;
    const specs = [...this.#tools.values()].map(({ name, description, parameters }) => {
      return { name, description, parameters: parameters.json };
    });
    const all = [await instructions, ...ofTools.instructions, request.instructions ?? ""];
    return { instructions: all.filter((text) => text !== "").join("\n\n"), tools: specs };
  }

  /** A function that changes the events of a turn before clients get them; `undefined` if nothing changes them. */
  #adaptation(): ((said: RunEvent[]) => Promise<RunEvent[]>) | undefined {
    const isWithheld = this.#withheld !== undefined;
    const texts = this.#run.served.provider.toolTexts?.(this.#calling, isWithheld);
    this.#texts = texts;
    if (texts === undefined || this.#tools.size === 0) return isWithheld ? async (said) => this.#pass(said) : undefined;
    return async (said) => this.#pass(await texts.apply(said));
  }

  /** The events that clients may get now. */
  #pass(events: RunEvent[]): RunEvent[] {
    return this.#withheld === undefined ? events : this.#withheld.pass(events);
  }

  async #withSources(): Promise<Sources> {
    const { Sources } = await OPTIONAL.sources();
    this.#sources ??= new Sources(this.#hiddenCalls(), this.#run.served.provider);
    return this.#sources;
  }

  get #calling(): Calling {
    const { context, settings: limits, served } = this.#run;
    return { tools: this.#tools, context, limits, observer: this.#observer, hookMs: served.hookMs };
  }

  /** Carries out the calls that the person approved, and records a refusal for the model of each declined one. */
  async *#carryOutDecisions(): AsyncGenerator<RunEvent[], void> {
    const { request, served } = this.#run;
    const { waiting } = request.state.open ?? {};
    if (waiting === undefined) {
      this.#hasBegun = true;
      return;
    }
    const { takeDecisions, declinedEvent, withEdit } = await OPTIONAL.approvals();
    const { approved, declined, edited } = await takeDecisions(waiting, this.#run, this.#calling);
    this.#hasBegun = true;
    this.#exchange.hasUsedTools = true;
    for (const answer of declined) this.#exchange.answer(answer, true);
    if (declined.length > 0) yield this.#pass(declined.map((answer) => declinedEvent(this.#calling, answer)));
    const adapt = (answer: ToolAnswer) => {
      const call = edited.has(answer.id) ? approved.find(({ id }) => id === answer.id) : undefined;
      return call === undefined ? answer : withEdit(answer, call);
    };
    // An agent that is written elsewhere carries its calls out itself.
    if (served.agent.ownRun === undefined) yield* this.#carryOut(approved, { adapt });
  }

  /** Carries out all `calls` but `waiting`, and records their results in the order of the calls, changed by `adapt`. */
  async *#carryOut(
    calls: readonly ToolCall[],
    { waiting = [], adapt = (answer) => answer }: CarryOut = {},
  ): AsyncGenerator<RunEvent[], void> {
    this.#run.context.signal.throwIfAborted();
    const begun = calls.filter((call) => !waiting.includes(call));
    if (begun.length === 0) return;
    const { callEvents, runTools } = await OPTIONAL.tools();
    const calling = this.#calling;
    yield this.#parted(this.#pass(await callEvents(begun, calling)));
    this.#exchange.hasUsedTools = true;
    const answers = new Map<string, ToolAnswer>();
    try {
      for await (const { events, answer } of runTools(calls, calling, waiting)) {
        if (answer !== undefined) answers.set(answer.id, adapt(answer));
        yield events;
        if (answer?.sources?.length) yield this.#pass((await this.#withSources()).ofTool(answer, this.#exchange));
      }
    } finally {
      for (const { id } of calls) {
        const answer = answers.get(id);
        if (answer !== undefined) this.#exchange.answer(answer);
      }
    }
  }

  /** Adds a separator between the texts before and after the calls, if clients see nothing of the calls. */
  #parted(events: RunEvent[]): RunEvent[] {
    const isSeen = events.some((event) => event.type !== "hidden" || event.shown !== undefined);
    if (isSeen || this.#withheld !== undefined || this.#exchange.text === "") return events;
    return [...events, { type: "token", data: SEPARATOR }];
  }

  /** Carries out the calls of the turn. Returns the last events of the run, if one of the calls waits for a person. */
  async *#goOn(): AsyncGenerator<RunEvent[], StreamEvent[] | undefined> {
    const { calls } = this.#exchange.turn;
    if (calls.every(({ name }) => this.#tools.get(name)?.approval === undefined)) {
      yield* this.#carryOut(calls);
      return undefined;
    }
    const { callsToApprove, askedCall } = await OPTIONAL.approvals();
    const waiting = await callsToApprove(calls, this.#calling);
    yield* this.#carryOut(calls, { waiting });
    if (waiting.length === 0) return undefined;
    this.#run.context.signal.throwIfAborted();
    const asked = waiting.map((call) => askedCall(call, this.#calling));
    return this.#waitFor(await Promise.all(asked));
  }

  /** The last events of the run, if it ends with this turn. */
  async #endOfTurn(isLast: boolean): Promise<StreamEvent[] | undefined> {
    const { calls, asked, finish = "stop" } = this.#exchange.turn;
    if (asked.length > 0) return this.#waitFor((await this.#texts?.asked(asked)) ?? asked);
    if (calls.length > 0) return isLast ? this.#answered("max_turns") : undefined;
    return this.#answered(finish);
  }

  /** The last events of a run that ends by itself. */
  #answered(reason: Exclude<FinishReason, NotByItself>): Promise<StreamEvent[]> {
    const { text, hasUsedTools } = this.#exchange;
    if (text.trim() !== "") return this.#release([this.#done({ type: "answered" }, text, reason)]);
    if (reason === "stop" && !hasUsedTools) {
      throw new ApiError("provider_error", "The agent gave an empty answer. Please try again.");
    }
    const fallback = FALLBACK_TEXT[reason];
    this.#exchange.closing = fallback;
    // A client that only collects tokens gets the same text as one that reads `done`. The state keeps it as well:
    // several APIs require an answer between the results of tools and the next message.
    const done = this.#done({ type: "answered", text: fallback }, fallback, reason);
    return this.#release([{ type: "token", data: fallback }, done]);
  }

  /** The last events of a run whose calls wait for a person. */
  async #waitFor(asked: readonly AskedCall[]): Promise<StreamEvent[]> {
    const { askApproval } = await OPTIONAL.approvals();
    const { waiting, approvals } = await askApproval(asked, this.#run);
    const { text: said } = this.#exchange;
    const text = said.trim() === "" ? approvals.map((approval) => approval.text).join("\n") : said;
    const done = this.#done({ type: "waiting", waiting }, text, "approval_required");
    return this.#release([
      ...approvals.map((data): StreamEvent => ({ type: "tool_approval", data })),
      { ...done, approvals },
    ]);
  }

  /** The last events, with the agent's proposals; if `onAnswer` refuses the answer, those of a refusal. */
  async #release(end: StreamEvent[]): Promise<StreamEvent[]> {
    const { context, served } = this.#run;
    const withheld = this.#withheld;
    if (withheld === undefined) return end.map((event) => this.#withProposals(event));
    const events = withheld.pass(end);
    const refusal = await withheld.refusal(events.at(-1)?.data as string, context, served.hookMs);
    if (refusal !== undefined) return this.#refused(refusal);
    return [...withheld.release(), ...events.map((event) => this.#withProposals(event))];
  }

  #withProposals<Event extends StreamEvent>(event: Event): Event {
    return event.type === "done" ? { ...event, ...this.#run.proposals.fields() } : event;
  }

  /** A client that only collects tokens gets the same sentence as one that reads `done`. */
  #refused(sentence: string): StreamEvent[] {
    return [{ type: "token", data: sentence }, this.#done({ type: "refused", sentence }, sentence, "refused")];
  }

  #done(end: End, text: string, reason: FinishReason): DoneEvent {
    const { usage, model } = this.#exchange;
    return {
      type: "done",
      data: text,
      ...this.#sources?.listed(text, end, this.#exchange),
      state: this.#stateAt(end, this.#isAdmitted).state,
      ...(usage === undefined ? {} : { usage }),
      finish_reason: reason,
      ...(model === undefined ? {} : { model }),
    };
  }

  /** The last event of a run that was ended from outside. */
  #aborted(): DoneEvent | ErrorEvent | undefined {
    const { context, settings } = this.#run;
    const kind = abortKind(context.signal);
    if (kind === "gone") return undefined;
    if (kind !== "stopped") return this.#errorEvent(abortError(kind, settings.runSeconds));
    const isShown = this.#isAdmitted && this.#withheld === undefined;
    // Text that a hook has not let pass is kept in no state, either.
    const done = this.#done({ type: "answered", isWithheld: !isShown }, isShown ? this.#exchange.said : "", "stopped");
    return isShown ? this.#withProposals(done) : done;
  }

  #errorEvent(error: ApiError): ErrorEvent {
    const { served, settings } = this.#run;
    const end: End = { type: "failed", isWithheld: this.#withheld !== undefined };
    const { state, canContinue } = this.#stateAt(end, this.#hasBegun);
    const event = this.#withoutRetry(errorEvent(error, state, canContinue), error);
    if (error.detail === undefined || !isOnlyForOperator(settings)) return event;
    return { ...event, data: `${event.data} (${served.strike(error.detail)})` };
  }

  /**
   * Removes the advice to retry if a retry would run tools again: without a state to continue from, or with an agent
   * that is written elsewhere. The message of a `ToolError` is its author's, and stays.
   */
  #withoutRetry(event: ErrorEvent, { cause }: ApiError): ErrorEvent {
    const { served, request } = this.#run;
    const canGoOn = served.agent.ownRun === undefined && request.history === undefined;
    if (canGoOn || !this.#exchange.hasUsedTools) return event;
    const data = isToolError(cause) ? event.data : event.data.replace(/ Please try again[^.]*\./, "");
    return { ...event, data, retryable: false };
  }

  /** The state as the client gets it. Before the exchange has begun, it is the one that came with the message. */
  #stateAt(end: End, hasBegun: boolean): EndState {
    const { served, request, context, settings } = this.#run;
    // A client that brings a history uses no state, and making one from a long history takes long.
    if (request.history !== undefined) return { state: {}, canContinue: false };
    const { state, canContinue } = hasBegun
      ? served.provider.stateOf(this.#exchange, end, Math.min(MAX_FILE_CHARS, settings.maxHistoryBytes / 2))
      : { state: request.state, canContinue: false };
    const binding = served.stateBindingOf(context);
    return { state: sealState(state, context.conversation, binding, this.#hiddenCalls()), canContinue };
  }

  /** Which calls of the conversation clients may not read; `undefined`: they may read all. */
  #hiddenCalls(): IsHidden | undefined {
    const { hidden } = this.#run.request;
    const tools = this.#tools;
    if (!hidden?.size && (tools.size === 0 || !hidesAny(tools))) return undefined;
    return (call) => hidden?.has(call.id) || hiderOf(tools, call.function.name) !== undefined;
  }
}

interface CarryOut {
  waiting?: readonly ToolCall[];
  adapt?(answer: ToolAnswer): ToolAnswer;
}

function checkInstructions(text: unknown): string {
  if (typeof text === "string") return text.toWellFormed();
  throw new TypeError(`instructions must return a string, but returned ${text === null ? "null" : typeof text}.`);
}
