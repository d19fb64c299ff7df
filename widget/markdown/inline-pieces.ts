/** Longest inline text that is lexed at once; a paragraph is rarely longer. marked's time grows with the square. */
const maxLength = 4096;

/** Most marks in one piece, for the same reason. */
const maxMarks = 256;

const base64Run = /[A-Za-z0-9+/=]*\)?/y;
const marks = /[*_~]+|[[<`\\!]/g;

/**
 * Cuts inline text into pieces that are lexed apart, at a single white space where there is one. The cuts depend only on
 * what precedes them, so text that grows keeps its earlier pieces.
 */
export function inlinePieces(source: string): string[] {
  const pieces: string[] = [];
  let start = 0;
  for (;;) {
    const limit = pieceLimit(source, start);
    if (limit >= source.length) break;
    const end = cutBefore(source, start, limit);
    pieces.push(source.slice(start, end));
    start = end;
  }
  pieces.push(source.slice(start));
  return pieces;
}

function pieceLimit(source: string, start: number): number {
  let count = 0;
  marks.lastIndex = start;
  for (let mark = marks.exec(source); mark !== null; mark = marks.exec(source)) {
    if (mark.index - start >= maxLength) break;
    count += 1;
    if (count === maxMarks) return mark.index;
  }
  return start + maxLength;
}

function cutBefore(source: string, start: number, limit: number): number {
  for (let index = limit - 1; index > (start + limit) / 2; index -= 1) {
    if (isPlainGap(source, index)) return index;
  }
  // No gap: at least keep the bytes of a data: image together, and a surrogate pair.
  base64Run.lastIndex = limit;
  const end = limit + (base64Run.exec(source)?.[0].length ?? 0);
  return /[\udc00-\udfff]/.test(source.charAt(end)) ? end + 1 : end;
}

/** White space that is no part of a hard line break, which needs its neighbours. */
function isPlainGap(source: string, index: number): boolean {
  return /^[^\s\\]\s\S$/.test(source.slice(index - 1, index + 2));
}
