import type { LitElement, ReactiveController } from "lit";
import type { Place } from "../../conversations/tab-slot.ts";
import { revealWritten } from "../controls.ts";
import type { MessageElement } from "../message.ts";

/**
 * The reader's place in the conversation.
 *
 * - `anchored`: the last exchange is at the top, and the answer grows below it. Nothing moves.
 * - `following`: the end of the text stays in view.
 * - `free`: the reader has scrolled elsewhere. Nothing moves.
 */
type ReadingMode = "anchored" | "following" | "free";

/** Positions nearer to the end than this count as the end, in pixels. */
const AT_END = 32;

/** Gap between the header and a new message, in pixels, without the message's own padding of 6 (`message.css`). */
const ANCHOR_GAP = 16 - 6;

/** Height of a question longer than half of the view that stays visible above its answer, in pixels: three lines. */
const QUESTION_REST = 78;

/** A view lower than this, in pixels, has no room for a question: the answer's first line is at its top. */
const LOW_VIEW = 3 * QUESTION_REST;

/** The blocks that a place refers to. Not steps, because they open and close by themselves. */
const BLOCK = ".message > .markdown > :not(.section), .message > .markdown > .section > *, .bubble";

/** Pixels below the scroller's top to probe for the first visible block. Several, as blocks have gaps between them. */
const LOOK_AT = [4, 20, 36, 52, 84];

/** Smooth scrolling of any browser takes less time than this. */
const LONGEST_GLIDE_MS = 1_000;

/** Keys that scroll up, besides Shift and the space bar. */
const UPWARD_KEYS = /^(ArrowUp|PageUp|Home)$/;

export class ScrollPosition implements ReactiveController {
  /** Whether there is more text below the view, so that the button to the end is shown. */
  isAway = false;
  /** Whether a message that was pending is being answered, and the reader is still above it. */
  isNextUnseen = false;
  readonly #host: LitElement;
  readonly #resize = new ResizeObserver(() => this.#contentChanged());
  #scroller: HTMLElement | null = null;
  #listeners = new AbortController();
  #mode: ReadingMode = "following";
  /** Whether messages are shown, rather than the greeting. */
  #hasText = false;
  /** The exchange that was anchored last. */
  #anchor: HTMLElement | undefined;
  /** Its distance from the scroller's top: negative when only the end of its question is in view. */
  #anchorTop = 0;
  /** Until this time (`performance.now()`) a smooth scroll to the anchor may be under way. */
  #arrivesBy = 0;
  /** Last known `scrollTop`, also after our own writes: a scroll event with another one comes from the reader. */
  #top = 0;
  /** The first block in view, and the fraction of it that is above the view. */
  #held: { readonly block: Element; readonly part: number } | undefined;
  /** The place of an earlier page load, until the view is there or the reader does something. */
  #wanted: Place | undefined;
  #width = 0;
  #height = 0;
  /** The target that the reader is pressing, to click, drag or select: text must not move under the pointer. */
  #pressed: EventTarget | null = null;
  /** Whether the reader has caused the next change of size. */
  #isHolding = false;

  constructor(host: LitElement) {
    this.#host = host;
    host.addController(this);
  }

