/**
 * Shortest part of a long text, in characters. Each is a box: a browser lays out only the last one while code grows.
 */
const CHUNK = 4096;

/** Long text in parts of whole lines. */
export function linesInChunks(text: string): string[] {
  const chunks: string[] = [];
  let start = 0;
  for (;;) {
    const end = text.indexOf("\n", start + CHUNK) + 1;
    if (end === 0) break;
    chunks.push(text.slice(start, end));
    start = end;
  }
  chunks.push(text.slice(start));
  return chunks;
}
