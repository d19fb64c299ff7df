/** The loop: model, tools, model again, until the answer. */

import { isOnlyForOperator } from "../config/exposure.ts";
import type { Settings } from "../config/settings.ts";
import type { ModelRequestObserver, RunEvent, RunObserver } from "../observe/run-observer.ts";
import { addUsage } from "../observe/run-recorder.ts";
import type { ReceivedFile } from "../protocol/attachments.ts";
import type { ApprovalDecision, ConversationState, FinishReason, Usage } from "../protocol/chat.ts";
import { ApiError, runLost, shuttingDown, toApiError } from "../protocol/errors.ts";
import { type DoneEvent, type ErrorEvent, errorEvent, type StreamEvent, unreachable } from "../protocol/events.ts";
import { textContent } from "../providers/history.ts";
import type { AskedCall, Conversation, ModelEvent, ToolAnswer, ToolCall, TurnFinish } from "../providers/provider.ts";
import { StringBuilder } from "../providers/string-builder.ts";
import {
  type ApprovalLedger,
  askApproval,
  askedCall,
  callsToApprove,
  type Decided,
  declinedEvent,
  takeDecisions,
  withEdit,
} from "./approvals.ts";
import { decideOnMessage, SEPARATOR, WithheldAnswer } from "./decisions.ts";
import { isToolError, type Tool } from "./define.ts";
import { askAuthor } from "./hooks.ts";
import type { Proposals, RunContext } from "./run-context.ts";
import type { IsHidden } from "./sealed.ts";
import type { ServedAgent } from "./served-agent.ts";
import { sealState } from "./state.ts";
import { askedElsewhere, ToolTexts } from "./tool-texts.ts";
import { hiderOf, hidesAny } from "./tool-words.ts";
import { callEvents, cutContent, endEvent, runTools, toolCallEvent, toolResultEvent } from "./tools.ts";

/** One message to answer. The state was checked. */
export interface RunRequest {
  message: string;
  attachments: readonly ReceivedFile[];
  /** Empty for a new conversation. */
  state: ConversationState;
  /** What a person has decided on the calls that wait in the state, on each of them. */
  approvals?: readonly ApprovalDecision[];
  /** The model goes on from the state, without a message or with one that follows the decisions. */
  goesOn?: true;
  /** Ids of calls in it that clients may not read. */
  hidden?: ReadonlySet<string>;
}

/** One run: what serves it, what it answers, and for whom. */
export interface AgentRun {
  readonly served: ServedAgent;
  /** Values may change while the server runs. */
  readonly settings: Settings;
  readonly request: RunRequest;
  readonly context: RunContext;
  /** What the agent has proposed by methods of `context`. */
  readonly proposals: Proposals;
  readonly ledger: ApprovalLedger;
}

/** Why a run is ended from outside. */
export type AbortKind =
  /** No client is left, it cleared the conversation, or the run is over and ends what is left of it: no event follows. */
  | "gone"
  /** The client asked for the end: `done` with `finish_reason: "stopped"`. */
  | "stopped"
  /** The key that started the run may no longer be used: `error` with the code `unauthorized`. */
  | "revoked"
  /** Another process has taken the run's name: `error` with the code `run_lost`. */
  | "lost"
  /** The server stops: `error` with the code `shutting_down`. */
  | "shutting_down"
  /** The run took longer than `PARLEY_RUN_SECONDS`: `error` with the code `provider_timeout`. */
  | "timeout";

/** The reason of a run's `AbortSignal`. */
export class RunAborted extends Error {
  override readonly name = "RunAborted";
  readonly kind: AbortKind;

  constructor(kind: AbortKind) {
    super(`run aborted: ${kind}`);
    this.kind = kind;
  }
}

