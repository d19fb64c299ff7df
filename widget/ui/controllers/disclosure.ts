import type { ReactiveController } from "lit";
import type { ChatPart } from "../chat-part.ts";

/** How long it stays open after its end: long enough to see that it has ended. */
const LINGERS_FOR_MS = 1_000;

let count = 0;

/** Whether a part that opens and closes is open: as the person has chosen, and until then as the page wants it. */
export class Disclosure implements ReactiveController {
  /** Id of the element that is opened. No other one in the document has it. */
  readonly bodyId = `agent-chat-body-${++count}`;
  readonly #host: ChatPart;
  readonly #isRunning: () => boolean;
  /** The person's choice. */
  #chosen: boolean | undefined;
  #wasRunning = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `isRunning` says whether what the part shows goes on. */
  constructor(host: ChatPart, isRunning: () => boolean) {
    this.#host = host;
    this.#isRunning = isRunning;
    host.addController(this);
  }

  /** Whether it goes on, or has just ended. */
  get isActive(): boolean {
    return this.#wasRunning || this.#timer !== undefined;
  }

  hostUpdate(): void {
    const isRunning = this.#isRunning();
    if (isRunning) this.#stopLingering();
    else if (this.#wasRunning) this.#timer = setTimeout(() => this.#lingered(), LINGERS_FOR_MS);
    this.#wasRunning = isRunning;
  }

  hostDisconnected(): void {
    this.#stopLingering();
  }

  isOpen(byDefault: boolean): boolean {
    return this.#chosen ?? byDefault;
  }

  choose(isOpen: boolean): void {
    this.#host.context.actions.holdScroll();
    this.#chosen = isOpen;
    this.#host.requestUpdate();
  }

  #lingered(): void {
    // A part that closes by itself must neither lose the focus nor turn a press on its row into the opposite.
    const used = `#${this.bodyId}:is(:focus-within,:active),[aria-controls=${this.bodyId}]:active`;
    if (this.#host.querySelector(used)) this.choose(true);
    this.#stopLingering();
  }

  #stopLingering(): void {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#host.requestUpdate();
  }
}
