import type { ToolCallEvent, ToolResultEvent } from "../protocol/events.ts";
import type { ToolAnswer, ToolCall } from "../providers/provider.ts";
import { cutOutput, toolResult } from "./tools.ts";

/** Shows the tools that a provider runs itself as a client sees all tools. */
export class HostedCalls {
  /** Calls without a result yet, and when each was told, as `performance.now()`. */
  readonly #open = new Map<string, { call: ToolCall; told: number }>();
  readonly #maxOutputChars: number;

  constructor(maxOutputChars: number) {
    this.#maxOutputChars = maxOutputChars;
  }

  begin(call: ToolCall): ToolCallEvent {
    this.#open.set(call.id, { call, told: performance.now() });
    const { id, name, arguments: args } = call;
    return { type: "tool_call", data: { id, tool: name, arguments: args, status: "running" } };
  }

  end(answer: ToolAnswer, durationMs: number): ToolResultEvent {
    this.#open.delete(answer.id);
    const output = cutOutput(answer.output, this.#maxOutputChars);
    return toolResult({ ...answer, output }, durationMs);
  }

  /** A turn that ended leaves no call running. */
  giveUp(): ToolResultEvent[] {
    return [...this.#open.values()].map(({ call, told }) => {
      const answer = { id: call.id, name: call.name, output: "It was not finished.", failed: true };
      return this.end(answer, Math.round(performance.now() - told));
    });
  }
}