/** What a run has come to, for code that ends it from outside. */
export class Progress {
  /** `undefined` until the model is about to be asked. */
  conversation: Conversation | undefined;
  /** The tools that the model may call, once they are known. */
  tools: ReadonlyMap<string, Tool> | undefined;
  /** Whether `onMessage` has let the message pass. */
  isAdmitted = false;
  /** Text of the last turn that said anything. */
  said = "";
  /** The same, if that turn has not ended: the conversation does not know it yet. */
  unfinished = "";
  usage: Usage | undefined;
  /** The model that gave the last answer, where the agent has several. */
  model: string | undefined;
  /** Whether a tool has run, the provider's own included: the same message would run it again. */
  hasUsedTools = false;
  readonly withheld: WithheldAnswer;

  constructor({ agent }: ServedAgent) {
    this.withheld = new WithheldAnswer(agent.hooks);
  }

  /** What is left of a run that has failed. What was not let pass stands in no state, either. */
  failure({ request }: AgentRun): { state: ConversationState; canContinue: boolean } {
    if (this.withheld.isWithholding) this.conversation?.withhold("");
    return this.conversation?.failure() ?? { state: request.state, canContinue: false };
  }
}

type NotByItself = "stopped" | "refused" | "approval_required";

/** Sent in place of an empty answer, which would look like a fault. The first one only where tools have run. */
const FALLBACK_TEXT: Record<Exclude<FinishReason, NotByItself>, string> = {
  stop: "I have nothing to add.",
  length: "The answer was cut by the token limit before it began.",
  content_filter: "The model's provider withheld this answer.",
  max_turns: "I stopped here: this took more steps than I may take for one message.",
};

/**
 * Answers one message. Yields events in batches, one for each packet of the model's answer. The last event is exactly one
 * `done` or `error`; after an abort of the kind `gone` there is none. Never throws.
 */
export async function* runAgent(
  asked: AgentRun,
  observer: RunObserver,
  progress: Progress,
): AsyncGenerator<RunEvent[], void> {
  const { served, settings, request, context } = asked;
  const { signal } = context;
  const { withheld } = progress;
  let run = asked;
  try {
    const hasMessage = request.message !== "" || request.attachments.length > 0;
    const { refuse, message = request.message } = hasMessage
      ? await decideOnMessage(served.agent.hooks, request, context, served.hookMs)
      : {};
    if (refuse !== undefined) {
      yield refused(run, request.state, progress, refuse);
      return;
    }
    progress.isAdmitted = true;
    run = { ...asked, request: { ...request, message } };
    observer.admitted(message);
    const [tools, instructions] = await setupOf(run);
    progress.tools = tools;
    const { waiting } = request.state.open ?? {};
    const decided = waiting && (await takeDecisions(waiting, tools, run, observer));
    const conversation = openConversation(run, instructions, tools);
    progress.conversation = conversation;
    if (decided !== undefined) yield* settle(decided, tools, run, observer, progress);
    const texts = new ToolTexts(served.agent.ownRun === undefined ? new Map() : tools, run, observer);
    for (let turnsLeft = served.agent.maxTurns - 1; ; turnsLeft--) {
      signal.throwIfAborted();
      const modelRequest = observer.modelRequest();
      const turn = new ModelTurn(modelRequest, settings.maxToolOutputChars);
      let finish: TurnFinish;
      try {
        for await (const batch of conversation.ask(signal, modelRequest.answered)) {
          // A model that goes on after the abort is not read any more.
          if (signal.aborted) throw signal.reason;
          const events = withheld.pass(await texts.apply(turn.read(batch), withheld));
          if (events.length > 0) yield events;
        }
        finish = turn.complete(signal);
      } catch (error) {
        const events = withheld.pass(await texts.apply(turn.fail(error, signal), withheld));
        if (events.length > 0) yield events;
        throw error;
      } finally {
        addTurn(progress, turn);
      }
      const { calls, text, asked } = turn;
      if (asked.length > 0) {
        const worded = await askedElsewhere(tools, asked, run, observer);
        yield await endWithApproval(run, conversation, progress, text, worded);
        return;
      }
      if (calls.length === 0) {
        yield await released(run, conversation, progress, endOfRun(run, conversation, progress, text, finish));
        return;
      }
      if (turnsLeft === 0) {
        conversation.interrupt(text);
        yield await released(run, conversation, progress, endOfRun(run, conversation, progress, text, "max_turns"));
        return;
      }
      const toApprove = await callsToApprove(tools, calls, run, observer);
      yield* carryOut(calls, tools, run, observer, progress, { waiting: toApprove, said: text });
      if (toApprove.length > 0) {
        signal.throwIfAborted();
        const asked = await Promise.all(toApprove.map((call) => askedCall(tools, call, run, observer)));
        yield await endWithApproval(run, conversation, progress, text, asked);
        return;
      }
    }
  } catch (error) {
    const last = signal.aborted ? abortedEvent(run, progress) : failedEvent(run, error, observer, progress);
    if (last !== undefined) yield [last];
  }
}

