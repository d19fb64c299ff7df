/** Longest inline text that is lexed at once. A paragraph is rarely longer, and marked's time grows with the square. */
const MAX_LENGTH = 4096;

/** Most marks in one piece, for the same reason. */
const MAX_MARKS = 256;

const BASE64_RUN = /[A-Za-z0-9+/=]*\)?/y;
const COUNTED = /[*_~]+|[[<`\\!$]/g;

/**
 * Cuts inline text into pieces that are lexed separately, at a single white space if there is one. The cuts depend only
 * on the text before them, so growing text keeps its earlier pieces. Pieces without white space between them make one
 * word, so they are returned together.
 */
export function inlinePieces(source: string): string[][] {
  const groups: string[][] = [[]];
  // Only further text shows whether white space at the end belongs to the text.
  const { length } = source.trimEnd();
  let start = 0;
  for (;;) {
    const limit = pieceLimit(source, start);
    const end = limit < length ? cutBefore(source, start, limit) : source.length;
    groups.at(-1)?.push(source.slice(start, end));
    if (end === source.length) return groups;
    if (/\s/.test(source.charAt(end))) groups.push([]);
    start = end;
  }
}

function pieceLimit(source: string, start: number): number {
  let count = 0;
  COUNTED.lastIndex = start;
  for (let mark = COUNTED.exec(source); mark !== null; mark = COUNTED.exec(source)) {
    if (mark.index - start >= MAX_LENGTH) break;
    count += 1;
    if (count === MAX_MARKS) return mark.index;
  }
  return start + MAX_LENGTH;
}

function cutBefore(source: string, start: number, limit: number): number {
  const half = (start + limit) >> 1;
  let gap = limit - 1;
  while (gap > half && !isPlainGap(source, gap)) gap -= 1;
  if (gap > half) return gap;
  // No gap: at least keep the bytes of a data: image together, and a surrogate pair.
  BASE64_RUN.lastIndex = limit;
  const end = limit + (BASE64_RUN.exec(source)?.[0].length ?? 0);
  return /[\udc00-\udfff]/.test(source.charAt(end)) ? end + 1 : end;
}

/** Whether this is white space outside of a hard line break, which must not be cut. */
function isPlainGap(source: string, index: number): boolean {
  return /^[^\s\\]\s\S$/.test(source.slice(index - 1, index + 2));
}
