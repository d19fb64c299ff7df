import type { LargeBodies } from "../http/body.ts";
import type { AdmissionControl, Release } from "../limits/admission-control.ts";
import type { Hold, PrimaryApi } from "./apis.ts";

type DeskApi = Pick<
  PrimaryApi,
  "rightKey" | "wrongKey" | "message" | "enterRun" | "enterSocket" | "enterLarge" | "release"
>;

/**
 * Where one worker asks for what is limited. All is counted in the primary process, so that every limit holds
 * exactly, whichever worker a client reaches; what a worker holds is given back when it ends, however it ends.
 */
export class AdmissionDesk {
  readonly #admission: AdmissionControl;
  readonly #large: LargeBodies;
  readonly #held = new Map<number, Release>();

  constructor(admission: AdmissionControl, large: LargeBodies) {
    this.#admission = admission;
    this.#large = large;
  }

  readonly api: DeskApi = {
    rightKey: ({ address }) => this.#admission.rightKey(address),
    wrongKey: ({ address }) => this.#admission.wrongKey(address),
    message: ({ caller }) => this.#admission.message(caller),
    enterRun: ({ hold, caller }) => this.#hold(hold, (signal) => this.#admission.enter(caller, signal)),
    enterSocket: ({ hold, caller }) => this.#hold(hold, () => this.#admission.socket(caller)),
    enterLarge: ({ hold, address }) => this.#hold(hold, (signal) => this.#large.enter(address, signal)),
    release: ({ hold }) => this.#release(hold),
  };

  /** The worker has ended. */
  releaseAll(): void {
    for (const hold of [...this.#held.keys()]) this.#release(hold);
  }

  async #hold(hold: Hold["hold"], take: (signal: AbortSignal) => Release | Promise<Release>): Promise<void> {
    const givenUp = new AbortController();
    // Until it is had, to release it means to leave the line.
    this.#held.set(hold, () => givenUp.abort());
    try {
      const release = await take(givenUp.signal);
      if (givenUp.signal.aborted) release();
      else this.#held.set(hold, release);
    } catch (error) {
      this.#held.delete(hold);
      throw error;
    }
  }

  #release(hold: number): void {
    const release = this.#held.get(hold);
    this.#held.delete(hold);
    release?.();
  }
}