interface CarryOut {
  waiting?: ToolCall[];
  /** What the model has said with the calls. */
  said?: string;
  adapt?(answer: ToolAnswer): ToolAnswer;
}

/** Carries out the calls of a turn that do not wait, and answers them to the model, in their order and as `adapt` says. */
async function* carryOut(
  calls: readonly ToolCall[],
  tools: ReadonlyMap<string, Tool>,
  { context, settings, served }: AgentRun,
  observer: RunObserver,
  progress: Progress,
  { waiting = [], said = "", adapt = (answer) => answer }: CarryOut = {},
): AsyncGenerator<RunEvent[], void> {
  context.signal.throwIfAborted();
  const begun = calls.filter((call) => !waiting.includes(call));
  if (begun.length === 0) return;
  const calling = { context, limits: settings, observer, hookMs: served.hookMs };
  yield parted(progress.withheld.pass(await callEvents(tools, begun, calling)), said, progress.withheld);
  progress.hasUsedTools = true;
  const answers = new Map<string, ToolAnswer>();
  try {
    for await (const result of runTools(tools, calls, calling, waiting)) {
      answers.set(result.answer.id, adapt(result.answer));
      yield [endEvent(tools, result)];
    }
  } finally {
    progress.conversation?.answer(calls.flatMap(({ id }) => answers.get(id) ?? []));
  }
}

/** Carries out the calls that a person has approved, and gives the model the refusal of each that they have declined. */
async function* settle(
  { approved, declined, edited }: Decided,
  tools: ReadonlyMap<string, Tool>,
  run: AgentRun,
  observer: RunObserver,
  progress: Progress,
): AsyncGenerator<RunEvent[], void> {
  progress.hasUsedTools = true;
  progress.conversation?.answer(declined);
  if (declined.length > 0) yield progress.withheld.pass(declined.map((answer) => declinedEvent(tools, answer)));
  const adapt = (answer: ToolAnswer) => {
    const call = edited.has(answer.id) ? approved.find(({ id }) => id === answer.id) : undefined;
    return call === undefined ? answer : withEdit(answer, call);
  };
  // An agent that is written elsewhere carries its calls out itself.
  if (run.served.agent.ownRun === undefined) yield* carryOut(approved, tools, run, observer, progress, { adapt });
}

/** Clients that see nothing of the calls see what was said before them apart from what follows. */
function parted(events: RunEvent[], text: string, { isWithholding }: WithheldAnswer): RunEvent[] {
  const isSeen = events.some((event) => event.type !== "hidden" || event.shown !== undefined);
  return isSeen || text === "" || isWithholding ? events : [...events, { type: "token", data: SEPARATOR }];
}

/** One model request: what clients get of it, and what it comes to. */
class ModelTurn {
  /** The tools that the model wants to be carried out. */
  readonly calls: ToolCall[] = [];
  /** Calls of an agent that is written elsewhere, which wait for a person. */
  readonly asked: AskedCall[] = [];
  /** `undefined` until the model has ended the turn. */
  finish: TurnFinish | undefined;
  usage: Usage | undefined;
  /** The model string of the model that answered, where the agent has several. */
  model: string | undefined;
  /** Whether the provider has run a tool of its own. */
  hasHostedCalls = false;
  readonly #observer: ModelRequestObserver;
  readonly #maxOutputChars: number;
  /** Calls of tools that the provider runs itself and that have no result yet, and when each began. */
  readonly #hosted = new Map<string, { call: ToolCall; startedAt: number }>();
  #text = new StringBuilder();

