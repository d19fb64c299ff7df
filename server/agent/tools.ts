/** Carries out the tool calls of one model turn. */

import type { Settings } from "../config/settings.ts";
import { Late, within } from "../config/within.ts";
import { AgentNotice, ToolFailure } from "../errors.ts";
import type { RunEvent, RunObserver, ToolOutcome } from "../observe/run-observer.ts";
import type { ToolContent, ToolText } from "../protocol/chat.ts";
import { tryParse } from "../protocol/json.ts";
import { textContent } from "../providers/history.ts";
import type { ToolAnswer, ToolCall } from "../providers/provider.ts";
import { Progress } from "./progress.ts";
import type { RunContext } from "./run-context.ts";
import {
  HIDDEN_FAILURE,
  isToolError,
  isToolResult,
  type Tool,
  type ToolContext,
  ToolError,
} from "./tool-definition.ts";
import { cutContent, cutText, type ToolResult, toolCallEvent, toolResultEvent } from "./tool-events.ts";
import { readResult } from "./tool-result.ts";
import { type CheckedArguments, describeProblems } from "./tool-schema.ts";
import { type Asking, hiddenBy, hiderOf, madeTitle } from "./tool-words.ts";

/** The outcome of a call. `content` is for the model; `shown` is for clients if they may not see `content`. */
interface Outcome extends ToolOutcome {
  content: readonly ToolContent[];
  sources?: ToolAnswer["sources"];
  images?: ToolAnswer["images"];
  shown?: string;
  title?: ToolText | undefined;
  failed: boolean;
}

/** What the calls of a run have in common. */
export interface Calling extends Asking {
  /** The tools that the model may call, by name. */
  readonly tools: ReadonlyMap<string, Tool>;
  readonly limits: Pick<Settings, "maxToolCalls" | "maxToolOutputChars">;
}

/** Events of running calls for clients, and the answer of the call that has ended, if one has. */
interface Step {
  readonly events: RunEvent[];
  readonly answer?: ToolAnswer;
}

/** The progress texts of the calls of a run, in all its turns. */
const SAID = new WeakMap<RunContext, Progress>();

/**
 * Starts all calls of a turn at once, except those that wait for a person, and yields their progress texts, and each
 * result as soon as it is there. After an abort, calls that still run count as failed at once.
 */
export async function* runTools(
  calls: readonly ToolCall[],
  calling: Calling,
  waiting: readonly ToolCall[] = [],
): AsyncGenerator<Step, void> {
  const { tools } = calling;
  const { maxToolCalls, maxToolOutputChars } = calling.limits;
  const progress = SAID.get(calling.context) ?? new Progress();
  SAID.set(calling.context, progress);
  const running = new Map(
    calls.flatMap((call, index) => {
      if (waiting.includes(call)) return [];
      if (hiderOf(tools, call.name) === undefined) progress.begin(call.id);
      const report = (text: string) => progress.report(call.id, text);
      const outcome =
        index < maxToolCalls ? runTool(tools.get(call.name), call, report, calling) : tooManyCalls(maxToolCalls);
      return [[call.id, timed(call, outcome, maxToolOutputChars)] as const];
    }),
  );
  while (running.size > 0) {
    const result = await Promise.race([...running.values(), progress.due()]);
    if (result === undefined) yield { events: progress.take() };
    else {
      const { answer } = result;
      running.delete(answer.id);
      yield { events: [...progress.end(answer.id), endEvent(tools, result)], answer };
    }
  }
}

/** The events of calls that begin, with their titles while they run. Rejects after an abort. */
export async function callEvents(
  calls: readonly (ToolCall & Pick<ToolResult, "parent">)[],
  calling: Calling,
): Promise<RunEvent[]> {
  const { tools } = calling;
  const events = await Promise.all(
    calls.map(async (call) => {
      const tool = tools.get(call.name);
      const title = tool?.running ? await runningTitle(tool, call, calling) : tool?.title;
      return hiddenBy(toolCallEvent(call, { title, parent: call.parent }), hiderOf(tools, call.name));
    }),
  );
  calling.context.signal.throwIfAborted();
  return events;
}

/** The title while the call runs. `running` gets what `execute` gets; without valid arguments, the tool's title. */
async function runningTitle(tool: Tool, call: ToolCall, calling: Calling): Promise<ToolText | undefined> {
  const fitting = await fittingArguments(tool, call, calling);
  return fitting ? madeTitle(tool, "running", () => tool.running?.(fitting.value), calling) : tool.title;
}

/** The checks of arguments in a run, by call. */
const CHECKS = new WeakMap<RunContext, WeakMap<ToolCall, Promise<CheckedArguments>>>();

/**
 * Checks the arguments of a call only once in a run: a check that failed when it was decided whether the call needs
 * approval must not succeed when the call is carried out.
 */
export function checkedArguments(
  { parameters }: Tool,
  call: ToolCall,
  { context, hookMs: ms }: Pick<Asking, "context" | "hookMs">,
): Promise<CheckedArguments> {
  const checks = CHECKS.get(context) ?? new WeakMap();
  CHECKS.set(context, checks);
  const checked = checks.get(call) ?? parameters.check(tryParse(call.arguments), { ms, signal: context.signal });
  checks.set(call, checked);
  return checked;
}

/** The arguments of a call, if they fit. Problems of them, or of their check, are reported when the call runs. */
export async function fittingArguments(
  tool: Tool,
  call: ToolCall,
  asking: Pick<Asking, "context" | "hookMs">,
): Promise<{ value: unknown } | undefined> {
  const checked = await checkedArguments(tool, call, asking);
  return checked.ok ? checked : undefined;
}

