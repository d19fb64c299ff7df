/** An agent's answer so far, as the events of a model whose tools all run elsewhere. */

import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { Progress } from "../agent/progress.ts";
import type { RunContext } from "../agent/run-context.ts";
import type { RunInput } from "../agent/run-function.ts";
import { HIDDEN_FAILURE, isToolError } from "../agent/tool-definition.ts";
import { picturesOf, shownImages } from "../agent/tool-result.ts";
import type { Settings } from "../config/settings.ts";
import { AgentNotice } from "../errors.ts";
import type { ImagePart, Usage, WaitingCall } from "../protocol/chat.ts";
import type { ApiError } from "../protocol/errors.ts";
import type { ToolProgressEvent } from "../protocol/events.ts";
import { asString, tryParse } from "../protocol/json.ts";
import { providerError } from "../providers/failures.ts";
import { textContent } from "../providers/history.ts";
import type { AskedCall, FoundSource, ModelEvent, ToolCall, TurnFinish } from "../providers/provider.ts";
import { MAX_STREAM_BYTES } from "../providers/transport/upstream-response.ts";
import { addUsage } from "../providers/usage.ts";
import { type AgentAnswer, InnerAnswer } from "./inner-answer.ts";
import { Steps } from "./steps.ts";

/**
 * The tool output that the OpenAI Agents SDK (TypeScript and Python) gives the model when a tool threw or timed out. Nothing
 * else shows the failure. Most versions append the error.
 */
const TOLD_FAILURE = /^An error occurred while running the tool\. |^Tool '.*' timed out after /;

/** Maximum size of a `state` or `kept` value, as JSON. */
const MAX_STATE_BYTES = 256 * 1024;

/** Most levels around such a value in a message: the body, `state`, `open`, `waiting`, `calls` and the call. */
const LEVELS_AROUND = 6;

/**
 * How long a new call is held back from clients: most frameworks report a call before they ask the user about it. If they ask
 * later, clients already know the call, and the approval event withdraws it.
 */
const HOLD_MS = 200;

/** A question to the user, as the agent's framework reports it. */
export interface Question extends Omit<AskedCall, "call" | "shown" | "text"> {
  id: unknown;
  tool: unknown;
  arguments: unknown;
  text?: unknown;
}

/** A call that the user has approved, with the reason that they gave. */
export type ApprovedCall = WaitingCall & { reason?: string | undefined };

/** A call that was made before this run. `isDue`: it may still end. */
export interface KnownCall {
  call: ToolCall;
  isDue: boolean;
  isDeclined: boolean;
}

/** Reads what the framework needs to resume all waiting calls from one of the objects that contained its stream. */
export type KeepAll = (source: Record<string, unknown>, input: RunInput) => unknown;

/** `maxJsonDepth` is the limit for a whole message. */
type Limits = Pick<Settings, "maxJsonDepth" | "maxToolCalls">;

/** An answer, filled by the readers of shapes. */
export class Answer implements AgentAnswer {
  finish: TurnFinish = "stop";
  usage: Usage | undefined;
  /** The last `state` that was yielded. */
  state: unknown;
  /** Returns a state that changes until the answer ends, and is kept then. */
  changingState: (() => unknown) | undefined;
  #events: ModelEvent[] = [];
  /** Calls that have no result yet, and when each began. */
  readonly #open = new Map<string, ToolCall & { startedAt: number }>();
  /** Ids of all calls. */
  readonly #called = new Set<string>();
  /** Ids of calls whose results are still expected. */
  readonly #awaited = new Set<string>();
  /** Calls that clients have not been sent yet. */
  readonly #held = new Map<string, ToolCall>();
  #heldUntil = 0;
  /** Questions to the user, by the id of the call. */
  readonly asked = new Map<string, AskedCall>();
  keepAll: KeepAll | undefined;
  readonly #noticed = new Set<string>();
  readonly #steps = new Steps((notice) => this.notice(notice));
  readonly #progress = new Progress();
  /** Agents that work within calls and steps, by the ids of those calls and steps. */
  readonly #inner = new Map<string, InnerAnswer>();
  /** Number of calls that the model has requested and that have not begun. */
  #expected = 0;
  #hasText = false;
  /** Whether the next text starts the answer over. */
  #beginsAnew = false;
  /** Whether a tool call follows the last text, so that clients show the next text separately. */
  #isApart = true;
  /** Characters of text since the last call or result. */
  #saidSince = 0;
  /** Characters of everything in the answer, including arguments and outputs. */
  #chars = 0;
  readonly #limits: Limits;
  readonly #context: Pick<RunContext, "suggest">;
  /** Calls that were made before this run, by id. */
  #before: ReadonlyMap<string, KnownCall> = new Map();

