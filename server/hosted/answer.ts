/** What an agent has said so far, as the events of a model whose tools all run elsewhere. */

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
 * What the OpenAI Agents SDK gives a model of a tool that threw or was late, in TypeScript and in Python: nothing else says that
 * it failed. Most versions add what was thrown.
 */
const TOLD_FAILURE = /^An error occurred while running the tool\. |^Tool '.*' timed out after /;

/** The most that one `state` may hold, as JSON. */
const MAX_STATE_BYTES = 256 * 1024;

/** Levels of a message that are around a state that it brings back: its own, its state's, the history's and the message's. */
const LEVELS_AROUND = 6;

/**
 * So long clients do not get to know that a call begins: most frameworks report a call before they ask a person about it. One
 * that they ask about later was reported already, and its approval takes it back.
 */
const HOLD_MS = 200;

/** What an agent asks a person, as its framework says it. */
export interface Question extends Omit<AskedCall, "call" | "shown" | "text"> {
  id: unknown;
  tool: unknown;
  arguments: unknown;
  text?: unknown;
}

/** A call that a person has approved, with what they have said. */
export type ApprovedCall = WaitingCall & { reason?: string | undefined };

/** A call of before: `isDue` may still end. */
export interface KnownCall {
  call: ToolCall;
  isDue: boolean;
  isDeclined: boolean;
}

/** What the framework needs to go on with all that waits, from one of the objects that had its stream. */
export type KeepAll = (source: Record<string, unknown>, input: RunInput) => unknown;

/** `maxJsonDepth` is that of a message. */
type Limits = Pick<Settings, "maxJsonDepth" | "maxToolCalls">;

/** What the readers of shapes have found of an answer. */
export class Answer implements AgentAnswer {
  finish: TurnFinish = "stop";
  usage: Usage | undefined;
  /** The last `state` that was yielded. */
  state: unknown;
  /** Gives a state that changes until the answer is over, and is kept then. */
  changingState: (() => unknown) | undefined;
  #events: ModelEvent[] = [];
  /** Calls that have no result yet, and when each began. */
  readonly #open = new Map<string, ToolCall & { startedAt: number }>();
  /** Ids of all calls. */
  readonly #called = new Set<string>();
  /** Ids of calls whose results are waited for. */
  readonly #awaited = new Set<string>();
  /** Calls that clients do not know of yet. */
  readonly #held = new Map<string, ToolCall>();
  #heldUntil = 0;
  /** What a person is asked, by the ids of calls. */
  readonly asked = new Map<string, AskedCall>();
  keepAll: KeepAll | undefined;
  readonly #noticed = new Set<string>();
  readonly #steps = new Steps((notice) => this.notice(notice));
  readonly #progress = new Progress();
  /** Agents within calls and steps, by the ids of these. */
  readonly #inner = new Map<string, InnerAnswer>();
  /** Calls that are known of but were not begun. */
  #expected = 0;
  #hasText = false;
  /** Whether the next text starts the answer again. */
  #beginsAnew = false;
  /** Whether a row of a tool stands behind the last text, so that a client shows the next one apart. */
  #isApart = true;
  /** Characters that were said since the last call or result. */
  #saidSince = 0;
  /** Characters of all that was said and done. */
  #chars = 0;
  readonly #limits: Limits;
  readonly #context: Pick<RunContext, "suggest">;
  /** Calls of before, by their ids: `isDue` may still end. */
  #before: ReadonlyMap<string, KnownCall> = new Map();

  constructor(limits: Limits, context: Pick<RunContext, "suggest">) {
    this.#limits = limits;
    this.#context = context;
  }

  /** Milliseconds until clients have to know of calls that are held, or of what a call says; `undefined`: of nothing. */
  get dueMs(): number | undefined {
    const heldMs = this.#held.size === 0 ? undefined : Math.max(0, this.#heldUntil - performance.now());
    const { dueMs: saidMs = heldMs } = this.#progress;
    return saidMs === undefined ? undefined : Math.min(saidMs, heldMs ?? saidMs);
  }

  /** That time is over. */
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

  /** What was said since the last time. */
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

  /** What was said rests on it. `at`: the place in what was said since the last call or result. */
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

  /** What was said so far led to the answer; the answer is what is said from now on, if there will be any. */
  beginAnew(): void {
    this.#beginsAnew = true;
  }

  /** Calls that the model has asked for, and that begin or have begun. */
  expect(calls: number): void {
    this.#expected = calls;
  }