function endEvent(tools: ReadonlyMap<string, Tool>, result: ToolResult): RunEvent {
  const { name } = result.answer;
  const title = result.title ?? tools.get(name)?.title;
  return hiddenBy(toolResultEvent({ ...result, title }), hiderOf(tools, name));
}

async function timed({ id, name }: ToolCall, pending: Promise<Outcome>, maxChars: number): Promise<ToolResult> {
  const startedAt = performance.now();
  const { content, sources, shown, images, title, failed } = await pending;
  return {
    title,
    answer: {
      id,
      name,
      content: cutContent(content, maxChars),
      ...(shown === undefined ? {} : { shown: cutText(shown, maxChars) }),
      sources,
      images,
      failed,
    },
    durationMs: Math.round(performance.now() - startedAt),
  };
}

async function tooManyCalls(max: number): Promise<Outcome> {
  return failure(`Not carried out: one turn may make ${max} tool calls. Make the rest in the next turn.`);
}

type Report = ToolContext["progress"];

async function runTool(tool: Tool | undefined, call: ToolCall, report: Report, calling: Calling): Promise<Outcome> {
  if (tool === undefined) return failure(`There is no tool named "${call.name}".`);
  const { timeoutMs } = tool;
  return calling.observer.tool({ ...call, timeoutMs }, () => callTool(tool, call, report, calling));
}

/** The longest time of a timer. The run ends before it is over. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** A tool that fails or is late also gives a result, so that the model can act on it. */
async function callTool(tool: Tool, call: ToolCall, report: Report, calling: Calling): Promise<Outcome> {
  const { context, observer } = calling;
  const progress = (text: string) => {
    if (typeof text !== "string") throw new TypeError("progress takes a text.");
    report(text);
  };
  const work = (signal: AbortSignal) => execute(tool, call, { ...context, signal, callId: call.id, progress }, calling);
  try {
    const maxMs = tool.timesItself ? MAX_TIMER_MS : tool.timeoutMs;
    const { done, ...outcome } = await within(work, maxMs, context.signal);
    // `done` has a time limit of its own, so that it cannot turn a finished call into a late one.
    return done === undefined ? outcome : { ...outcome, title: await madeTitle(tool, "done", done, calling) };
  } catch (error) {
    if (context.signal.aborted) return failure("Stopped before it finished.", "aborted");
    if (error instanceof Late) {
      observer.failure(new AgentNotice(`The tool "${tool.name}" ${error.message}.`));
      return failure(`Timed out after ${tool.timeoutMs} ms.`, "timeout");
    }
    return thrownByTool(tool.name, error, observer);
  }
}

/** `done` of the result makes the title of a call that has succeeded. */
async function execute(
  tool: Tool,
  call: ToolCall,
  context: ToolContext,
  calling: Calling,
): Promise<Outcome & { done?(): unknown }> {
  if (tryParse(call.arguments) === undefined) throw new ToolError("The arguments are not valid JSON.");
  const checked = await checkedArguments(tool, call, calling);
  if (!checked.ok) {
    // What the author's own check throws is handled like what `execute` throws.
    if (checked.failure instanceof ToolFailure) throw checked.failure.cause;
    if (checked.failure !== undefined) calling.observer.failure(checked.failure);
    return failure(`The arguments do not fit:\n${describeProblems(checked.problems)}`, "invalid_arguments");
  }
  // The run may have been stopped while the arguments were checked.
  context.signal.throwIfAborted();
  const value = await tool.execute(checked.value, context);
  const result = isToolResult(value)
    ? readResult(value, asText, calling.limits.maxToolOutputChars)
    : { content: textContent(asText(value)) };
  return { ...result, failed: false, done: () => tool.done?.(checked.value, value) };
}

function asText(value: unknown): string {
  if (typeof value === "string") return value;
  // JSON has no undefined; null means the same to the model.
  const text = JSON.stringify(value ?? null);
  // JSON has no text for a function or symbol, and only `{}` for a generator, a `Map` or a `Response`.
  if (text === undefined || (text === "{}" && isOpaque(value))) {
    throw new ToolError("The tool returned something that is not JSON.");
  }
  return text;
}

function isOpaque(value: unknown): boolean {
  return value instanceof Response || Symbol.iterator in Object(value) || Symbol.asyncIterator in Object(value);
}

/** Clients see the message of a `ToolError` only. The log gets every error except a `ToolError` without a cause. */
function thrownByTool(tool: string, thrown: unknown, observer: RunObserver): Outcome {
  const { isMeant, message, errorType } = readThrown(thrown);
  if (!isMeant || (thrown as ToolError).cause !== undefined) observer.failure(new ToolFailure(tool, thrown));
  const isText = typeof message === "string" && message.trim() !== "";
  const output = isText ? message : "The tool failed without a message.";
  return { ...failure(output, errorType), thrown, ...(isMeant && isText ? {} : { shown: HIDDEN_FAILURE }) };
}

/** Any value can be thrown, even one that throws when its fields are read. */
function readThrown(thrown: unknown): { isMeant: boolean; message?: unknown; errorType: string } {
  try {
    const message = thrown instanceof Error ? thrown.message : thrown;
    return { isMeant: isToolError(thrown), message, errorType: errorTypeOf(thrown) };
  } catch {
    return { isMeant: false, errorType: "_OTHER" };
  }
}

/** The name of the class that was thrown: it is short, and the author's text. A message could contain anything. */
function errorTypeOf(thrown: unknown): string {
  const name = thrown instanceof Error ? thrown.constructor?.name : "";
  return /^\w{1,64}$/.test(name) ? name : "_OTHER";
}

function failure(output: string, errorType?: string): Outcome {
  return { content: textContent(output), failed: true, errorType };
}
