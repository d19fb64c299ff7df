import type { LitElement, ReactiveController } from "lit";
import type { Place } from "../../conversations/tab-slot.ts";
import { revealWritten } from "../controls.ts";
import type { MessageElement } from "../message.ts";

/**
 * The reader's place in the conversation.
 *
 * - `anchored`: the last exchange stands at the top, and the answer grows below it. Nothing moves.
 * - `following`: the end of the text stays in view.
 * - `free`: the reader went somewhere else. Nothing moves.
 */
type ReadingMode = "anchored" | "following" | "free";

/** Nearer to the end than this counts as being there, in pixels. */
const AT_END = 32;

/** Between the header and a new message, in pixels. Of that, the message has 6 as its own padding (`message.css`). */
const ANCHOR_GAP = 16 - 6;

/** How much of a question that takes half of the view stays in view above its answer, in pixels: three lines. */
const QUESTION_REST = 78;

/** Lower than this a view has no room for a question, and the answer's first line stands at its top. */
const LOW_VIEW = 3 * QUESTION_REST;

/** What a place is found again by. Steps are none: they open and close by themselves. */
const BLOCK = ".message > .markdown > :not(.section), .message > .markdown > .section > *, .bubble";

/** Where the first block in view is looked for, below the scroller's top: between two of them there is a gap. */
const LOOK_AT = [4, 20, 36, 52, 84];

/** Browsers scroll smoothly in less time than that. */
const LONGEST_GLIDE_MS = 1_000;

/** Keys that scroll up; the space bar does with Shift. */
const UPWARD_KEYS = /^(ArrowUp|PageUp|Home)$/;

export class ScrollPosition implements ReactiveController {
  /** Whether there is more below what is in view: a way to the end is shown. */
  isAway = false;
  /** Whether what is answered is a question that was pending, and the reader is still above it. */
  isNextUnseen = false;
  readonly #host: LitElement;
  readonly #resize = new ResizeObserver(() => this.#contentChanged());
  #scroller: HTMLElement | null = null;
  #listeners = new AbortController();
  #mode: ReadingMode = "following";
  /** Whether a conversation is shown, and not its greeting. */
  #hasText = false;
  /** The exchange that was moved to the top last. */
  #anchor: HTMLElement | undefined;
  /** Where it stands, below the scroller's top: less than 0 when only the end of its question is in view. */
  #anchorTop = 0;
  /** Until then it may be on its way there, as `performance.now()` says the time. */
  #arrivesBy = 0;
  /** The last known position, also after our own writes: a scroll event with another one is the reader's. */
  #top = 0;
  /** The first block in view, and how much of it is above the view. */
  #held: { readonly block: Element; readonly part: number } | undefined;
  /** Where an earlier page load was left, until the view stands there, or the reader does something. */
  #wanted: Place | undefined;
  #width = 0;
  #height = 0;
  /** What the reader presses, to click, drag or select: text must not move under the pointer. */
  #pressed: EventTarget | null = null;
  /** The next change of size was asked for by the reader. */
  #isHolding = false;

  constructor(host: LitElement) {
    this.#host = host;
    host.addController(this);
  }

