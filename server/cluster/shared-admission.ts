import { aborted } from "../agent/run-abort.ts";
import type { LargeBodies } from "../http/body.ts";
import type { Caller } from "../http/caller.ts";
import { once } from "../limits/admission.ts";
import type { AdmissionControl, Release } from "../limits/admission-control.ts";
import { addressGroup } from "../limits/client-address.ts";
import { FrameMeter } from "../limits/frame-meter.ts";
import type { Limits } from "../limits/limits.ts";
import type { PrimaryApi, WorkerApi } from "./apis.ts";
import type { Peer } from "./peer.ts";

type ToPrimary = Pick<Peer<PrimaryApi, WorkerApi>, "call" | "cast">;

/** Limits as one worker of several sees them: counted in the primary process. */
export class SharedAdmission implements AdmissionControl, LargeBodies {
  readonly #primary: ToPrimary;
  readonly #limits: () => Limits;
  #lastHold = 0;
  /** The same for all sockets. */
  readonly #framesPerSocket = () => this.#limits().rates.framesPerSocket;

  constructor(primary: ToPrimary, limits: () => Limits) {
    this.#primary = primary;
    this.#limits = limits;
  }

  async rightKey(address: string): Promise<void> {
    if (this.#countsKeys) await this.#primary.call("rightKey", { address });
  }

  async wrongKey(address: string): Promise<void> {
    if (this.#countsKeys) await this.#primary.call("wrongKey", { address });
  }

  async message(caller: Caller): Promise<void> {
    if (caller.keyId === undefined && addressGroup(caller.address) === undefined) return;
    await this.#primary.call("message", { caller });
  }

  /** As `Admission.enter`; as `LargeBodies.enter` where it is given an address. */
  enter(who: Caller | string, signal: AbortSignal): Promise<Release> {
    return this.#take(
      (hold) =>
        typeof who === "string"
          ? this.#primary.call("enterLarge", { hold, address: who })
          : this.#primary.call("enterRun", { hold, caller: who }),
      signal,
    );
  }

  socket(caller: Caller): Promise<Release> {
    return this.#take((hold) => this.#primary.call("enterSocket", { hold, caller }));
  }

  /** One socket is one worker's. */
  frames(): FrameMeter {
    return new FrameMeter(this.#framesPerSocket);
  }

  /** The primary process sends away whoever waits there. */
  close(): void {}

  get #countsKeys(): boolean {
    return this.#limits().rates.wrongKeysPerAddress > 0;
  }

  async #take(ask: (hold: number) => Promise<void>, signal?: AbortSignal): Promise<Release> {
    signal?.throwIfAborted();
    const hold = ++this.#lastHold;
    // Also takes back what is asked for and not yet given.
    const release = once(() => this.#primary.cast("release", { hold }));
    const leaving = signal && aborted(signal);
    try {
      const asked = ask(hold);
      await (leaving === undefined ? asked : Promise.race([asked, leaving.promise]));
      return release;
    } catch (error) {
      release();
      throw error;
    } finally {
      leaving?.forget();
    }
  }
}
