/** Chunks, with the most bytes that each may have on the wire with gzip. */
export const chunkBudgets: Readonly<Record<string, number>>;