  hostUpdated(): void {
    // An element is also updated after its removal, for example when that ends its answer.
    const scroller = this.#host.isConnected ? this.#host.renderRoot.querySelector<HTMLElement>(".scroller") : null;
    if (scroller !== this.#scroller) this.#observe(scroller);
    // A new conversation shows its greeting from the start.
    const hasText = !!scroller?.querySelector(".exchange");
    if (scroller && this.#hasText && !hasText) {
      this.#wanted = undefined;
      this.#scrollTo(0, "instant");
    }
    this.#hasText = hasText;
  }

  hostDisconnected(): void {
    this.#observe(null);
  }

  /**
   * Moves the last exchange to the top, by smooth scrolling if `glides`. Must be called once it has been drawn.
   */
  anchorLastExchange({ glides = true } = {}): void {
    const exchanges = this.#scroller?.querySelectorAll<HTMLElement>(".exchange") ?? [];
    const exchange = exchanges[exchanges.length - 1];
    if (!this.#scroller?.clientHeight || !exchange) {
      // A hidden chat has no position to keep: it shows its end when it is opened.
      this.follow();
      return;
    }
    const { clientHeight } = this.#scroller;
    const question = bottomOf(exchange.querySelector("agent-chat-message")) - exchange.getBoundingClientRect().top;
    const hidden = clientHeight < LOW_VIEW ? question : question > clientHeight / 2 ? question - QUESTION_REST : 0;
    exchange.style.setProperty("--_hidden", `${hidden}px`);
    // The first message appears in an empty view, so there is nothing to glide.
    this.#anchorAt(exchange, ANCHOR_GAP - hidden, glides && exchanges.length > 1 ? "smooth" : "instant");
    this.#arrivesBy = this.#isInPlace ? 0 : performance.now() + LONGEST_GLIDE_MS;
    this.#checkEnd();
  }

  /** Distance of a message's exchange from the scroller's top, in pixels. */
  topOf(id: string): number {
    return this.#topOf(this.#elementOf(id)?.closest(".exchange"));
  }

  /** Anchors the exchange of a message at this distance from the scroller's top, whatever follows it. */
  keepAt(top: number, id: string): void {
    const exchange = this.#elementOf(id)?.closest<HTMLElement>(".exchange");
    if (!exchange) return;
    this.#anchorAt(exchange, top, "instant");
    // The conversation may now be too short to scroll that far.
    this.#anchorTop = this.#topOf(exchange);
    this.#arrivesBy = 0;
    this.#remember();
    this.#checkEnd();
  }

  #anchorAt(exchange: HTMLElement, top: number, behavior: ScrollBehavior): void {
    this.#wanted = undefined;
    // The class adds the empty space that the exchange needs below it to reach that place.
    this.#scroller?.querySelector(".exchange:last-child")?.classList.add("anchored");
    this.#anchor = exchange;
    this.#anchorTop = top;
    this.#mode = "anchored";
    this.#scrollTo((this.#scroller?.scrollTop ?? 0) + this.#anchorOffset(), behavior);
  }

  #topOf(exchange: Element | null | undefined): number {
    if (!this.#scroller || !exchange?.isConnected) return this.#anchorTop;
    return exchange.getBoundingClientRect().top - this.#scroller.getBoundingClientRect().top;
  }

  /** Goes to the end and stays there. */
  follow(): void {
    this.#mode = "following";
    this.#wanted = undefined;
    this.#followEnd();
    this.#checkEnd();
  }