  constructor(observer: ModelRequestObserver, maxOutputChars: number) {
    this.#observer = observer;
    this.#maxOutputChars = maxOutputChars;
  }

  /** All that was said so far. */
  get text(): string {
    return this.#text.toString();
  }

  /** Takes what the model said, and returns the events that clients get of it. */
  read(batch: readonly ModelEvent[]): StreamEvent[] {
    const events: StreamEvent[] = [];
    for (const event of batch) {
      switch (event.type) {
        case "text":
          this.#text.append(event.delta);
          events.push({ type: "token", data: event.delta });
          break;
        case "thinking":
          events.push({ type: "thinking", data: event.delta });
          break;
        case "text_was_thinking":
          events.push({ type: "thinking", data: this.text });
          this.#text = new StringBuilder();
          break;
        case "call":
          this.calls.push(event.call);
          break;
        case "hosted_call":
          this.hasHostedCalls = true;
          this.#hosted.set(event.call.id, { call: event.call, startedAt: performance.now() });
          events.push(toolCallEvent(event.call));
          break;
        case "hosted_result":
          events.push(this.#hostedResult(event.answer, event.durationMs));
          break;
        case "approval":
          this.#hosted.delete(event.asked.call.id);
          this.asked.push(event.asked);
          break;
        case "text_begins_anew":
          this.#text = new StringBuilder();
          break;
        case "report":
          this.#observer.report(event.report);
          break;
        case "end":
          for (const ended of this.#endHosted()) events.push(ended);
          this.finish = event.finish;
          this.usage = event.usage;
          this.model = event.model;
          break;
        default:
          unreachable(event);
      }
    }
    return events;
  }

  /** The model's answer is over. @throws ApiError if it broke off, or the reason of an abort */
  complete(signal: AbortSignal): TurnFinish {
    if (this.finish === undefined) {
      signal.throwIfAborted();
      // The readers of the providers find answers that broke off: only a fault of a provider's code leads here.
      const detail = "The provider's code ended the answer without an `end` event.";
      throw new ApiError("provider_truncated", "The answer broke off before its end. Please try again.", { detail });
    }
    const { finish, usage, model } = this;
    this.#observer.end({ type: "finished", finish, usage, model });
    return finish;
  }

  /** Returns results for the hosted calls that clients have seen begin. */
  fail(error: unknown, signal: AbortSignal): StreamEvent[] {
    this.#observer.end(signal.aborted ? { type: "aborted" } : { type: "failed", error });
    return this.#endHosted();
  }

  #hostedResult(answer: ToolAnswer, durationMs: number): StreamEvent {
    this.#hosted.delete(answer.id);
    const content = cutContent(answer.content, this.#maxOutputChars);
    return toolResultEvent({ answer: { ...answer, content }, durationMs });
  }

  #endHosted(): StreamEvent[] {
    return [...this.#hosted.values()].map(({ call: { id, name }, startedAt }) => {
      const answer = { id, name, content: textContent("It was not finished."), failed: true };
      return this.#hostedResult(answer, Math.round(performance.now() - startedAt));
    });
  }
}

/** @throws as `askAuthor` does */
function setupOf({ served, context }: AgentRun): Promise<[ReadonlyMap<string, Tool>, string]> {
  const { agent, hookMs } = served;
  const { tools, chooseTools, instructions } = agent;
  return Promise.all([
    chooseTools === undefined ? tools : askAuthor("tools(ctx)", (ctx) => served.toolsFor(ctx), context, hookMs),
    typeof instructions === "string"
      ? instructions.toWellFormed()
      : askAuthor("instructions(ctx)", async (ctx) => checkInstructions(await instructions(ctx)), context, hookMs),
  ]);
}