  /** Tools that have no result may never run, other than these: they are no reason for silence any more. */
  giveUp(except?: ReadonlySet<string>): void {
    this.#expected = 0;
    for (const id of this.#awaited) if (except?.has(id) !== true) this.#awaited.delete(id);
  }

  /** The agent asks its model once more. */
  nextStep(): void {
    this.release();
    this.beginAnew();
    this.giveUp();
  }

  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  /** Whether a call of this id is known: its result is no call. */
  hasCalled(id: string): boolean {
    return this.#called.has(id) || this.#before.has(id) || this.#steps.has(id);
  }

  /**
   * A call begins. A second one of the same id is the same call, and so is one that a person has declined; frameworks ask with
   * other arguments than they report, unless `isAsAsked`. Gives its id.
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
    // Its tool may be what asks, and then it runs.
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
   * A call begins within another one, or within a step of it: clients see it there, and no model hears of it. Gives whether the
   * other one is known to run; else nothing begins.
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

  /** What an agent within a call, or within a step, does. */
  within(id: unknown): InnerAnswer {
    const parent = asString(id);
    const inner = this.#inner.get(parent) ?? new InnerAnswer(this, parent);
    this.#inner.set(parent, inner);
    return inner;
  }

  /** What a call, or a step of one, does now. */
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

  /** Clients get to know of the calls that are held, all or up to this one. Gives whether there were any. */
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

  /** The call of this id, if it has no result yet, or is one of before. */
  openCallOf(id: unknown): ToolCall | undefined {
    return this.#open.get(asString(id)) ?? this.#before.get(asString(id))?.call;
  }

  /** The calls that have no result yet, of this name or of any. */
  openCalls(name?: unknown): ToolCall[] {
    return [...this.#open.values()].filter((call) => name === undefined || call.name === name);
  }

  /**
   * The agent goes on only when a person has decided on this. A second request about the same call is the same.
   * @throws ApiError for more requests than a person may get at once, and as `keep` does
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

  /** Calls that a person has approved begin now, others of `before` when they are heard of. Gives whether any begin. */
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
   * A call is over. A second result of the same call is left out. Where it has `failed`, `output` was written for clients. One
   * with a picture that is none has failed, too.
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

  /** A call has thrown. What it threw is for the log, unless it is a `ToolError`. */
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

  /** @throws TypeError that says what is right */
  suggest(texts: unknown): void {
    this.#context.suggest(texts as string[]);
  }

  /** @throws ApiError for what is no JSON, too large or too deep */
  keep(state: unknown): void {
    this.state = this.#checked(state, "state");
  }

  /** What may be kept under this name, as JSON has it. @throws ApiError as `keep` does */
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

  /** What `keepAll` gives of the objects that had the streams, if anything waits. @throws ApiError as `keep` does */
  async keptOfAll(sources: readonly Record<string, unknown>[], input: RunInput): Promise<unknown> {
    for (const source of sources.toReversed()) {
      const kept = await this.keepAll?.(source, input);
      if (kept !== undefined) return this.#checked(kept, "kept");
    }
    return undefined;
  }

  /** The state does not change any more. @throws ApiError as `keep` does */
  keepChanging(): void {
    if (this.changingState !== undefined) this.keep(this.changingState());
  }

  /** Why the model stopped, in the words of any framework. */
  finishedAs(reason: unknown): void {
    if (reason === "length" || reason === "max_tokens") this.finish = "length";
    if (reason === "content-filter" || reason === "content_filter") this.finish = "content_filter";
  }

  /** For the log: the same sentence once. */
  notice(notice: AgentNotice): void {
    if (!this.#noticed.has(notice.message)) this.#report(notice);
    this.#noticed.add(notice.message);
  }

  #report(report: AgentNotice): void {
    this.#events.push({ type: "report", report });
  }

  /** A bound against an endless answer, as for models. @throws ApiError */
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
    // It begins at the latest with its end.
    if (isDue) this.call(due?.id, due?.name, due?.arguments);
    const call = this.#open.get(key);
    if (call === undefined) return;
    this.release(key);
    this.#open.delete(key);
    this.#awaited.delete(key);
    this.#ended(call, { startedAt: call.startedAt }, output, failed, pictures);
    this.beginAnew();
  }

  /** What runs within a call ends with it: nothing more is heard of it than what it said last. */
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

/** A failure in words for the operator. */
export function failure(detail: string, cause?: unknown): ApiError {
  return providerError("provider_error", detail, { cause });
}

/** Characters of what was thrown, in sentences for the operator. */
export const MAX_WORDS = 300;

/** The same, with what was thrown in its own words. */
export function failureInWords(sentence: string, thrown: unknown): ApiError {
  return failure(`${sentence}: ${messageOf(thrown).slice(0, MAX_WORDS)}`, thrown);
}

/** What somebody's code has thrown, in its own words: it may be anything, even what cannot become a text. */
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

/** `undefined` for what JSON has no form for. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}
