// UAX #15 allows 30 combining marks in a row and no language comes near; a renderer slows down with each one.
const endlessMarks = /(\p{M}{30})(?=\p{M})/gu;

/**
 * Text as it is shown behind the text before it: overlong runs of combining marks continue on a dotted circle, so that
 * none is lost.
 */
export function visibleText(text: string, before = ""): string {
  const end = before.slice(-31);
  return `${end}${text}`.replace(endlessMarks, "$1\u25cc").slice(end.length);
}
