import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

/** Collects garbage twice: the second round collects what is released only after a turn of the event loop. */
export async function collectGarbage(): Promise<void> {
  for (let round = 0; round < 2; round++) {
    collect();
    await nextTurn();
  }
}
