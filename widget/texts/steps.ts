/** English texts of thoughts and tool calls. */

export const stepTexts = {
  thoughtBriefly: "Thought briefly",
  thoughtFor: (duration: string) => `Thought for ${duration}`,
  /** Thoughts and tool calls in a row, folded into one line. At least three. */
  steps: (count: number) => `${count} steps`,
  /** How many of them failed, beside their number. At least one. */
  stepsFailed: (count: number) => `${count} failed`,
  /** Of a text that is cut: its size. */
  showAll: (size: string) => `Show all (${size})`,
  toolArguments: "Arguments",
  toolOutput: "Output",
  toolError: "Error",
  emptyOutput: "(empty)",
};
