import type { place } from "../markdown/open-block.ts";
import type { partAt } from "../markdown/table-rows.ts";

/** What the script lends. */
export interface RowTools {
  readonly place: typeof place;
  readonly partAt: typeof partAt;
}

/** Makes a table that goes on equal to one drawn from the rest of its source, behind the rows that are final. */
export function adoptRows(
  live: HTMLTableElement,
  fresh: HTMLTableElement,
  from: number,
  { place, partAt }: RowTools,
): void {
  let index = from;
  const [freshHead, ...rows] = fresh.rows;
  // The head does not grow, but a definition may come that its text refers to.
  if (live.tHead && freshHead) place(live.tHead, live.tHead.childNodes[0], freshHead, []);
  for (const row of rows) {
    place(live, partAt(live, index), row, []);
    index += 1;
  }
  while (partAt(live, index)) dropRow(live);
}

/** Takes away the last row, and the body that it leaves empty. */
function dropRow({ lastChild: body }: HTMLTableElement): void {
  body?.lastChild?.remove();
  if (!body?.firstChild) body?.remove();
}
