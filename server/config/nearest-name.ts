/** Finds the known name that was meant by an unknown one: for settings, and for the fields of an agent. */

/** The known name that differs least from `name`, ignoring case; `undefined` if it differs by more than `most` changes. */
export function nearestName(name: string, known: readonly string[], most: number): string | undefined {
  const upper = name.toUpperCase();
  const distances = known.map((one) => [editDistance(upper, one.toUpperCase()), one] as const);
  const [distance, nearest] = distances.reduce((best, one) => (one[0] < best[0] ? one : best), [Infinity, ""]);
  return distance <= most ? nearest : undefined;
}

/** How many characters have to be changed, added or removed (Levenshtein). */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [index, character] of [...from].entries()) {
    const next = [index + 1];
    for (let at = 1; at <= to.length; at++) {
      const [above = 0, left = 0, diagonal = 0] = [row[at], next[at - 1], row[at - 1]];
      next.push(Math.min(above + 1, left + 1, diagonal + (character === to[at - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
