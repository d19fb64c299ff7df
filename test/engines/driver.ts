/** Drives a browser: WebDriver's commands, and actions that differ between browsers. */

import { setTimeout as pause } from "node:timers/promises";
import { DEADLINE_MS } from "../support/deadline.ts";

/** WebDriver commands by Marionette's names, with the corresponding HTTP requests of a session. */
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
  /** Sends a command; resolves with its value. */
  send(command: keyof typeof COMMANDS, parameters?: object): Promise<unknown>;
  /** Resizes the page to these pixels, or as close as possible. */
  resize(width: number, height: number): Promise<void>;
  /** Searches the page like Ctrl+F, which scrolls to the match, until `seen` resolves. */
  find(text: string, seen: () => Promise<unknown>): Promise<void>;
  /** Errors of pages that the browser has printed. */
  readonly complaints: string[];
  close(): Promise<void>;
}

/** These browsers search and scroll slowly on a busy machine, as in `.ci/run`. */
const PATIENCE_MS = 3 * DEADLINE_MS;

/** Repeats `ask` until its result is truthy, and resolves with that. */
export async function until<Value>(what: string, ask: () => Value | Promise<Value>): Promise<NonNullable<Value>> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const value = await ask();
    if (value) return value;
    if (performance.now() > deadline) throw new Error(`${what}: not within ${PATIENCE_MS} ms`);
    await pause(15);
  }
}