function checkInstructions(text: unknown): string {
  if (typeof text === "string") return text.toWellFormed();
  throw new TypeError(`instructions must return a string, but returned ${text === null ? "null" : typeof text}.`);
}

function openConversation(
  { served, request, context }: AgentRun,
  instructions: string,
  tools: ReadonlyMap<string, Tool>,
): Conversation {
  const specs = [...tools.values()].map(({ name, description, parameters }) => {
    return { name, description, parameters: parameters.json };
  });
  return served.provider.open({ ...request, setup: { instructions, tools: specs } }, context);
}

function addTurn(progress: Progress, { text, finish, usage, model, hasHostedCalls }: ModelTurn): void {
  progress.hasUsedTools ||= hasHostedCalls;
  if (finish !== undefined) {
    progress.usage = addUsage(progress.usage, usage);
    progress.model = model;
  }
  // A turn that says nothing leaves what the one before it said.
  if (text === "") return;
  progress.said = text;
  progress.unfinished = finish === undefined ? text : "";
}

/** The end that the run came to by itself. */
function endOfRun(
  run: AgentRun,
  conversation: Conversation,
  progress: Progress,
  text: string,
  reason: Exclude<FinishReason, NotByItself>,
): StreamEvent[] {
  if (text.trim() !== "") return [doneEvent(run, conversation.state(), progress, text, reason)];
  if (reason === "stop" && !progress.hasUsedTools) {
    throw new ApiError("provider_error", "The agent gave an empty answer. Please try again.");
  }
  const fallback = FALLBACK_TEXT[reason];
  // Kept, too: several APIs demand an answer between the results of tools and the next message.
  conversation.interrupt(fallback);
  // A client that only collects tokens gets the same text as one that reads `done`.
  return [{ type: "token", data: fallback }, doneEvent(run, conversation.state(), progress, fallback, reason)];
}

/** The end of a run whose calls wait for a person. */
async function endWithApproval(
  run: AgentRun,
  conversation: Conversation,
  progress: Progress,
  said: string,
  asked: readonly AskedCall[],
): Promise<StreamEvent[]> {
  const { waiting, approvals } = await askApproval(asked, run);
  const text = said.trim() === "" ? approvals.map((approval) => approval.text).join("\n") : said;
  const done = doneEvent(run, conversation.openState(waiting), progress, text, "approval_required");
  const events = approvals.map((data): StreamEvent => ({ type: "tool_approval", data }));
  return released(run, conversation, progress, [...events, { ...done, approvals }]);
}

/** The events of the end, if `onAnswer` lets them pass, with what it or other code has proposed. */
async function released(
  run: AgentRun,
  conversation: Conversation,
  progress: Progress,
  end: StreamEvent[],
): Promise<StreamEvent[]> {
  const { withheld } = progress;
  const events = withheld.pass(end);
  const { context, served, proposals } = run;
  const refusal = await withheld.refusal(events.at(-1)?.data as string, context, served.hookMs);
  if (refusal === undefined) return [...withheld.release(), ...events.map((event) => withProposals(event, proposals))];
  conversation.withhold(refusal);
  return refused(run, conversation.state(), progress, refusal);
}

function withProposals<Event extends StreamEvent>(event: Event, proposals: Proposals): Event {
  return event.type === "done" ? { ...event, ...proposals.fields() } : event;
}

/** A client that only collects tokens gets the same sentence as one that reads `done`. */
function refused(run: AgentRun, state: ConversationState, progress: Progress, sentence: string): StreamEvent[] {
  return [{ type: "token", data: sentence }, doneEvent(run, state, progress, sentence, "refused")];
}

function doneEvent(
  run: AgentRun,
  state: ConversationState,
  progress: Progress,
  text: string,
  reason: FinishReason,
): DoneEvent {
  const { usage, model } = progress;
  return {
    type: "done",
    data: text,
    state: sealed(state, run, progress),
    ...(usage === undefined ? {} : { usage }),
    finish_reason: reason,
    ...(model === undefined ? {} : { model }),
  };
}

