/** Parts that cannot be loaded, and why. The chats of the page show it. */

/** Event on the window when that has changed. */
export const MISSING_PARTS = "agent-chat-missing-parts";

/** Number of failures in a row, while online, after which a part counts as blocked. */
const BLOCKED_AFTER = 3;

/** A response that takes longer proves nothing. */
const ANSWERS_WITHIN_MS = 10_000;

class MissingParts {
  /** The address of the file with this code, if its name contains a hash: the next build replaces such a file. */
  ownFile = "";
  #isGone = false;
  #isDismissed = false;
  readonly #blocked = new Set<object>();

  /** `gone`: there is another build by now. `blocked`: something else blocks files, or a file is broken. */
  get why(): "gone" | "blocked" | undefined {
    if (this.#isGone) return "gone";
    return this.#blocked.size > 0 && !this.#isDismissed ? "blocked" : undefined;
  }

  /**
   * To be called when a file could not be loaded, `failures` times in a row. `url`: its address, if the browser has
   * named it. Resolves with whether it is gone.
   */
  async failed(part: object, failures: number, url = this.ownFile): Promise<boolean> {
    const isGone = url !== "" && (await isGoneFrom(url));
    this.#isGone ||= isGone;
    if (isGone) this.#changed();
    else if (failures >= BLOCKED_AFTER) this.block(part);
    return isGone;
  }

  block(part: object): void {
    this.#blocked.add(part);
    this.#changed();
  }

  loaded(part: object): void {
    if (this.#blocked.delete(part)) this.#changed();
  }

  /** The user has read that something is blocked. */
  dismiss(): void {
    this.#isDismissed = true;
    this.#changed();
  }

  #changed(): void {
    dispatchEvent(new Event(MISSING_PARTS));
  }
}

export const missingParts = new MissingParts();

/** Many sites respond with an HTML page if a file is missing. */
async function isGoneFrom(url: string): Promise<boolean> {
  try {
    const { ok, status, headers } = await fetch(url, { signal: AbortSignal.timeout(ANSWERS_WITHIN_MS) });
    return ok ? !/script/.test(`${headers.get("content-type")}`) : status < 500 && status !== 429;
  } catch {
    return false;
  }
}
