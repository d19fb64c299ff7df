/** How an element shows thoughts and tool calls. */

import type { Message } from "./transcript.ts";

/** `auto`, the default: thoughts are open while they stream, tool calls closed. */
export const STEP_MODES = ["auto", "open", "closed", "hidden"] as const;

export type StepMode = (typeof STEP_MODES)[number];

/** Of an element: its attributes of the same names. */
export interface StepModes {
  readonly thinking: StepMode;
  readonly tools: StepMode;
}

/** A message without what is hidden. */
export function shownOf<M extends Message>(message: M, modes: StepModes): M {
  if (message.role === "user") return message;
  const blocks = message.blocks.filter(
    ({ type }) => type === "text" || modes[type === "tool" ? "tools" : type] !== "hidden",
  );
  return { ...message, blocks };
}