function abortedEvent(run: AgentRun, progress: Progress): DoneEvent | ErrorEvent | undefined {
  const kind = abortKind(run.context.signal);
  if (kind === "gone") return undefined;
  if (kind !== "stopped") return withState(run, abortError(run, kind), progress);
  const { isAdmitted, withheld, unfinished, said } = progress;
  const conversation = progress.conversation ?? openConversation(run, "", new Map());
  const isShown = isAdmitted && !withheld.isWithholding;
  // What was not let pass stands in no state, either.
  if (withheld.isWithholding) conversation.withhold("");
  if (isAdmitted) conversation.interrupt(isShown ? unfinished : "");
  const state = isAdmitted ? conversation.state() : run.request.state;
  const done = doneEvent(run, state, progress, isShown ? said : "", "stopped");
  return isShown ? withProposals(done, run.proposals) : done;
}

function abortKind({ reason }: AbortSignal): AbortKind {
  return reason instanceof RunAborted ? reason.kind : "gone";
}

function abortError({ settings }: AgentRun, kind: Exclude<AbortKind, "gone" | "stopped">): ApiError {
  switch (kind) {
    case "lost":
      return runLost();
    case "revoked":
      return new ApiError("unauthorized", "This key has been revoked.");
    case "shutting_down":
      return shuttingDown();
    case "timeout":
      return new ApiError(
        "provider_timeout",
        `The answer took longer than ${settings.runSeconds} seconds and was stopped.`,
      );
    default:
      return unreachable(kind);
  }
}

/** The last event of a run that failed. */
export function failedEvent(run: AgentRun, error: unknown, observer: RunObserver, progress: Progress): ErrorEvent {
  observer.failure(error);
  return withState(run, toApiError(error), progress);
}

/** Why a run has failed whose model ignores the abort, and which therefore cannot end itself. */
export function abortTimeoutError(run: AgentRun): ApiError {
  const kind = abortKind(run.context.signal);
  if (kind === "revoked" || kind === "lost" || kind === "shutting_down") return abortError(run, kind);
  return new ApiError("provider_timeout", "The answer could not be stopped in time.", {
    detail: "The model ignored that its run was ended.",
  });
}

function withState(run: AgentRun, error: ApiError, progress: Progress): ErrorEvent {
  const { state, canContinue } = progress.failure(run);
  const event = withoutRetry(errorEvent(error, sealed(state, run, progress), canContinue), error, run, progress);
  if (error.detail === undefined || !isOnlyForOperator(run.settings)) return event;
  return { ...event, data: `${event.data} (${run.served.strike(error.detail)})` };
}

/** The same message would have an agent that is written elsewhere act once more. A `ToolError` has its author's words. */
function withoutRetry(event: ErrorEvent, { cause }: ApiError, { served }: AgentRun, progress: Progress): ErrorEvent {
  if (served.agent.ownRun === undefined || !progress.hasUsedTools) return event;
  const data = isToolError(cause) ? event.data : event.data.replace(/ Please try again[^.]*\./, "");
  return { ...event, data, retryable: false };
}

function sealed(state: ConversationState, run: AgentRun, { tools }: Progress): ConversationState {
  const { served, context, request } = run;
  const isHidden = hiddenCalls(request.hidden, tools);
  return sealState(state, context.conversation, served.stateBindingOf(context), isHidden);
}

/** Which calls of the conversation clients may not read; `undefined`: they may read all. */
function hiddenCalls(
  hidden: ReadonlySet<string> = new Set(),
  tools: ReadonlyMap<string, Tool> = new Map(),
): IsHidden | undefined {
  if (hidden.size === 0 && !hidesAny(tools)) return undefined;
  return (call) => hidden.has(call.id) || hiderOf(tools, call.function.name) !== undefined;
}
