/** What an agent has said so far, as the events of a model whose tools all run elsewhere. */

import { randomUUID } from "node:crypto";
import { isToolError } from "../agent/define.ts";
import { AgentNotice } from "../errors.ts";
import type { Usage } from "../protocol/chat.ts";
import type { ApiError } from "../protocol/errors.ts";
import { providerError } from "../providers/failures.ts";
import { textContent } from "../providers/history.ts";
import type { ModelEvent, ToolCall, TurnFinish } from "../providers/provider.ts";

/** Clients get it in place of what a tool threw. */
const HIDDEN = "The tool failed.";

/** The most that one `state` may hold, as JSON. */
const MAX_STATE_BYTES = 256 * 1024;

/** What the readers of shapes tell of an answer. */
export class Answer {
  finish: TurnFinish = "stop";
  usage: Usage | undefined;
  /** The last `state` that was yielded. */
  state: unknown;
  #events: ModelEvent[] = [];
  /** Calls that have no result yet, and when each began. */
  readonly #open = new Map<string, { name: string; startedAt: number }>();
  /** Ids of all calls. */
  readonly #called = new Set<string>();
  /** Calls that are known of but were not begun. */
  #expected = 0;
  #hasText = false;
  /** Whether the next text begins the answer anew. */
  #beginsAnew = false;
  /** Whether a row of a tool stands behind the last text, so that a client shows the next one apart. */
  #isApart = true;

  /** Whether the agent may be silent because a tool runs. */
  get isWorking(): boolean {
    return this.#open.size > 0 || this.#expected > 0;
  }

  get hasUsedTools(): boolean {
    return this.#called.size > 0;
  }

  /** Whether any text was said. */
  get hasText(): boolean {
    return this.#hasText;
  }

  /** What was said since the last time. */
  take(): ModelEvent[] {
    const events = this.#events;
    if (events.length > 0) this.#events = [];
    return events;
  }

  text(delta: unknown): void {
    if (typeof delta !== "string" || delta === "") return;
    if (this.#beginsAnew) {
      this.#beginsAnew = false;
      if (!this.#isApart) this.#events.push({ type: "text", delta: "\n\n" });
      if (this.#hasText) this.#events.push({ type: "text_begins_anew" });
    }
    this.#hasText = true;
    this.#isApart = false;
    this.#events.push({ type: "text", delta });
  }

  thinking(delta: unknown): void {
    if (typeof delta === "string" && delta !== "") this.#events.push({ type: "thinking", delta });
  }

  /** What was said so far led to the answer; the answer is what is said from now on, if there will be any. */
  beginAnew(): void {
    this.#beginsAnew = true;
  }

  /** Calls that the model has asked for, and that begin or have begun. */
  expect(calls: number): void {
    this.#expected = calls;
  }

  hasCalled(id: string): boolean {
    return this.#called.has(id);
  }

  /** A call begins. A second one of the same id is the same call. Gives its id. */
  call(id: unknown, name: unknown, args: unknown): string {
    const call: ToolCall = {
      id: typeof id === "string" && id !== "" ? id : randomUUID(),
      name: typeof name === "string" && name !== "" ? name : "tool",
      arguments: argumentsText(args),
    };
    if (this.#called.has(call.id)) return call.id;
    this.#called.add(call.id);
    this.#open.set(call.id, { name: call.name, startedAt: performance.now() });
    this.#isApart = true;
    this.#events.push({ type: "hosted_call", call });
    return call.id;
  }

  /** The first call that has no result yet, of this name or of any. */
  openCall(name?: unknown): string | undefined {
    return [...this.#open].find(([, call]) => name === undefined || call.name === name)?.[0];
  }

  /** A call is over. A second result of the same call is left out. */
  result(id: unknown, output: unknown): void {
    this.#finish(id, outputText(output), false);
  }

  /** A call has failed. `output` is what the agent's author wrote for clients. */
  failedResult(id: unknown, output: unknown): void {
    this.#finish(id, outputText(output), true);
  }

  /** A call has thrown. What it threw is for the log, unless it is a `ToolError`. */
  thrown(id: unknown, thrown: unknown): void {
    const isMeant = isToolError(thrown);
    const name = this.#open.get(String(id))?.name ?? "tool";
    if (!isMeant) this.report(new AgentNotice(`The tool "${name}" failed.`, { cause: thrown }));
    this.#finish(id, isMeant ? thrown.message : HIDDEN, true);
  }

  addUsage(input: unknown, output: unknown): void {
    if (!isCount(input) || !isCount(output)) return;
    const { input_tokens = 0, output_tokens = 0 } = this.usage ?? {};
    this.usage = { input_tokens: input_tokens + input, output_tokens: output_tokens + output };
  }

  /** @throws ApiError for what is no JSON, and for what is too large */
  keep(state: unknown): void {
    const text = jsonOf(state);
    if (text === undefined) throw failure("The agent's state is not JSON.");
    if (Buffer.byteLength(text) > MAX_STATE_BYTES) {
      throw failure(
        `The agent's state is larger than ${MAX_STATE_BYTES / 1024} KiB. Keep it elsewhere, and yield its id.`,
      );
    }
    this.state = JSON.parse(text);
  }

  /** Why the model stopped, in the words of any framework. */
  finishedAs(reason: unknown): void {
    if (reason === "length" || reason === "max_tokens") this.finish = "length";
    if (reason === "content-filter" || reason === "content_filter") this.finish = "content_filter";
  }

  /** For the log. */
  report(report: Error): void {
    this.#events.push({ type: "report", report });
  }

  /** The agent wants a person's yes, which nobody could give it. @throws ApiError always */
  askApproval(what: string): never {
    throw failure(`The agent asks for an approval (${what}), which cannot be given to an agent with run.`);
  }

  #finish(id: unknown, output: string, failed: boolean): void {
    const key = typeof id === "string" ? id : "";
    const call = this.#open.get(key);
    if (call === undefined) return;
    this.#open.delete(key);
    const durationMs = Math.round(performance.now() - call.startedAt);
    const answer = { id: key, name: call.name, content: textContent(output), failed };
    this.#events.push({ type: "hosted_result", answer, durationMs });
    this.beginAnew();
  }
}

/** A failure in words for the operator. */
export function failure(detail: string, cause?: unknown): ApiError {
  return providerError("provider_error", detail, { cause });
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

function argumentsText(args: unknown): string {
  if (typeof args === "string") return args === "" ? "{}" : args;
  return jsonOf(args ?? {}) ?? "{}";
}

function outputText(output: unknown): string {
  return typeof output === "string" ? output : (jsonOf(output ?? null) ?? String(output));
}

/** `undefined` for what JSON has no form for. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}
