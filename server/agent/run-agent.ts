/** The loop: model, tools, model again, until the answer. */

import type { Caller } from "../auth/access.ts";
import type { Authenticate } from "../auth/authenticate.ts";
import { isOnlyForOperator } from "../config/exposure.ts";
import type { Settings } from "../config/settings.ts";
import type { ModelRequestObserver, RunObserver, RunSink } from "../observe/run-observer.ts";
import { addUsage } from "../observe/run-recorder.ts";
import type { ReceivedFile } from "../protocol/attachments.ts";
import type { ConversationState, FinishReason, Usage } from "../protocol/chat.ts";
import { ApiError, runLost, shuttingDown, toApiError } from "../protocol/errors.ts";
import { type DoneEvent, type ErrorEvent, errorEvent, type StreamEvent, unreachable } from "../protocol/events.ts";
import { textContent } from "../providers/history.ts";
import type {
  Conversation,
  ConversationStart,
  ModelEvent,
  ServedFacts,
  ToolAnswer,
  ToolCall,
  TurnFinish,
} from "../providers/provider.ts";
import { StringBuilder } from "../providers/string-builder.ts";
import { decideOnMessage, WithheldAnswer } from "./decisions.ts";
import type { Agent, Tool } from "./define.ts";
import type { Hooks } from "./hooks.ts";
import type { ModuleLife } from "./module-life.ts";
import type { RunContext } from "./run-context.ts";
import { type StateBinding, sealState } from "./state.ts";
import { cutContent, rejectWhenAborted, runTools, toolCallEvent, toolResultEvent } from "./tools.ts";

/** What answers an agent's messages: a model of a provider, or code of the agent's author. */
export interface AnswerSource extends ServedFacts {
  /** Begins the conversation of one run. Sends nothing yet. */
  open(start: ConversationStart, context: RunContext): Conversation;
}

/** An agent that is served. A run takes it once, at its start, and keeps it until its end. */
export interface ServedAgent {
  readonly agent: Agent;
  readonly provider: AnswerSource;
  /** The tools that the model may call in this run, by name. */
  toolsFor(context: RunContext): Promise<ReadonlyMap<string, Tool>>;
  /** Whether metrics have a series for a tool of this name. A model can make up any name. */
  isTool(name: string): boolean;
  /** Says who sends a message; absent where nobody is asked. */
  readonly authenticate: Authenticate | undefined;
  /** The first one signs states now, all verify; none: states are not signed. */
  stateSecrets(): readonly string[];
  readonly life: ModuleLife;
  /** How long a hook may take. */
  readonly hookMs: number;
  /** Gets what is known of its runs, beside the sinks of all runs. */
  readonly sink?: RunSink | undefined;
}

/** What serves the next message: another agent may take the place of `current` at any time. */
export interface AgentRuntime {
  current: ServedAgent;
}

/** What the states of this user are bound to now. */
export function stateBindingOf(
  { agent, provider, stateSecrets }: ServedAgent,
  settings: Settings,
  { user }: Pick<Caller, "user">,
): StateBinding {
  const { maxHistoryItems, maxHistoryBytes } = settings;
  return {
    kind: provider.stateKind,
    agent: agent.id,
    provider: provider.id,
    user: user?.id,
    secrets: stateSecrets(),
    limits: { maxHistoryItems, maxHistoryBytes },
  };
}

/** One message to answer. The state was checked. */
export interface RunRequest {
  message: string;
  attachments: readonly ReceivedFile[];
  /** Empty for a new conversation. */
  state: ConversationState;
}

/** One run: what serves it, what it answers, and for whom. */
export interface AgentRun {
  readonly served: ServedAgent;
  /** Values may change while the server runs. */
  readonly settings: Settings;
  readonly request: RunRequest;
  readonly context: RunContext;
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

/** What a run that is ended from outside has come to. */
class Progress {
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

