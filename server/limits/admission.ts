/** Says who must wait or go away: rates and numbers, by key, by address and for the whole process. */

import type { Caller } from "../http/caller.ts";
import { ApiError } from "../protocol/api-error.ts";
import type { AdmissionControl, Release } from "./admission-control.ts";
import { addressGroup, guessGroup } from "./client-address.ts";
import { Counter } from "./counter.ts";
import { FrameMeter, tooOften } from "./frame-meter.ts";
import type { Limits } from "./limits.ts";
import { RateLimiter } from "./rate-limiter.ts";
import { WaitingLine } from "./waiting-line.ts";

/** Seconds until it is worth asking again for what frees itself at no known time. */
const TRY_AGAIN_SECONDS = 2;

export class Admission implements AdmissionControl {
  readonly #limits: () => Limits;
  readonly #rates = new RateLimiter();
  readonly #wrongKeys = new RateLimiter();
  readonly #runs = new Counter();
  readonly #runLine: WaitingLine;
  readonly #sockets = new Counter();
  #openSockets = 0;
  /** The same for all sockets. */
  readonly #framesPerSocket = () => this.#limits().rates.framesPerSocket;

  /** The limits are asked for with each decision, since they can change while the server runs. */
  constructor(limits: () => Limits) {
    this.#limits = limits;
    this.#runLine = new WaitingLine(() => {
      const { process: max, queued: maxWaiting, queueMs: waitMs } = this.#limits().runs;
      return { max, maxWaiting, waitMs };
    });
  }

  /** For a right key, or none. @throws ApiError `rate_limited` after too many wrong ones. */
  rightKey(address: string): void {
    const { wrongKeysPerAddress } = this.#limits().rates;
    refuseGuesses(this.#wrongKeys.peek(guessGroup(address), wrongKeysPerAddress));
  }

  /** Counts a key that is wrong. @throws ApiError `rate_limited` after too many. */
  wrongKey(address: string): void {
    const { wrongKeysPerAddress } = this.#limits().rates;
    refuseGuesses(this.#wrongKeys.take(guessGroup(address), wrongKeysPerAddress));
  }

  /** Counts a chat message of this caller. @throws ApiError `rate_limited` */
  message(caller: Caller): void {
    const { perKey, perAddress, widgetPerAddress } = this.#limits().rates;
    const group = addressGroup(caller.address);
    const ofAddress = caller.kind === "widget" ? widgetPerAddress : perAddress;
    const counted = [
      ...(caller.keyId === undefined ? [] : [[`key ${caller.keyId}`, perKey] as const]),
      ...(group === undefined ? [] : [[addressId(caller, group), ofAddress] as const]),
    ];
    // Both are asked before one is taken from: a refused message costs nothing.
    const wait = Math.max(0, ...counted.map(([id, rate]) => this.#rates.peek(id, rate)));
    if (wait > 0) throw tooOften("Too many messages were sent. Please wait a little.", wait);
    for (const [id, rate] of counted) this.#rates.take(id, rate);
  }

  /**
   * Waits until one more answer may run, and counts it until it is released.
   * @throws ApiError `rate_limited` for a caller whose own share is used up, `overloaded` for a full process.
   */
  async enter(caller: Caller, signal: AbortSignal): Promise<Release> {
    const { perKey, perAddress, widgetPerAddress } = this.#limits().runs;
    const group = addressGroup(caller.address);
    const key = caller.keyId && `key ${caller.keyId}`;
    const address = group && addressId(caller, group);
    const ofAddress = caller.kind === "widget" ? widgetPerAddress : perAddress;
    if (this.#runs.isFull(key, perKey) || this.#runs.isFull(address, ofAddress)) {
      throw new ApiError("rate_limited", "Too many answers are running for you already.", {
        retryAfter: TRY_AGAIN_SECONDS,
      });
    }
    const ids = [key, address].filter((id) => id !== undefined);
    for (const id of ids) this.#runs.add(id);
    const forget = once(() => {
      for (const id of ids) this.#runs.remove(id);
    });
    try {
      const leave = await this.#runLine.enter(signal);
      return once(() => {
        leave();
        forget();
      });
    } catch (error) {
      forget();
      throw error;
    }
  }

  /** Counts a socket until it is released. @throws ApiError `rate_limited` or `overloaded` */
  socket(caller: Caller): Release {
    const { process: max, perAddress } = this.#limits().sockets;
    const group = addressGroup(caller.address);
    if (max > 0 && this.#openSockets >= max) {
      throw new ApiError("overloaded", "The server has too many connections. Please try again.", {
        retryAfter: TRY_AGAIN_SECONDS,
      });
    }
    if (this.#sockets.isFull(group, perAddress)) {
      throw new ApiError("rate_limited", "Too many connections are open from this address.", {
        retryAfter: TRY_AGAIN_SECONDS,
      });
    }
    this.#openSockets++;
    if (group !== undefined) this.#sockets.add(group);
    return once(() => {
      this.#openSockets--;
      if (group !== undefined) this.#sockets.remove(group);
    });
  }

  /** Meters the frames of one socket. */
  frames(): FrameMeter {
    return new FrameMeter(this.#framesPerSocket);
  }

  /** What is in use, for the operator. */
  get inUse(): { runs: number; queued: number; sockets: number } {
    const { inside: runs, waiting: queued } = this.#runLine;
    return { runs, queued, sockets: this.#openSockets };
  }

  /** Sends away whoever waits for a run. */
  close(): void {
    const stopping = "The server is stopping. Please try again.";
    this.#runLine.refuseAll(new ApiError("shutting_down", stopping, { retryAfter: 1 }));
  }
}

function refuseGuesses(wait: number): void {
  if (wait > 0) throw tooOften("Too many wrong keys came from this address.", wait);
}

/** With a widget key an address is counted for itself, since another limit is meant for it. */
function addressId({ kind }: Caller, group: string): string {
  return `${kind === "widget" ? "widget" : "address"} ${group}`;
}

/** Lets a release be called more than once. */
export function once(release: () => void): Release {
  let released = false;
  return () => {
    if (released) return;
    released = true;
    release();
  };
}
