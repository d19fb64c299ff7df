import type { ToolAnswer } from "../provider.ts";

/** What the model is told of a call that was never finished. */
export const CANCELLED_OUTPUT = "Cancelled: the run ended before this call was finished.";

/** What the model is told a tool answered. The APIs have no flag for a failure, so the text says it. */
export function toolOutput({ output, failed }: ToolAnswer): string {
  return failed ? `Error: ${output}` : output;
}
