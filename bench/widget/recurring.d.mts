export function longestRecurring(runs: readonly (readonly { at: number; ms: number }[])[], apart: number): number;
