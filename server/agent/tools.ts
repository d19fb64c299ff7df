import type { ToolResultEvent } from "../protocol/events.ts";
import type { ToolAnswer, ToolCall } from "../providers/provider.ts";
import type { Tool } from "./define.ts";
import { aborted } from "./run-abort.ts";
import { ABORTED, type RunWatch, type ToolOutcome } from "./run-watch.ts";
import type { TellRun, ToolLimits } from "./runner.ts";

const STOPPED = "Stopped before it finished.";

interface Outcome extends ToolOutcome {
  output: string;
  failed: boolean;
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
  const results = new Map<string, ToolResultEvent["data"]>();
  while (running.size > 0) {
    const result = await Promise.race(running.values());
    running.delete(result.id);
    results.set(result.id, result);
    await tell([{ type: "tool_result", data: result }]);
  }
  return calls.flatMap(({ id, name }) => {
    const result = results.get(id);
    if (result === undefined) return [];
    return [{ id, name, output: result.output, failed: result.status === "failed" }];
  });
}

async function timed(
  call: ToolCall,
  work: Promise<Outcome>,
  maxOutputChars: number,
): Promise<ToolResultEvent["data"]> {
  const start = performance.now();
  const { output, failed } = await work;
  return {
    id: call.id,
    tool: call.name,
    output: cutOutput(output, maxOutputChars),
    status: failed ? "failed" : "completed",
    duration_ms: Math.round(performance.now() - start),
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
  if (tool !== undefined) return watch.tool(call, () => callTool(tool, call, signal));
  return { output: `There is no tool named "${call.name}".`, failed: true };
}

/** Never rejects: whatever a tool does becomes a result that the model can act on. */
async function callTool(tool: Tool, call: ToolCall, runSignal: AbortSignal): Promise<Outcome> {
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
    return { output: messageOf(error), failed: true, errorType: typeOf(error) };
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
    throw new Error("The arguments are not valid JSON.");
  }
}

function stringify(value: unknown): string {
  if (typeof value === "string") return value;
  // JSON has no word for undefined; null tells the model the same.
  const text = JSON.stringify(value ?? null);
  // A function or symbol, whose text would be source code.
  if (text === undefined) throw new Error("The tool returned something that is not JSON.");
  return text;
}

/** Of whatever was thrown; an object may have no text at all, or throw when it is asked for it. */
function messageOf(error: unknown): string {
  try {
    const message = String(error instanceof Error ? error.message : error);
    if (message !== "") return message;
  } catch {
    // Said below.
  }
  return "The tool failed without a message.";
}

/** The name of its class, which is the author's text and short: a message could hold anything. */
function typeOf(error: unknown): string {
  const name = error instanceof Error ? error.constructor.name : "";
  return /^\w{1,64}$/.test(name) ? name : "_OTHER";
}

/** The output as it leaves the server: well-formed, and not endless. */
export function cutOutput(output: string, maxChars: number): string {
  if (output.length <= maxChars) return output.toWellFormed();
  const kept = output.slice(0, maxChars).toWellFormed();
  return `${kept}\n[cut: ${output.length - maxChars} more characters]`;
}
