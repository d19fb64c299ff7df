import { setImmediate as nextTurn } from "node:timers/promises";

/** What has something to do between the start and the first who needs it. */
export interface Preparable {
  prepare?: (() => unknown) | undefined;
}

/** Each in a turn of its own, so that who comes meanwhile waits for one of them only. */
export async function prepareAll(parts: readonly Preparable[]): Promise<void> {
  for (const part of parts) {
    await part.prepare?.();
    await nextTurn();
  }
}
