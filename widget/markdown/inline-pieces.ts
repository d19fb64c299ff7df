import { closeMarks } from "./close-marks.ts";

/** Longest inline text that is lexed at once; a paragraph is rarely longer. marked's time grows with the square. */
const maxLength = 4096;

/** Most marks in one piece, for the same reason. */
const maxMarks = 256;

/** How many gaps are tried for one at which no mark is open. */
const maxTries = 64;

const base64Run = /[A-Za-z0-9+/=]*\)?/y;
const marks = /[*_~]+|[[<`\\!]/g;

/**
 * Cuts inline text into pieces that are lexed apart, at a single white space where there is one. The cuts depend only on
 * what precedes them, so text that grows keeps its earlier pieces. Pieces with no white space between them are answered
 * together, since they make one word.
 */
export function inlinePieces(source: string): string[][] {
  const groups: string[][] = [[]];
  // Whether white space at the end belongs to the text is only seen when more comes.
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
  marks.lastIndex = start;
  for (let mark = marks.exec(source); mark !== null; mark = marks.exec(source)) {
    if (mark.index - start >= maxLength) break;
    count += 1;
    if (count === maxMarks) return mark.index;
  }
  return start + maxLength;
}

/** Best is a gap at which no mark is open, so that nothing is lost. */
function cutBefore(source: string, start: number, limit: number): number {
  let fallback = 0;
  for (let index = limit - 1, tries = maxTries; index > (start + limit) / 2; index -= 1) {
    if (!isPlainGap(source, index)) continue;
    const piece = source.slice(start, index);
    if (closeMarks(piece) === piece) return index;
    fallback ||= index;
    tries -= 1;
    if (tries === 0) break;
  }
  if (fallback > 0) return fallback;
  // No gap: at least keep the bytes of a data: image together, and a surrogate pair.
  base64Run.lastIndex = limit;
  const end = limit + (base64Run.exec(source)?.[0].length ?? 0);
  return /[\udc00-\udfff]/.test(source.charAt(end)) ? end + 1 : end;
}

/** White space that is no part of a hard line break, which needs its neighbours. */
function isPlainGap(source: string, index: number): boolean {
  return /^[^\s\\]\s\S$/.test(source.slice(index - 1, index + 2));
}
