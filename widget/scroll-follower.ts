/** Keeps the newest text in view while the reader is at the end, and never otherwise. */

import type { ReactiveController, ReactiveControllerHost } from "lit";

/** Keys that scroll up; the space bar does with Shift. */
const UPWARD = /^(ArrowUp|PageUp|Home)$/;

/** Nearer to the end than this counts as being there. */
const AT_END_PX = 32;

export class ScrollFollower implements ReactiveController {
  readonly #host: ReactiveControllerHost;
  readonly #find: () => HTMLElement | null;
  readonly #resize = new ResizeObserver(() => this.#resized());
  #scroller: HTMLElement | undefined;
  #following = true;
  /** How much there was when the end was last in view. */
  #seen = 0;
  /** The last known scroll position, also after our own writes: what differs is the reader's doing. */
  #top = 0;
  /** The reader drags or selects: text must not move under the pointer. */
  #held = false;
  #listening: AbortController | undefined;

  constructor(host: ReactiveControllerHost, findScroller: () => HTMLElement | null) {
    this.#host = host;
    this.#find = findScroller;
    host.addController(this);
  }

  /** Whether the reader is at the end, so that new text stays in view. */
  get following(): boolean {
    return this.#following;
  }

  /** How many of so many things have come since the reader left the end. */
  missed(count: number): number {
    if (this.#following) this.#seen = count;
    return Math.max(count - this.#seen, 0);
  }

  hostUpdated(): void {
    const scroller = this.#find() ?? undefined;
    if (scroller !== this.#scroller) this.#attach(scroller);
    this.#follow();
  }

  hostDisconnected(): void {
    this.#attach(undefined);
  }

  /** Goes to the end and follows again. */
  jump(): void {
    this.#setFollowing(true);
    this.#follow();
  }

  /** Stays where it is, for a change of size that the reader asked for. */
  hold(): void {
    this.#setFollowing(false);
    // The size changes with the next update; only then it shows whether the end is still in view. A reader who
    // was not at the end has caused no update yet, and there would be nothing to wait for.
    this.#host.requestUpdate();
    this.#host.updateComplete.then(() => this.#setFollowing(this.#fromEnd() <= AT_END_PX));
  }

  #attach(scroller: HTMLElement | undefined): void {
    this.#listening?.abort();
    this.#resize.disconnect();
    this.#scroller = scroller;
    if (!scroller) return;
    this.#listening = new AbortController();
    const options = { signal: this.#listening.signal, passive: true };
    scroller.addEventListener("scroll", () => this.#scrolled(), options);
    scroller.addEventListener("wheel", ({ deltaY }) => deltaY < 0 && this.#leave(), options);
    scroller.addEventListener(
      "keydown",
      ({ key, shiftKey }) => (UPWARD.test(key) || (key === " " && shiftKey)) && this.#leave(),
      options,
    );
    // Whoever selects wants to read, and the text must not move away with the selection.
    for (const type of ["touchmove", "selectstart"]) {
      scroller.addEventListener(type, () => this.#leave(), options);
    }
    // What opens in an answer says so.
    scroller.addEventListener("toggle", () => this.hold(), options);
    scroller.addEventListener("pointerdown", () => this.#hold(), options);
    for (const end of ["pointerup", "pointercancel"]) {
      window.addEventListener(end, () => this.#release(), options);
    }
    this.#resize.observe(scroller);
    for (const child of scroller.children) this.#resize.observe(child);
  }

  /** A wheel turned upward says it before the scroll event does: the next token must not win the race. */
  #leave(): void {
    const scroller = this.#scroller;
    if (scroller && scroller.scrollHeight > scroller.clientHeight) this.#setFollowing(false);
  }

  #hold(): void {
    this.#held = true;
  }

  #release(): void {
    this.#held = false;
  }

  #scrolled(): void {
    const scroller = this.#scroller;
    // One that is told when the chat is hidden already has no position to tell of.
    if (!scroller?.clientHeight || Math.abs(scroller.scrollTop - this.#top) < 1) return;
    const upward = scroller.scrollTop < this.#top;
    this.#top = scroller.scrollTop;
    // Upward means away, even near the end; a position exactly there is only content that became shorter. Downward never
    // means away: the browser itself scrolls so when something above grows, such as a picture that has come.
    const atEnd = this.#fromEnd() <= (upward ? 1 : AT_END_PX);
    if (atEnd || upward) this.#setFollowing(atEnd);
  }

  /** Where everything is in view nobody is away from the end, and no scroll has told so. What is not shown has no height. */
  #resized(): void {
    const scroller = this.#scroller;
    if (scroller?.clientHeight && scroller.scrollHeight <= scroller.clientHeight) {
      this.#setFollowing(true);
    }
    this.#follow();
  }

  #fromEnd(): number {
    const scroller = this.#scroller;
    return scroller ? scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop : 0;
  }

  #follow(): void {
    const scroller = this.#scroller;
    if (!scroller || !this.#following || this.#held) return;
    if (this.#isVisited(scroller)) {
      this.#setFollowing(this.#fromEnd() <= AT_END_PX);
      return;
    }
    scroller.scrollTop = scroller.scrollHeight;
    this.#top = scroller.scrollTop;
  }

  /** Does the keyboard's focus stand on something in the text? It must not move away from there. */
  #isVisited(scroller: HTMLElement): boolean {
    const focused = (scroller.getRootNode() as ShadowRoot).activeElement;
    return !!focused?.matches(":focus-visible") && focused !== scroller && scroller.contains(focused);
  }

  #setFollowing(following: boolean): void {
    if (this.#following === following) return;
    this.#following = following;
    this.#host.requestUpdate();
  }
}
