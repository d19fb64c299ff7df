import type { ToolAnswer } from "../provider.ts";

/** What the model is told of a call that was never finished. */
export const CANCELLED_OUTPUT = "Cancelled: the run ended before this call was finished.";

/** What the model is told a tool answered. Most APIs have no flag for a failure, so the text says it. */
export function toolOutput({ output, failed }: ToolAnswer): string {
  return failed ? `${FAILURE}${output}` : output;
}

const FAILURE = "Error: ";

/** Whether a result of the history says that its call failed, for APIs that have a flag for it. */
export function tellsFailure(content: string): boolean {
  return content.startsWith(FAILURE) || content === CANCELLED_OUTPUT;
}