  hostUpdated(): void {
    // An element is also drawn after it was removed, for example when its answer ends by that.
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
   * Moves the last exchange to the top. To be called once it has been drawn; it glides there from where it was in view.
   */
  anchorLastExchange({ glides = true } = {}): void {
    const exchanges = this.#scroller?.querySelectorAll<HTMLElement>(".exchange") ?? [];
    const exchange = exchanges[exchanges.length - 1];
    if (!this.#scroller?.clientHeight || !exchange) {
      // A chat that is not shown has no place to keep: its end is shown when it is opened.
      this.follow();
      return;
    }
    const { clientHeight } = this.#scroller;
    const question = bottomOf(exchange.querySelector("agent-chat-message")) - exchange.getBoundingClientRect().top;
    const hidden = clientHeight < LOW_VIEW ? question : question > clientHeight / 2 ? question - QUESTION_REST : 0;
    exchange.style.setProperty("--_hidden", `${hidden}px`);
    // The first message comes into an empty view: nothing was there to be moved.
    this.#anchorAt(exchange, ANCHOR_GAP - hidden, glides && exchanges.length > 1 ? "smooth" : "instant");
    this.#arrivesBy = this.#isInPlace ? 0 : performance.now() + LONGEST_GLIDE_MS;
    this.#checkEnd();
  }

  /** Where the exchange of a message stands, below the scroller's top. */
  topOf(id: string): number {
    return this.#topOf(this.#elementOf(id)?.closest(".exchange"));
  }

  /** Has the exchange of a message stand there, whatever comes below it. */
  keepAt(top: number, id: string): void {
    const exchange = this.#elementOf(id)?.closest<HTMLElement>(".exchange");
    if (!exchange) return;
    this.#anchorAt(exchange, top, "instant");
    // What follows may be shorter than what was scrolled past.
    this.#anchorTop = this.#topOf(exchange);
    this.#arrivesBy = 0;
    this.#remember();
    this.#checkEnd();
  }

  #anchorAt(exchange: HTMLElement, top: number, behavior: ScrollBehavior): void {
    this.#wanted = undefined;
    // It makes the room that the exchange needs to stand there.
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

  /** Where the reader is, to be found again after a reload; absent at the end. */
  get place(): Place | undefined {
    if (this.#wanted || this.#mode === "following") return this.#wanted;
    this.#remember();
    const message = this.#held?.block.closest<MessageElement>("agent-chat-message");
    if (!this.#held || !message) return undefined;
    const { block, part } = this.#held;
    return { message: message.message.id, block: [...message.querySelectorAll(BLOCK)].indexOf(block), part };
  }

  /** Goes where an earlier page load was left, as soon as that has been drawn. */
  returnTo(place: Place): void {
    this.#wanted = place;
    this.#findWanted();
  }

  /** Stays where it is over the next change of size, which the reader has asked for. */
  hold(): void {
    this.#isHolding = true;
    // A row that was opened may have had no room to take.
    requestAnimationFrame(() => requestAnimationFrame(() => this.#endHold()));
  }

  #observe(scroller: HTMLElement | null): void {
    this.#listeners.abort();
    this.#resize.disconnect();
    this.#scroller = scroller;
    if (!scroller) return;
    // A chat that was moved in the page has lost its place, and the reader did not do it.
    if (this.#mode === "free") scroller.scrollTop = this.#top;
    this.#top = scroller.scrollTop;
    this.#listeners = new AbortController();
    const options = { signal: this.#listeners.signal, passive: true };
    scroller.addEventListener("scroll", () => this.#scrolled(), options);
    // A wheel turned upward says it before the scroll event does: the next token must not win the race.
    scroller.addEventListener("wheel", ({ deltaY }) => this.#leave(deltaY < 0), options);
    scroller.addEventListener(
      "keydown",
      ({ key, shiftKey }) => this.#leave(UPWARD_KEYS.test(key) || (key === " " && shiftKey)),
      options,
    );
    // A person who selects text reads it: it must not move away with the selection.
    for (const type of ["touchmove", "selectstart"]) scroller.addEventListener(type, () => this.#leave(true), options);
    // Parts of an answer that open say so.
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
    // After the click that comes of it.
    if (!target) setTimeout(() => this.#checkEnd());
  }

  /** The reader takes over. Scrolling downward at the end goes on following it. */
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
      // Upward means away, even near the end; a position exactly there is only content that became shorter, or the first
      // pixel of a slow wheel. Downward never means away: the browser itself scrolls so when something above grows, such
      // as a picture.
      const distance = this.#distanceToEnd();
      if (isUpward && distance > 1) this.#mode = "free";
      else if (!isUpward && distance <= AT_END) this.#mode = "following";
    }
    this.#remember();
    this.#checkEnd();
  }

  /** Before the next change of width, which moves all text: browsers hold a place only when something above it grows. */
  #remember(): void {
    const scroller = this.#scroller;
    if (!scroller || this.#mode === "following") return;
    const { left, top, width } = scroller.getBoundingClientRect();
    const root = scroller.getRootNode() as ShadowRoot;
    const hits = LOOK_AT.map((y) => root.elementFromPoint(left + width / 2, top + y));
    // Beside a short question, and on steps, it is the first block of their message.
    const block =
      firstOf(hits, (hit) => hit.closest(BLOCK)) ??
      firstOf(hits, (hit) => hit.closest("agent-chat-message")?.querySelector(BLOCK));
    const box = block?.getBoundingClientRect();
    this.#held = block && box && { block, part: (top - box.top) / box.height };
  }

  #goTo(block: Element, part: number): void {
    this.#scrollTo((this.#scroller?.scrollTop ?? 0) + this.#offsetOf(block, part), "instant");
  }

  /** How far such a part of the block is below the scroller's top. */
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
    // A chat that is not shown stands nowhere.
    if (!wanted || !this.#scroller?.clientHeight) return;
    const block = this.#elementOf(wanted.message)?.querySelectorAll(BLOCK)[wanted.block];
    if (!block) return;
    this.#mode = "free";
    this.#goTo(block, wanted.part);
    const exchange = block.closest<HTMLElement>(".exchange:last-child");
    const missing = this.#offsetOf(block, wanted.part);
    if (exchange && missing > 1) {
      // It stood above room of its own: see `anchorLastExchange`.
      exchange.style.setProperty("--_hidden", `${ANCHOR_GAP - this.#topOf(exchange) + missing}px`);
      exchange.classList.add("anchored");
      this.#goTo(block, wanted.part);
    }
    // While what stands below it is not drawn yet, the end is as near as the view gets.
    if (Math.abs(this.#offsetOf(block, wanted.part)) <= 1) this.#wanted = undefined;
    this.#remember();
    this.#checkEnd();
  }

  /** The reader has scrolled, unless the exchange is on its way, or the browser has held its place. */
  #scrolledAnchored(): void {
    if (this.#isInPlace) this.#arrivesBy = 0;
    else if (!this.#isMoving) this.#mode = this.#distanceToEnd() <= AT_END ? "following" : "free";
  }

  #contentChanged(): void {
    const scroller = this.#scroller;
    // Where everything is in view, no scroll event says that the end is.
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
    // A keyboard has come, which must not cover what is being written.
    if (scroller && height < this.#height) revealWritten(scroller);
    this.#height = height;
    this.#checkEnd();
  }

  #followEnd(): void {
    const scroller = this.#scroller;
    // A greeting is read from its start.
    if (!scroller || this.#pressed || !this.#hasText) return;
    if (isVisited(scroller)) {
      if (this.#distanceToEnd() > AT_END) this.#mode = "free";
      return;
    }
    this.#scrollTo(scroller.scrollHeight, "instant");
  }

  /** Something above it has another height, and the browser has not kept the place itself. */
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
    // Not `scrollTo`, of which Prototype.js and MooTools make something else.
    this.#scroller?.scroll({ top, behavior: isCalm ? "instant" : behavior });
    this.#top = this.#scroller?.scrollTop ?? 0;
  }

  #distanceToEnd(): number {
    const { scrollHeight = 0, scrollTop = 0, clientHeight = 0 } = this.#scroller ?? {};
    return scrollHeight - scrollTop - clientHeight;
  }

  /**
   * Browsers hold the place when something above it grows (scroll anchoring). Not where this class does, nor under a pointer that
   * selects: Chrome may take the growth of a text at the end of the view for a move, and goes along with it.
   */
  #checkAnchoring(): void {
    const isOurs = this.#mode === "following" || this.#pressed;
    if (this.#scroller) this.#scroller.style.overflowAnchor = isOurs ? "none" : "";
  }

  #checkEnd(): void {
    this.#checkAnchoring();
    // The button would cover what is pressed. Of a scrollbar, not every browser says that it was let go.
    if (this.#pressed && this.#pressed !== this.#scroller) return;
    const wasAway = this.isAway;
    // The scroller may end with empty room behind the last message.
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

/** Whether the keyboard's focus stands on something in the text. It must not move away from there. */
function isVisited(scroller: HTMLElement): boolean {
  const focused = (scroller.getRootNode() as ShadowRoot).activeElement;
  return !!focused?.matches(":focus-visible") && focused !== scroller && scroller.contains(focused);
}
