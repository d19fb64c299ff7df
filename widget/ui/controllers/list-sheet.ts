import type { ReactiveController, ReactiveControllerHost } from "lit";
import { hasTouchKeyboard } from "../controls.ts";

/** From so many pixels on a finger swipes, and in which way is known. */
const SLOP = 16;

/** A swipe over a third of the sheet closes it, and so does a quick one: pixels per millisecond. */
const FAR = 1 / 3;
const QUICK = 0.5;

/** What lies over the chat until it is closed. */
interface SheetHost extends ReactiveControllerHost, HTMLElement {
  readonly isOpen: boolean;
}

/** Not known to TypeScript's library. */
interface CloseWatcher extends EventTarget {
  destroy(): void;
}
declare global {
  var CloseWatcher: (new () => CloseWatcher) | undefined;
}

/**
 * The list of conversations where it lies over the chat: closed by a swipe to the side that it came from, by what goes
 * back on a phone, and where the window becomes wide enough for a column.
 */
export class ListSheet implements ReactiveController {
  readonly #host: SheetHost;
  readonly #toggle: () => void;
  #wasOpen: boolean | undefined;
  #listeners = new AbortController();
  #watcher: CloseWatcher | undefined;
  /** A finger is down: where it came down, and how far the sheet has followed it, if it does. */
  #swipe: { readonly start: PointerEvent; away?: number } | undefined;

  constructor(host: SheetHost, toggle: () => void) {
    this.#host = host;
    this.#toggle = toggle;
    host.addController(this);
    host.addEventListener("pointerdown", this.#down);
    host.addEventListener("pointermove", this.#move);
    for (const type of ["pointerup", "pointercancel"] as const) host.addEventListener(type, this.#up);
  }

  hostConnected(): void {
    this.#listeners = new AbortController();
    const { signal } = this.#listeners;
    matchMedia("(width >= 900px)").addEventListener("change", this.#close, { signal });
    addEventListener("popstate", () => this.#hasEntries && isEntry() !== this.#host.isOpen && this.#toggle(), {
      signal,
    });
    // A keyboard that has come may lie over the row that is renamed.
    const reveal = () => this.#host.querySelector(".list-name")?.scrollIntoView({ block: "nearest" });
    visualViewport?.addEventListener("resize", reveal, { signal });
  }

  hostDisconnected(): void {
    this.#listeners.abort();
    this.#watcher?.destroy();
    if (this.#wasOpen && isEntry()) history.back();
    this.#wasOpen = undefined;
  }

  hostUpdated(): void {
    const { isOpen } = this.#host;
    if (isOpen === this.#wasOpen) return;
    this.#wasOpen = isOpen;
    this.#swipe = undefined;
    this.#place(0);
    this.#watcher?.destroy();
    this.#watcher = undefined;
    if (this.#hasEntries && isOpen !== isEntry()) {
      if (isOpen) history.pushState({ ...history.state, [ENTRY]: true }, "");
      else history.back();
    } else if (isOpen && globalThis.CloseWatcher && hasTouchKeyboard()) {
      this.#watcher = new globalThis.CloseWatcher();
      this.#watcher.addEventListener("close", this.#close);
    }
  }

  /** Whether an entry of the history catches "Back". Those of a site, and of the page around a frame, are not ours. */
  get #hasEntries(): boolean {
    const { host } = this.#host.getRootNode() as ShadowRoot;
    return !globalThis.CloseWatcher && host.hasAttribute("page") && window.top === window;
  }

  readonly #close = (): void => {
    if (this.#host.isOpen) this.#toggle();
  };

  readonly #down = (start: PointerEvent): void => {
    // In a field a finger moves the cursor.
    const swipes = start.pointerType === "touch" && start.isPrimary && !(start.target as Element).matches("input");
    if (swipes && this.#host.isOpen) this.#swipe = { start };
  };

  readonly #move = ({ pointerId, clientX, clientY }: PointerEvent): void => {
    const swipe = this.#swipe;
    if (pointerId !== swipe?.start.pointerId) return;
    const away = (swipe.start.clientX - clientX) * this.#side;
    const across = Math.abs(swipe.start.clientY - clientY);
    if (swipe.away === undefined) {
      if (Math.max(Math.abs(away), across) < SLOP) return;
      // Rows scroll, or the finger goes the other way.
      if (away < across) this.#swipe = undefined;
      if (away < across) return;
      this.#host.setPointerCapture(pointerId);
    }
    swipe.away = Math.max(0, away - SLOP);
    this.#place(swipe.away);
  };

  readonly #up = ({ type, timeStamp, pointerId }: PointerEvent): void => {
    const swipe = this.#swipe;
    if (pointerId !== swipe?.start.pointerId) return;
    this.#swipe = undefined;
    if (swipe.away === undefined) return;
    const isFar = swipe.away > this.#width * FAR || swipe.away / (timeStamp - swipe.start.timeStamp) > QUICK;
    void this.#glide(type === "pointerup" && isFar);
  };

  /** Away, or back to its place. */
  async #glide(isClosing: boolean): Promise<void> {
    const from = this.#frame?.style.translate;
    this.#place(isClosing ? this.#width : 0);
    const translate = [from || "0px", this.#frame?.style.translate || "0px"];
    const duration = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 200;
    await this.#frame?.animate({ translate }, { duration, easing: "ease-out" }).finished.catch(() => {});
    if (isClosing) this.#close();
  }

  #place(away: number): void {
    const backdrop = this.#host.querySelector<HTMLElement>(".list-backdrop");
    if (this.#frame) this.#frame.style.translate = away > 0 ? `${-away * this.#side}px` : "";
    if (backdrop) backdrop.style.opacity = away > 0 ? String(1 - away / this.#width) : "";
  }

  get #frame(): HTMLElement | null {
    return this.#host.querySelector<HTMLElement>(".list");
  }

  get #width(): number {
    return this.#frame?.offsetWidth || 1;
  }

  /** 1 where the sheet comes from the left, else -1. */
  get #side(): number {
    return this.#host.matches(":dir(rtl)") ? -1 : 1;
  }
}

/** In the state of an entry of the history at which the sheet is open. */
const ENTRY = "agent-chat-list";

function isEntry(): boolean {
  return !!history.state?.[ENTRY];
}
