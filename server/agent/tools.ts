import type { ToolResultEvent } from "../protocol/events.ts";
import type { ToolAnswer, ToolCall } from "../providers/provider.ts";
import type { Tool } from "./define.ts";
import { aborted } from "./run-abort.ts";
import { ABORTED, type RunWatch, type ToolOutcome } from "./run-watch.ts";
import type { TellRun, ToolLimits } from "./runner.ts";
import { readThrown, ToolError, ToolFailure } from "./tool-error.ts";

const STOPPED = "Stopped before it finished.";

interface Outcome extends ToolOutcome {
  /** What the model gets. */
  output: string;
  failed: boolean;
  /** What clients get, if not the same. */
  shown?: string;
}

/** What the calls of a run share. */
interface CallSurroundings {
  readonly signal: AbortSignal;
  readonly limits: ToolLimits;
  readonly tell: TellRun;
  readonly watch: RunWatch;
}

/**
 * Runs the calls of one turn in parallel, and tells every `tool_call` first, each `tool_result` when it is there.
 * Returns the answers in the order of the calls. After an abort the open calls count as failed at once,
 * and so do the calls beyond what one turn may make.
 */
export async function runTools(
  tools: ReadonlyMap<string, Tool>,
  calls: readonly ToolCall[],
  { signal, limits, tell, watch }: CallSurroundings,
): Promise<ToolAnswer[]> {
  await tell(
    calls.map(({ id, name, arguments: args }) => ({
      type: "tool_call",
      data: { id, tool: name, arguments: args, status: "running" },
    })),
  );
  const running = new Map(
    calls.map((call, index) => {
      const work =
        index < limits.maxCallsPerTurn
          ? carryOut(tools.get(call.name), call, signal, watch)
          : tooMany(limits.maxCallsPerTurn);
      return [call.id, timed(call, work, limits.maxOutputChars)] as const;
    }),
  );
  const answers = new Map<string, ToolAnswer>();
  while (running.size > 0) {
    const { answer, durationMs } = await Promise.race(running.values());
    running.delete(answer.id);
    answers.set(answer.id, answer);
    await tell([toolResult(answer, durationMs)]);
  }
  return calls.flatMap(({ id }) => answers.get(id) ?? []);
}

async function timed(
  { id, name }: ToolCall,
  work: Promise<Outcome>,
  maxOutputChars: number,
): Promise<{ answer: ToolAnswer; durationMs: number }> {
  const start = performance.now();
  const { output, failed, shown } = await work;
  const answer: ToolAnswer = { id, name, output: cutOutput(output, maxOutputChars), failed };
  if (shown !== undefined) answer.shown = cutOutput(shown, maxOutputChars);
  return { answer, durationMs: Math.round(performance.now() - start) };
}

/** An answer as clients see it. */
export function toolResult(
  { id, name, output, failed, shown = output }: ToolAnswer,
  durationMs: number,
): ToolResultEvent {
  const status = failed ? "failed" : "completed";
  return {
    type: "tool_result",
    data: { id, tool: name, output: shown, status, duration_ms: durationMs },
  };
}

async function tooMany(max: number): Promise<Outcome> {
  return {
    output: `Not carried out: one turn may make ${max} tool calls. Make the rest in the next turn.`,
    failed: true,
  };
}

async function carryOut(
  tool: Tool | undefined,
  call: ToolCall,
  signal: AbortSignal,
  watch: RunWatch,
): Promise<Outcome> {
  if (tool !== undefined) return watch.tool(call, () => callTool(tool, call, signal, watch));
  return { output: `There is no tool named "${call.name}".`, failed: true };
}

/** Never rejects: whatever a tool does becomes a result that the model can act on. */
async function callTool(tool: Tool, call: ToolCall, runSignal: AbortSignal, watch: RunWatch): Promise<Outcome> {
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(), tool.timeoutMs);
  const signal = AbortSignal.any([runSignal, timeout.signal]);
  const abort = aborted(signal);
  try {
    return await Promise.race([attempt(tool, call, signal), abort.promise]);
  } catch (error) {
    if (runSignal.aborted) return { output: STOPPED, failed: true, errorType: ABORTED };
    if (timeout.signal.aborted) {
      return {
        output: `Timed out after ${tool.timeoutMs} ms.`,
        failed: true,
        errorType: "timeout",
      };
    }
    const { message, shown, type, isUnexpected } = readThrown(error);
    if (isUnexpected) watch.failure(new ToolFailure(tool.name, error));
    return { output: message, shown, failed: true, errorType: type };
  } finally {
    clearTimeout(timer);
    abort.forget();
  }
}

async function attempt(tool: Tool, call: ToolCall, signal: AbortSignal): Promise<Outcome> {
  const checked = await tool.parameters.check(parseArguments(call.arguments));
  if (!checked.ok) {
    return {
      output: `The arguments do not fit:\n${checked.problems.join("\n")}`,
      failed: true,
      errorType: "invalid_arguments",
    };
  }
  const value = await tool.execute(checked.value, { signal, callId: call.id });
  return { output: stringify(value), failed: false };
}

function parseArguments(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ToolError("The arguments are not valid JSON.");
  }
}

function stringify(value: unknown): string {
  if (typeof value === "string") return value;
  // JSON has no word for undefined; null tells the model the same.
  const text = JSON.stringify(value ?? null);
  // A function or symbol, whose text would be source code.
  if (text === undefined) throw new ToolError("The tool returned something that is not JSON.");
  return text;
}

/** The output as it leaves the server: well-formed, and not endless. */
export function cutOutput(output: string, maxChars: number): string {
  if (output.length <= maxChars) return output.toWellFormed();
  const kept = output.slice(0, maxChars).toWellFormed();
  return `${kept}\n[cut: ${output.length - maxChars} more characters]`;
}
