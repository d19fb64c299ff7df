/** Tools for agents under test. */

import { z } from "zod";
import { type AnyToolDefinition, tool } from "../../server/agent/tool-definition.ts";
import { outputText } from "../../server/providers/history.ts";
import type { ScriptedProvider } from "./scripted-provider.ts";

/** Returns its text. */
export const echo = tool({
  name: "echo",
  description: "Repeats a text.",
  parameters: z.object({ text: z.string() }),
  execute: ({ text }) => text,
});

/** Returns an object; its parameters are a JSON Schema. */
export const lookup = tool<{ id: number }>({
  name: "lookup",
  description: "Looks a number up.",
  parameters: {
    type: "object",
    properties: { id: { type: "integer" } },
    required: ["id"],
    additionalProperties: false,
  },
  execute: ({ id }) => ({ id, square: id * id }),
});

/** Always fails. */
export const broken = tool({
  name: "broken",
  description: "Fails.",
  parameters: z.object({}),
  execute: () => {
    throw new Error("out of order");
  },
});

/** A tool that takes any object. */
export const define = (name: string, execute: AnyToolDefinition["execute"], more = {}) =>
  tool({ name, description: "For a test.", parameters: { type: "object" }, execute, ...more });

/** Never ends: calls `onAbort` on an abort, but does not stop. */
export const deaf = (name: string, onAbort: () => void) =>
  define(name, (_args, { signal }) => {
    signal.addEventListener("abort", onAbort);
    return new Promise(() => {});
  });

/** The tool results in the model's last request, in order. */
export function answersTo(model: ScriptedProvider): string[] {
  const last = model.asked.at(-1)?.messages ?? [];
  return last.flatMap((message) => (message.role === "tool" ? [outputText(message)] : []));
}

/** Always throws `thrown`. */
export function throwing(thrown: unknown): () => never {
  return () => {
    throw thrown;
  };
}