  constructor(limits: Limits, context: Pick<RunContext, "suggest">) {
    this.#limits = limits;
    this.#context = context;
  }

  /** Milliseconds until held calls or progress texts have to be sent; `undefined` if there are none. */
  get dueMs(): number | undefined {
    const heldMs = this.#held.size === 0 ? undefined : Math.max(0, this.#heldUntil - performance.now());
    const { dueMs: saidMs = heldMs } = this.#progress;
    return saidMs === undefined ? undefined : Math.min(saidMs, heldMs ?? saidMs);
  }

  /** Releases the held calls and progress texts that are due. */
  releaseDue(): void {
    if (this.#held.size > 0 && performance.now() >= this.#heldUntil) this.release();
    this.#said(this.#progress.take());
  }

  /** Whether the agent may be silent because a tool runs. */
  get isWorking(): boolean {
    return this.#awaited.size > 0 || this.#expected > 0;
  }

  get hasUsedTools(): boolean {
    return this.#called.size > 0;
  }

  /** The events since the last call of this method. */
  take(): ModelEvent[] {
    const events = this.#events;
    if (events.length > 0) this.#events = [];
    return events;
  }

  text(delta: unknown): void {
    if (typeof delta !== "string" || delta === "") return;
    this.#count(delta);
    this.release();
    if (this.#beginsAnew) {
      this.#beginsAnew = false;
      if (!this.#isApart) this.#events.push({ type: "text", delta: "\n\n" });
      if (this.#hasText) this.#events.push({ type: "text_begins_anew" });
    }
    this.#hasText = true;
    this.#isApart = false;
    this.#saidSince += delta.length;
    this.#events.push({ type: "text", delta });
  }

  /** A source of the text so far. `at`: an offset in the text since the last call or result. */
  source({ at, ...source }: FoundSource & { at?: unknown }): void {
    this.#count(Object.values(source).join(""));
    const back = typeof at === "number" ? Math.max(0, this.#saidSince - at) : source.back;
    this.#events.push({ type: "source", source: { ...source, back } });
  }

  thinking(delta: unknown): void {
    if (typeof delta !== "string" || delta === "") return;
    this.#count(delta);
    this.#events.push({ type: "thinking", delta });
  }

  /** Any further text is the answer; the text so far only led to it. */
  beginAnew(): void {
    this.#beginsAnew = true;
  }

  /** Sets how many calls the model has requested that have not begun. */
  expect(calls: number): void {
    this.#expected = calls;
  }

  /** Stops waiting for results, except for `except`: those tools may never run, so the idle limit applies again. */
  giveUp(except?: ReadonlySet<string>): void {
    this.#expected = 0;
    for (const id of this.#awaited) if (except?.has(id) !== true) this.#awaited.delete(id);
  }

  /** The agent makes another model request. */
  nextStep(): void {
    this.release();
    this.beginAnew();
    this.giveUp();
  }

  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  /** Whether a call or step of this id is known, so that its result does not imply a new call. */
  hasCalled(id: string): boolean {
    return this.#called.has(id) || this.#before.has(id) || this.#steps.has(id);
  }

  /**
   * Begins a call and returns its id. A call whose id is known, or that the user has declined, does not begin again. Frameworks
   * may ask with other arguments than they report: those of a declined call are only compared with `isAsAsked`.
   */
  call(id: unknown, name: unknown, args: unknown, isAsAsked = false): string {
    const call = toCall(id, name, args);
    if (this.#called.has(call.id) || this.asked.has(call.id)) return call.id;
    if (this.#steps.has(call.id)) {
      this.notice(
        new AgentNotice(`A call of the tool "${call.name}" has the id of a step before it: it is not shown.`),
      );
      return call.id;
    }
    // If the name or the arguments differ, this call's tool is what asked, and it runs.
    const { call: declined, isDeclined } = this.#before.get(call.id) ?? {};
    const isIt = !isAsAsked || isDeepStrictEqual(tryParse(declined?.arguments ?? ""), tryParse(call.arguments));
    if (isDeclined && declined?.name === call.name && isIt) return call.id;
    this.#count(call.arguments);
    this.#saidSince = 0;
    this.#called.add(call.id);
    this.#open.set(call.id, { ...call, startedAt: performance.now() });
    this.#awaited.add(call.id);
    this.#progress.begin(call.id);
    if (this.#held.size === 0) this.#heldUntil = performance.now() + HOLD_MS;
    this.#held.set(call.id, call);
    return call.id;
  }

  /**
   * Begins a step: a call within another call, or within a step of one. Clients see it there; models do not get it. Returns
   * false, and begins nothing, unless the other call is known to run.
   */
  step(parent: string, id: unknown, name: unknown, args: unknown): boolean {
    const root = this.#open.get(this.#steps.rootOf(parent) ?? parent);
    if (root === undefined) return false;
    const call = toCall(id, name, args);
    if (this.hasCalled(call.id)) return true;
    this.#count(call.arguments);
    this.release(root.id);
    const events = this.#steps.begin(call, parent, root);
    if (events.length > 0) this.#progress.begin(call.id);
    this.#events.push(...events);
    return true;
  }

  /** The answer of the agent that works within the call or step of this id. */
  within(id: unknown): InnerAnswer {
    const parent = asString(id);
    const inner = this.#inner.get(parent) ?? new InnerAnswer(this, parent);
    this.#inner.set(parent, inner);
    return inner;
  }

  /** Reports what a call, or a step of one, is doing now. */
  progress(id: unknown, text: unknown): void {
    if (typeof text !== "string") return;
    const key = asString(id);
    this.release(this.#steps.rootOf(key) ?? key);
    this.#progress.report(key, text);
    this.#said(this.#progress.take());
  }

  #said(events: readonly ToolProgressEvent[]): void {
    for (const { data } of events) this.#events.push({ type: "progress", ...data });
  }

  /** Sends the held calls to clients: all, or up to `last`. Returns whether there were any. */
  release(last?: string): boolean {
    const { size } = this.#held;
    if (last !== undefined && !this.#held.has(last)) return false;
    for (const call of this.#held.values()) {
      this.#held.delete(call.id);
      this.#isApart = true;
      this.#events.push({ type: "hosted_call", call });
      if (call.id === last) break;
    }
    return size > 0;
  }

  /** The call of this id, if it has no result yet or was made before this run. */
  openCallOf(id: unknown): ToolCall | undefined {
    return this.#open.get(asString(id)) ?? this.#before.get(asString(id))?.call;
  }

  /** The calls that have no result yet, optionally only those of this name. */
  openCalls(name?: unknown): ToolCall[] {
    return [...this.#open.values()].filter((call) => name === undefined || call.name === name);
  }

  /**
   * Asks the user to decide on a call. A second request about the same call is ignored.
   * @throws ApiError for more requests than one answer may make, and as `keep` does
   */
  askApproval({ id, tool, arguments: args, text, kept, ...more }: Question): void {
    const call = toCall(id, tool, args);
    if (this.asked.has(call.id)) return;
    const most = this.#limits.maxToolCalls;
    if (this.asked.size >= most) {
      throw failure(
        `The agent asks about more than ${most} calls in one answer. Have it ask about fewer, or raise PARLEY_MAX_TOOL_CALLS.`,
      );
    }
    this.#count(call.arguments + asString(text));
    for (const calls of [this.#open, this.#awaited, this.#called, this.#held]) calls.delete(call.id);
    const held = kept === undefined ? undefined : this.#checked(kept, "kept");
    this.#endSteps(call.id);
    this.#progress.end(call.id);
    const asked = { ...more, call, text: asString(text), kept: held };
    this.asked.set(call.id, asked);
    this.#events.push({ type: "approval", asked });
  }

  /** Begins the approved calls; others of `before` begin when the agent reports them. Returns whether any begin. */
  beginApproved(approved: readonly ApprovedCall[], before: readonly KnownCall[]): boolean {
    this.#before = new Map(before.map((known) => [known.call.id, known]));
    for (const { id, name, arguments: args, isQuestion, question, reason = "" } of approved) {
      this.call(id, name, args);
      if (isQuestion) this.#finish(id, question ? reason : "", false);
    }
    this.release();
    return approved.length > 0;
  }

  /**
   * Ends a call. A second result of the same call is ignored. If it has `failed`, `output` must be written for clients. An
   * invalid image makes the call fail, too.
   */
  result(id: unknown, output: unknown, failed = false, images: unknown = []): void {
    let pictures: ImagePart[];
    try {
      if (!failed && typeof output === "string" && TOLD_FAILURE.test(output)) throw new Error(output);
      pictures = picturesOf(images);
    } catch (error) {
      this.thrown(id, error);
      return;
    }
    this.#finish(id, outputText(output), failed, pictures);
  }

  /** Ends a call that threw. The error is only logged, unless it is a `ToolError`. */
  thrown(id: unknown, thrown: unknown): void {
    const key = asString(id);
    const call = this.#open.get(key) ?? this.#steps.callOf(key) ?? this.#before.get(key)?.call;
    // Some frameworks report a failure several times.
    if (call === undefined && (this.#called.has(key) || this.#steps.has(key))) return;
    const isMeant = isToolError(thrown);
    const cause = { cause: thrown };
    if (call === undefined) this.notice(new AgentNotice("A tool whose call is not shown has failed.", cause));
    else if (!isMeant) this.#report(new AgentNotice(`The tool "${call.name}" failed.`, cause));
    this.#finish(id, isMeant ? messageOf(thrown) : HIDDEN_FAILURE, true);
  }

  addUsage(usage: Usage | undefined): void {
    this.usage = addUsage(this.usage, usage);
  }

  /** @throws TypeError that says what is allowed */
  suggest(texts: unknown): void {
    this.#context.suggest(texts as string[]);
  }

  /** @throws ApiError if the state is not JSON, too large or nested too deeply */
  keep(state: unknown): void {
    this.state = this.#checked(state, "state");
  }

  /** A copy of the value as JSON; `name` is for the error. @throws ApiError as `keep` does */
  #checked(value: unknown, name: string): unknown {
    const text = jsonOf(value);
    if (text === undefined) throw failure(`The agent's ${name} is not JSON.`);
    const most = `${MAX_STATE_BYTES / 1024} KiB`;
    if (Buffer.byteLength(text) > MAX_STATE_BYTES) {
      throw failure(`The agent's ${name} is larger than ${most}. Keep it elsewhere, and yield its id.`);
    }
    const maxDepth = this.#limits.maxJsonDepth - LEVELS_AROUND;
    if (depthOf(text) > maxDepth) {
      throw failure(
        `The agent's ${name} is nested deeper than ${maxDepth} levels, which no message may bring back. Flatten it, or raise PARLEY_MAX_JSON_DEPTH.`,
      );
    }
    return JSON.parse(text);
  }

  /** What `keepAll` reads from the last source that has it; `undefined` if none has. @throws ApiError as `keep` does */
  async keptOfAll(sources: readonly Record<string, unknown>[], input: RunInput): Promise<unknown> {
    for (const source of sources.toReversed()) {
      const kept = await this.keepAll?.(source, input);
      if (kept !== undefined) return this.#checked(kept, "kept");
    }
    return undefined;
  }

  /** Keeps the changing state, which is final now. @throws ApiError as `keep` does */
  keepChanging(): void {
    if (this.changingState !== undefined) this.keep(this.changingState());
  }

  /** Sets why the model stopped. `reason` is any framework's name for it. */
  finishedAs(reason: unknown): void {
    if (reason === "length" || reason === "max_tokens") this.finish = "length";
    if (reason === "content-filter" || reason === "content_filter") this.finish = "content_filter";
  }

  /** Adds a notice for the log, but each message only once. */
  notice(notice: AgentNotice): void {
    if (!this.#noticed.has(notice.message)) this.#report(notice);
    this.#noticed.add(notice.message);
  }

  #report(report: AgentNotice): void {
    this.#events.push({ type: "report", report });
  }

  /** Limits the answer's length, as for models, against endless ones. @throws ApiError */
  #count(said: string): void {
    this.#chars += said.length;
    if (this.#chars > MAX_STREAM_BYTES) {
      throw failure(`The agent's answer is longer than ${MAX_STREAM_BYTES / 1024 / 1024} MiB.`);
    }
  }

  #finish(id: unknown, output: string, failed: boolean, pictures: readonly ImagePart[] = []): void {
    const key = asString(id);
    const step = this.#steps.end(key);
    if (step !== undefined) {
      this.#ended(step.call, step, output, failed, pictures);
      return;
    }
    const { call: due, isDue } = this.#before.get(key) ?? {};
    // A call from before this run begins with its result at the latest.
    if (isDue) this.call(due?.id, due?.name, due?.arguments);
    const call = this.#open.get(key);
    if (call === undefined) return;
    this.release(key);
    this.#open.delete(key);
    this.#awaited.delete(key);
    this.#ended(call, { startedAt: call.startedAt }, output, failed, pictures);
    this.beginAnew();
  }

  /** Ends all steps within a call. Only the last progress text of each is still sent. */
  #endSteps(id: string): void {
    for (const step of this.#steps.endWithin(id)) this.#said(this.#progress.end(step));
  }

  #ended(
    { id, name }: ToolCall,
    { startedAt, parent }: { startedAt: number; parent?: string },
    output: string,
    failed: boolean,
    pictures: readonly ImagePart[] = [],
  ): void {
    this.#endSteps(id);
    this.#saidSince = 0;
    this.#said(this.#progress.end(id));
    for (const said of [output, ...pictures.map(({ image_url: { url } }) => url)]) this.#count(said);
    const durationMs = Math.round(performance.now() - startedAt);
    const content = [...textContent(output), ...pictures];
    const answer = { id, name, content, images: shownImages(pictures), failed };
    this.#events.push({ type: "hosted_result", answer, durationMs, ...(parent === undefined ? {} : { parent }) });
  }
}

function toCall(id: unknown, name: unknown, args: unknown): ToolCall {
  return { id: asString(id) || randomUUID(), name: asString(name) || "tool", arguments: argumentsText(args) };
}

/** How deep arrays and objects are nested in a JSON text. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (const [mark] of text.matchAll(/"(?:[^"\\]+|\\.)*"|[[{}\]]/g)) {
    if (mark === "[" || mark === "{") deepest = Math.max(deepest, ++depth);
    else if (mark === "]" || mark === "}") depth--;
  }
  return deepest;
}

/** An error whose `detail` is for the operator. */
export function failure(detail: string, cause?: unknown): ApiError {
  return providerError("provider_error", detail, { cause });
}

/** Maximum length of another error's message in a sentence for the operator. */
export const MAX_WORDS = 300;

/** Like `failure`, with the message of the thrown error appended. */
export function failureInWords(sentence: string, thrown: unknown): ApiError {
  return failure(`${sentence}: ${messageOf(thrown).slice(0, MAX_WORDS)}`, thrown);
}

/** The message of a thrown value, which may be anything, even a value that cannot be converted to a string. */
export function messageOf(thrown: unknown): string {
  try {
    const { message = thrown } = Object(thrown) as { message?: unknown };
    return typeof message === "string" ? message : (JSON.stringify(message) ?? String(message));
  } catch {
    return "what was thrown cannot become a text";
  }
}

/** Arguments as one JSON text. */
export function argumentsText(args: unknown): string {
  if (typeof args === "string") return args === "" ? "{}" : args;
  return jsonOf(args ?? {}) ?? "{}";
}

function outputText(output: unknown): string {
  return typeof output === "string" ? output : (jsonOf(output ?? null) ?? "");
}

/** `undefined` if JSON cannot represent the value. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}
