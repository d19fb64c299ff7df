/** Parts that cannot be loaded, and why: the chats of the page say it. */

/** On the window, when that has changed. */
export const MISSING_PARTS = "agent-chat-missing-parts";

/** So many failures in a row, with a network, are no accident. */
const BLOCKED_AFTER = 3;

/** What takes longer says nothing. */
const ANSWERS_WITHIN_MS = 10_000;

class MissingParts {
  /** The file that this code came from, where its name says what is in it: it is gone as soon as another one is built. */
  ownFile = "";
  #isGone = false;
  #isDismissed = false;
  readonly #blocked = new Set<object>();

  /** `gone`: the page has another build by now. `blocked`: something else keeps files away, or a file is broken. */
  get why(): "gone" | "blocked" | undefined {
    if (this.#isGone) return "gone";
    return this.#blocked.size > 0 && !this.#isDismissed ? "blocked" : undefined;
  }

  /**
   * A file could not be loaded, so many times in a row. `url`: its address, where the browser has said it. Resolves with
   * whether it is gone.
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

  /** The person has read that something is blocked. */
  dismiss(): void {
    this.#isDismissed = true;
    this.#changed();
  }

  #changed(): void {
    dispatchEvent(new Event(MISSING_PARTS));
  }
}

export const missingParts = new MissingParts();

/** Many sites answer with a page for what they do not have. */
async function isGoneFrom(url: string): Promise<boolean> {
  try {
    const { ok, status, headers } = await fetch(url, { signal: AbortSignal.timeout(ANSWERS_WITHIN_MS) });
    return ok ? !/script/.test(`${headers.get("content-type")}`) : status < 500 && status !== 429;
  } catch {
    return false;
  }
}
