import type { LargeBodies } from "../http/body.ts";
import { addressGroup } from "./client-address.ts";
import { WaitingLine } from "./waiting-line.ts";

/** Large bodies that may wait for their turn. */
const MAX_WAITING = 64;

/** One address may read a quarter of all at once: a client that sends slowly must not keep the others out. */
const SHARE = 4;

/** Bounds the large bodies that are in memory before their messages are read, for the process and per address. */
export class LargeBodyLine implements LargeBodies {
  readonly #process: WaitingLine;
  readonly #addresses = new Map<string, WaitingLine>();
  readonly #limits: { max: number; maxWaiting: number; waitMs: number };

  /** `waitMs`: after this time the request itself would be too late. */
  constructor(max: number, waitMs: number) {
    this.#limits = { max: Math.ceil(max / SHARE), maxWaiting: MAX_WAITING, waitMs };
    this.#process = new WaitingLine(() => ({ ...this.#limits, max }));
  }

  async enter(address: string, signal: AbortSignal): Promise<() => void> {
    const group = addressGroup(address);
    if (group === undefined) return this.#process.enter(signal);
    const line = this.#lineOf(group);
    const leaveLine = await line.enter(signal);
    try {
      const leaveProcess = await this.#process.enter(signal);
      return () => {
        leaveProcess();
        leaveLine();
        this.#forget(group, line);
      };
    } catch (error) {
      leaveLine();
      this.#forget(group, line);
      throw error;
    }
  }

  #lineOf(group: string): WaitingLine {
    const line = this.#addresses.get(group) ?? new WaitingLine(() => this.#limits);
    this.#addresses.set(group, line);
    return line;
  }

  #forget(group: string, line: WaitingLine): void {
    if (line.inside === 0 && line.waiting === 0) this.#addresses.delete(group);
  }
}