  /** The reader's place, to return to after a reload; absent at the end. */
  get place(): Place | undefined {
    if (this.#wanted || this.#mode === "following") return this.#wanted;
    this.#remember();
    const message = this.#held?.block.closest<MessageElement>("agent-chat-message");
    if (!this.#held || !message) return undefined;
    const { block, part } = this.#held;
    return { message: message.message.id, block: [...message.querySelectorAll(BLOCK)].indexOf(block), part };
  }

  /** Goes to the place of an earlier page load, as soon as that has been drawn. */
  returnTo(place: Place): void {
    this.#wanted = place;
    this.#findWanted();
  }

  /** Keeps the position over the next change of size, which the reader has caused. */
  hold(): void {
    this.#isHolding = true;
    // Opening a row may change no size, so the hold also ends by itself.
    requestAnimationFrame(() => requestAnimationFrame(() => this.#endHold()));
  }

  #observe(scroller: HTMLElement | null): void {
    this.#listeners.abort();
    this.#resize.disconnect();
    this.#scroller = scroller;
    if (!scroller) return;
    // Moving the element in the page resets the scroll position, which is not the reader's doing.
    if (this.#mode === "free") scroller.scrollTop = this.#top;
    this.#top = scroller.scrollTop;
    this.#listeners = new AbortController();
    const options = { signal: this.#listeners.signal, passive: true };
    scroller.addEventListener("scroll", () => this.#scrolled(), options);
    // The wheel event precedes the scroll event: otherwise the next token could scroll back to the end first.
    scroller.addEventListener("wheel", ({ deltaY }) => this.#leave(deltaY < 0), options);
    scroller.addEventListener(
      "keydown",
      ({ key, shiftKey }) => this.#leave(UPWARD_KEYS.test(key) || (key === " " && shiftKey)),
      options,
    );
    // People who select text are reading it: it must not move away with the selection.
    for (const type of ["touchmove", "selectstart"]) scroller.addEventListener(type, () => this.#leave(true), options);
    // Parts of an answer that open fire `toggle`.
    scroller.addEventListener("toggle", () => this.hold(), options);
    scroller.addEventListener("pointerdown", ({ target }) => this.#press(target), options);
    // Assistive technology clicks without a pointer.
    for (const type of ["pointerdown", "click"])
      scroller.addEventListener(type, () => (this.#wanted = undefined), options);
    for (const end of ["pointerup", "pointercancel"]) {
      window.addEventListener(end, () => this.#press(null), options);
    }
    this.#resize.observe(scroller);
    for (const content of scroller.children) this.#resize.observe(content);
  }

  #press(target: EventTarget | null): void {
    this.#pressed = target;
    this.#checkAnchoring();
    // After the click that follows `pointerup`.
    if (!target) setTimeout(() => this.#checkEnd());
  }

  /** The reader takes over. Scrolling downward at the end keeps following it. */
  #leave(isUpward: boolean): void {
    const scroller = this.#scroller;
    this.#wanted = undefined;
    if (!scroller || scroller.scrollHeight <= scroller.clientHeight) return;
    if (isUpward) this.#mode = "free";
    this.#arrivesBy = 0;
    this.#remember();
    this.#checkEnd();
  }

  #scrolled(): void {
    const scroller = this.#scroller;
    // A hidden chat has no position.
    if (!scroller?.clientHeight || Math.abs(scroller.scrollTop - this.#top) < 1) return;
    this.#wanted = undefined;
    const isUpward = scroller.scrollTop < this.#top;
    this.#top = scroller.scrollTop;
    if (this.#mode === "anchored") this.#scrolledAnchored();
    else {
      // Scrolling up means leaving the end, even near it. A position exactly at the end only means that the content has
      // shrunk, or a slow wheel's first pixel. Scrolling down never means leaving: browsers do it themselves when
      // content above grows, such as a picture.
      const distance = this.#distanceToEnd();
      if (isUpward && distance > 1) this.#mode = "free";
      else if (!isUpward && distance <= AT_END) this.#mode = "following";
    }
    this.#remember();
    this.#checkEnd();
  }

  /** Remembers the first visible block, for a change of width: browsers keep a place only when content above grows. */
  #remember(): void {
    const scroller = this.#scroller;
    if (!scroller || this.#mode === "following") return;
    const { left, top, width } = scroller.getBoundingClientRect();
    const root = scroller.getRootNode() as ShadowRoot;
    const hits = LOOK_AT.map((y) => root.elementFromPoint(left + width / 2, top + y));
    // Where no block is hit, as beside a short question or on steps, use the first block of the message.
    const block =
      firstOf(hits, (hit) => hit.closest(BLOCK)) ??
      firstOf(hits, (hit) => hit.closest("agent-chat-message")?.querySelector(BLOCK));
    const box = block?.getBoundingClientRect();
    this.#held = block && box && { block, part: (top - box.top) / box.height };
  }

  #goTo(block: Element, part: number): void {
    this.#scrollTo((this.#scroller?.scrollTop ?? 0) + this.#offsetOf(block, part), "instant");
  }

  /** Distance of the block's fraction `part` from the scroller's top, in pixels. */
  #offsetOf(block: Element, part: number): number {
    const { top, height } = block.getBoundingClientRect();
    return top - (this.#scroller?.getBoundingClientRect().top ?? 0) + part * height;
  }

  #elementOf(id: string): Element | undefined {
    const messages = this.#scroller?.querySelectorAll<MessageElement>("agent-chat-message") ?? [];
    return [...messages].find(({ message }) => message.id === id);
  }

  #findWanted(): void {
    const wanted = this.#wanted;
    // A hidden chat cannot scroll.
    if (!wanted || !this.#scroller?.clientHeight) return;
    const block = this.#elementOf(wanted.message)?.querySelectorAll(BLOCK)[wanted.block];
    if (!block) return;
    this.#mode = "free";
    this.#goTo(block, wanted.part);
    const exchange = block.closest<HTMLElement>(".exchange:last-child");
    const missing = this.#offsetOf(block, wanted.part);
    if (exchange && missing > 1) {
      // The exchange had empty space below it: see `anchorLastExchange`.
      exchange.style.setProperty("--_hidden", `${ANCHOR_GAP - this.#topOf(exchange) + missing}px`);
      exchange.classList.add("anchored");
      this.#goTo(block, wanted.part);
    }
    // Until the content below is drawn, the view gets no nearer than the end, and keeps trying.
    if (Math.abs(this.#offsetOf(block, wanted.part)) <= 1) this.#wanted = undefined;
    this.#remember();
    this.#checkEnd();
  }

  /** The reader has scrolled, unless a smooth scroll is under way or the browser has kept the exchange in place. */
  #scrolledAnchored(): void {
    if (this.#isInPlace) this.#arrivesBy = 0;
    else if (!this.#isMoving) this.#mode = this.#distanceToEnd() <= AT_END ? "following" : "free";
  }

  #contentChanged(): void {
    const scroller = this.#scroller;
    // If everything fits into the view, no scroll event reports that the end is reached.
    const isAllVisible = scroller?.clientHeight && scroller.scrollHeight <= scroller.clientHeight;
    if (isAllVisible && this.#mode === "free" && !this.#wanted) this.#mode = "following";
    this.#findWanted();
    const width = scroller?.clientWidth ?? 0;
    if (this.#isHolding) this.#endHold();
    else if (this.#mode === "following") this.#followEnd();
    else if (this.#mode === "anchored") this.#keepAnchor();
    else if (width && width !== this.#width && this.#held?.block.isConnected)
      this.#goTo(this.#held.block, this.#held.part);
    if (width) {
      // See `.column` in screen.css.
      scroller?.style.setProperty("--_bars", `${scroller.offsetWidth - width}px`);
      this.#width = width;
    }
    const height = scroller?.clientHeight ?? 0;
    // An on-screen keyboard has opened, which must not cover what is being written.
    if (scroller && height < this.#height) revealWritten(scroller);
    this.#height = height;
    this.#checkEnd();
  }

  #followEnd(): void {
    const scroller = this.#scroller;
    // Without messages there is the greeting, which is read from its start.
    if (!scroller || this.#pressed || !this.#hasText) return;
    if (isVisited(scroller)) {
      if (this.#distanceToEnd() > AT_END) this.#mode = "free";
      return;
    }
    this.#scrollTo(scroller.scrollHeight, "instant");
  }

  /** Restores the anchored place if content above has changed its height and the browser has not done it. */
  #keepAnchor(): void {
    const scroller = this.#scroller;
    const wasScrolled = scroller && Math.abs(scroller.scrollTop - this.#top) >= 1;
    if (!scroller || this.#isMoving || this.#pressed || wasScrolled || this.#isInPlace) return;
    this.#scrollTo(scroller.scrollTop + this.#anchorOffset(), "instant");
  }

  #endHold(): void {
    if (!this.#isHolding) return;
    this.#isHolding = false;
    if (this.#mode !== "anchored") this.#mode = this.#distanceToEnd() <= AT_END ? "following" : "free";
    if (this.#mode === "following") this.#followEnd();
    this.#remember();
    this.#checkEnd();
  }

  get #isMoving(): boolean {
    return performance.now() < this.#arrivesBy;
  }

  get #isInPlace(): boolean {
    return Math.abs(this.#anchorOffset()) <= 1;
  }

  /** How far the anchored exchange is from its place. */
  #anchorOffset(): number {
    return this.#topOf(this.#anchor) - this.#anchorTop;
  }

  #scrollTo(top: number, behavior: ScrollBehavior): void {
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    // Not `scrollTo`, which Prototype.js and MooTools override.
    this.#scroller?.scroll({ top, behavior: isCalm ? "instant" : behavior });
    this.#top = this.#scroller?.scrollTop ?? 0;
  }

  #distanceToEnd(): number {
    const { scrollHeight = 0, scrollTop = 0, clientHeight = 0 } = this.#scroller ?? {};
    return scrollHeight - scrollTop - clientHeight;
  }

  /**
   * Browsers keep the place when content above it grows (scroll anchoring). Off while this class does that, and while a
   * pointer is down: Chrome may take the growth of a text at the end of the view for a move, and scroll with it.
   */
  #checkAnchoring(): void {
    const isOurs = this.#mode === "following" || this.#pressed;
    if (this.#scroller) this.#scroller.style.overflowAnchor = isOurs ? "none" : "";
  }

  #checkEnd(): void {
    this.#checkAnchoring();
    // The button could cover what is pressed. Not the scroller: not every browser reports the release of a scrollbar.
    if (this.#pressed && this.#pressed !== this.#scroller) return;
    const wasAway = this.isAway;
    // Measured at the last message, as the scroller may end with empty space.
    const last = this.#scroller?.firstElementChild?.lastElementChild?.lastElementChild;
    const below = bottomOf(last) - bottomOf(this.#scroller);
    this.isAway = this.#mode !== "following" && below > AT_END && !this.#isMoving;
    if (!this.isAway) this.isNextUnseen = false;
    if (this.isAway !== wasAway) this.#host.requestUpdate();
  }
}

const bottomOf = (element?: Element | null) => element?.getBoundingClientRect().bottom ?? 0;

function firstOf(hits: readonly (Element | null)[], find: (hit: Element) => Element | null | undefined) {
  return hits.map((hit) => hit && find(hit)).find((found) => found) ?? undefined;
}

/** Whether keyboard focus is on something in the text, which must not move away then. */
function isVisited(scroller: HTMLElement): boolean {
  const focused = (scroller.getRootNode() as ShadowRoot).activeElement;
  return !!focused?.matches(":focus-visible") && focused !== scroller && scroller.contains(focused);
}