  constructor(hooks: Hooks) {
    this.withheld = new WithheldAnswer(hooks);
  }
}

/** Sent in place of an empty answer, which would look like a fault. The first one only where tools have run. */
const FALLBACK_TEXT: Record<Exclude<FinishReason, "stopped" | "refused">, string> = {
  stop: "I have nothing to add.",
  length: "The answer was cut by the token limit before it began.",
  content_filter: "The model's provider withheld this answer.",
  max_turns: "I stopped here: this took more steps than I may take for one message.",
};

/**
 * Answers one message. Yields events in batches, one for each packet of the model's answer. The last event is exactly one
 * `done` or `error`; after an abort of the kind `gone` there is none. Never throws.
 */
export async function* runAgent(asked: AgentRun, observer: RunObserver): AsyncGenerator<StreamEvent[], void> {
  const { served, settings, request, context } = asked;
  const { signal } = context;
  const progress = new Progress(served.agent.hooks);
  const { withheld } = progress;
  let run = asked;
  let conversation: Conversation | undefined;
  try {
    const { refuse, message = request.message } = await decideOnMessage(
      served.agent.hooks,
      request,
      context,
      served.hookMs,
    );
    if (refuse !== undefined) {
      yield refused(run, request.state, progress, refuse);
      return;
    }
    progress.isAdmitted = true;
    run = { ...asked, request: { ...request, message } };
    observer.admitted(message);
    const setup = Promise.all([served.toolsFor(context), instructionsFor(run)]);
    const [tools, instructions] = await Promise.race([setup, rejectWhenAborted(signal)]);
    conversation = openConversation(run, instructions, tools);
    for (let turnsLeft = served.agent.maxTurns - 1; ; turnsLeft--) {
      signal.throwIfAborted();
      const modelRequest = observer.modelRequest();
      const turn = new ModelTurn(modelRequest, settings.maxToolOutputChars);
      let finish: TurnFinish;
      try {
        for await (const batch of conversation.ask(signal, modelRequest.answered)) {
          // A model that goes on after the abort is not read any more.
          if (signal.aborted) throw signal.reason;
          const events = withheld.pass(turn.read(batch));
          if (events.length > 0) yield events;
        }
        finish = turn.complete(signal);
      } catch (error) {
        const events = withheld.pass(turn.fail(error, signal));
        if (events.length > 0) yield events;
        throw error;
      } finally {
        addTurn(progress, turn);
      }
      const { calls, text } = turn;
      if (calls.length === 0) {
        yield await released(run, conversation, progress, endOfRun(run, conversation, progress, text, finish));
        return;
      }
      if (turnsLeft === 0) {
        conversation.interrupt(text);
        yield await released(run, conversation, progress, endOfRun(run, conversation, progress, text, "max_turns"));
        return;
      }
      yield withheld.pass(calls.map(toolCallEvent));
      progress.hasUsedTools = true;
      const answers = new Map<string, ToolAnswer>();
      for await (const result of runTools(tools, calls, { context, limits: settings, observer })) {
        answers.set(result.answer.id, result.answer);
        yield [toolResultEvent(result)];
      }
      conversation.answer(calls.flatMap(({ id }) => answers.get(id) ?? []));
    }
  } catch (error) {
    // What was not let pass stands in no state, either.
    if (withheld.isWithholding) conversation?.withhold("");
    const last = signal.aborted
      ? abortedEvent(run, conversation ?? openConversation(run, "", new Map()), progress)
      : failedEvent(run, error, observer, conversation?.stateAfterFailure());
    if (last !== undefined) yield [last];
  }
}

/** One model request: what clients get of it, and what it comes to. */
class ModelTurn {
  /** The tools that the model wants to be carried out. */
  readonly calls: ToolCall[] = [];
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
        case "text_begins_anew":
          this.#text = new StringBuilder();
          break;
        case "report":
          this.#observer.report(event.report);
          break;
        case "end":
          events.push(...this.#endHosted());
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

async function instructionsFor({ served, context }: AgentRun): Promise<string> {
  const { instructions } = served.agent;
  const text = typeof instructions === "string" ? instructions : await instructions(context);
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
  reason: Exclude<FinishReason, "stopped" | "refused">,
): StreamEvent[] {
  if (text.trim() !== "") return [doneEvent(run, conversation.state(), progress, text, reason)];
  if (reason === "stop" && !progress.hasUsedTools) {
    throw new ApiError("provider_error", "The model gave an empty answer. Please try again.");
  }
  const fallback = FALLBACK_TEXT[reason];
  // Kept, too: several APIs demand an answer between the results of tools and the next message.
  conversation.interrupt(fallback);
  // A client that only collects tokens gets the same text as one that reads `done`.
  return [{ type: "token", data: fallback }, doneEvent(run, conversation.state(), progress, fallback, reason)];
}

/** The events of the end, if `onAnswer` lets them pass. */
async function released(
  run: AgentRun,
  conversation: Conversation,
  progress: Progress,
  end: StreamEvent[],
): Promise<StreamEvent[]> {
  const { withheld } = progress;
  if (!withheld.isWithholding) return end;
  const events = withheld.pass(end);
  const { context, served } = run;
  const refusal = await withheld.refusal(events.at(-1)?.data as string, context, served.hookMs);
  if (refusal === undefined) return [...withheld.release(), ...events];
  conversation.withhold(refusal);
  return refused(run, conversation.state(), progress, refusal);
}

/** A client that only collects tokens gets the same sentence as one that reads `done`. */
function refused(run: AgentRun, state: ConversationState, progress: Progress, sentence: string): StreamEvent[] {
  return [{ type: "token", data: sentence }, doneEvent(run, state, progress, sentence, "refused")];
}

function doneEvent(
  run: AgentRun,
  state: ConversationState,
  { usage, model }: Progress,
  text: string,
  reason: FinishReason,
): DoneEvent {
  return {
    type: "done",
    data: text,
    state: sealed(state, run),
    ...(usage === undefined ? {} : { usage }),
    finish_reason: reason,
    ...(model === undefined ? {} : { model }),
  };
}

function abortedEvent(
  run: AgentRun,
  conversation: Conversation,
  progress: Progress,
): DoneEvent | ErrorEvent | undefined {
  const kind = abortKind(run.context.signal);
  if (kind === "gone") return undefined;
  if (kind !== "stopped") return withState(run, abortError(run, kind), conversation.stateAfterFailure());
  const { isAdmitted, withheld, unfinished, said } = progress;
  const isShown = isAdmitted && !withheld.isWithholding;
  if (isAdmitted) conversation.interrupt(isShown ? unfinished : "");
  return doneEvent(run, conversation.state(), progress, isShown ? said : "", "stopped");
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

/** The last event of a run that failed. Without a `state`, the conversation goes on from the one that the message came with. */
export function failedEvent(
  run: AgentRun,
  error: unknown,
  observer: RunObserver,
  state?: ConversationState,
): ErrorEvent {
  observer.failure(error);
  return withState(run, toApiError(error), state);
}

/** Why a run has failed whose model ignores the abort, and which therefore cannot end itself. */
export function abortTimeoutError(run: AgentRun): ApiError {
  const kind = abortKind(run.context.signal);
  if (kind === "revoked" || kind === "lost" || kind === "shutting_down") return abortError(run, kind);
  return new ApiError("provider_timeout", "The answer could not be stopped in time.", {
    detail: "The model ignored that its run was ended.",
  });
}

function withState(run: AgentRun, error: ApiError, state = run.request.state): ErrorEvent {
  const event = errorEvent(error, sealed(state, run));
  if (error.detail === undefined || !isOnlyForOperator(run.settings)) return event;
  return { ...event, data: `${event.data} (${error.detail})` };
}

function sealed(state: ConversationState, { served, settings, context }: AgentRun): ConversationState {
  return sealState(state, context.conversation, stateBindingOf(served, settings, context));
}
