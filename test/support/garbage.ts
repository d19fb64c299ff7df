import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

/** Collects what nothing holds, twice: what is freed after a turn of the event loop goes in the second round. */
export async function collectGarbage(): Promise<void> {
  for (let round = 0; round < 2; round++) {
    collect();
    await nextTurn();
  }
}
