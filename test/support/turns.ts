import { setImmediate as nextTurn } from "node:timers/promises";

/** Lets so many turns of the event loop pass: what one side of this process has written, the other side has read by then. */
export async function turns(count = 10): Promise<void> {
  for (let turn = 0; turn < count; turn++) await nextTurn();
}
