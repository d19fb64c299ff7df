/** A model that would talk for ever: for showing who holds it back. */

import { setImmediate as nextTurn } from "node:timers/promises";
import { say, type Turn, wait } from "./scripted-provider.ts";
import type { TestServer } from "./start-server.ts";

export interface EndlessTurn {
  turn: Turn;
  /** How many pieces of 64 KiB were taken from the model so far. */
  taken(): number;
}

/** Far more than any buffer between server and client holds: a run that nothing holds back ends here. */
const PIECES = 4000;

export function endlessTurn(): EndlessTurn {
  const piece = say("x".repeat(64 * 1024));
  let taken = 0;
  const turn = (function* () {
    while (taken < PIECES) {
      taken++;
      yield piece;
      // As a real model does, it lets the process do other things in between.
      yield wait(nextTurn());
    }
  })();
  return { turn, taken: () => taken };
}

/** The figure, once it has stopped growing while the server answered twenty other requests. */
export async function settled(figure: () => number, { url }: TestServer): Promise<number> {
  for (;;) {
    const before = figure();
    for (let round = 0; round < 20; round++) await (await fetch(`${url}/health`)).text();
    if (before > 0 && figure() === before) return before;
  }
}
