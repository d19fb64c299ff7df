import type { ReactiveController } from "lit";
import type { ChatPart } from "../chat-part.ts";

/** How long a part stays open after its end, so that people see that it has ended. */
const LINGERS_FOR_MS = 1_000;

let count = 0;

/** Whether a part that opens and closes is open: as the user has chosen, or else as the page has set it. */
export class Disclosure implements ReactiveController {
  /** Id of the element that is opened, unique in the document. */
  readonly bodyId = `agent-chat-body-${++count}`;
  readonly #host: ChatPart;
  readonly #isRunning: () => boolean;
  /** The user's choice. */
  #chosen: boolean | undefined;
  #wasRunning = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `isRunning` says whether the step that the part shows is still running. */
  constructor(host: ChatPart, isRunning: () => boolean) {
    this.#host = host;
    this.#isRunning = isRunning;
    host.addController(this);
  }

  /** Whether the step is running or has just ended. */
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
    // A part in use must not close by itself: that would lose the focus, or make a press on its row reopen it.
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
