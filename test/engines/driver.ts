/** What drives a browser: the commands of WebDriver, and what each browser does in a way of its own. */

import { setTimeout as pause } from "node:timers/promises";
import { DEADLINE_MS } from "../support/deadline.ts";

/** Commands of WebDriver, by the names that Marionette gives them, and the HTTP requests of a session that they are. */
export const COMMANDS = {
  CloseWindow: ["DELETE", "window"],
  ExecuteScript: ["POST", "execute/sync"],
  GetComputedRole: ["GET", "element/{id}/computedrole"],
  GetWindowHandle: ["GET", "window"],
  NewWindow: ["POST", "window/new"],
  Navigate: ["POST", "url"],
  PerformActions: ["POST", "actions"],
  Refresh: ["POST", "refresh"],
  ReleaseActions: ["DELETE", "actions"],
  SetWindowRect: ["POST", "window/rect"],
  SwitchToWindow: ["POST", "window"],
} as const;

export interface Driver {
  /** Sends a command; its value. */
  send(command: keyof typeof COMMANDS, parameters?: object): Promise<unknown>;
  /** Gives the page this many pixels, or no more than this. */
  resize(width: number, height: number): Promise<void>;
  /** Searches the page as Ctrl+F does, which scrolls to what it finds, until that has been seen. */
  find(text: string, seen: () => Promise<unknown>): Promise<void>;
  /** What the browser has printed of errors in pages. */
  readonly complaints: string[];
  close(): Promise<void>;
}

/** These browsers search and scroll slowly while other work takes the machine, as in `.ci/run`. */
const PATIENCE_MS = 3 * DEADLINE_MS;

/** Asks again and again until the answer is truthy, and resolves with it. */
export async function until<Value>(what: string, ask: () => Value | Promise<Value>): Promise<NonNullable<Value>> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const value = await ask();
    if (value) return value;
    if (performance.now() > deadline) throw new Error(`${what}: not within ${PATIENCE_MS} ms`);
    await pause(15);
  }
}
