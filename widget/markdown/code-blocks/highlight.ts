/**
 * Colours code. The text is left alone where the browser can paint ranges (CSS Custom Highlight API), so a selection
 * survives and nothing flickers. The names of highlights belong to the whole page: all elements in it share them.
 */

import type { ShjToken } from "@speed-highlight/core/tokenize";
import { tokenizeWith } from "@speed-highlight/core/tokenize";
import { grammars } from "./grammars.ts";

/** Longer code stays plain: colouring it would block the page. */
const MAX_LENGTH = 50_000;

/** Grammars look ahead along a line or across white space, which costs the square of its length. */
const COSTLY = /[^\n]{1000}|\s{200}/;

/** The role of each kind of token. Kinds that are not here keep the colour of the text. */
const ROLES: Partial<Record<ShjToken, string>> = {
  kwd: "keyword",
  section: "keyword",
  str: "string",
  esc: "string",
  num: "number",
  bool: "number",
  cmnt: "comment",
  func: "function",
  class: "type",
  type: "type",
  var: "variable",
  insert: "inserted",
  deleted: "deleted",
  err: "deleted",
};

/** A part of a source that has a colour. */
export interface HighlightSpan {
  readonly role: string;
  readonly start: number;
  readonly end: number;
}

/** The coloured parts of a source; undefined when it is not to be coloured. */
export function spansOf(source: string, grammar: string): HighlightSpan[] | undefined {
  const rules = grammars[grammar];
  if (rules === undefined || source.length > MAX_LENGTH || COSTLY.test(source)) return undefined;
  const spans: HighlightSpan[] = [];
  let end = 0;
  tokenizeWith(
    source,
    rules,
    (text, type) => {
      const start = end;
      end += text.length;
      const role = type && ROLES[type];
      if (role !== undefined && text !== "") spans.push({ role, start, end });
    },
    { languages: grammars },
  );
  return spans;
}

type Ranges = readonly (readonly [role: string, range: StaticRange])[];

/** Grammars of the code that has not been painted since its text has grown. */
const wanted = new WeakMap<Element, string>();

/**
 * The ranges of each painted element. Only of those near view: with each change to the page, browsers do something for
 * each range that they may paint, which with a thousand of them is a frame's work.
 */
const painted = new Map<Element, Ranges>();

/** The ranges of elements far from view. */
const hidden = new WeakMap<Element, Ranges>();

/** Colours the code of an element as soon as it can be seen, again if its text has grown. */
export function highlight(code: HTMLElement, grammar: string): void {
  wanted.set(code, grammar);
  rememberRoot(code.getRootNode());
  observe(code);
}

/** One for each element that scrolls: the margins of the page's own view would be cut off by it. */
const observers = new WeakMap<Element, IntersectionObserver>();

/** Observing an element again reports it again. */
function observe(code: Element): void {
  const scroller = code.closest(".scroller") ?? document.documentElement;
  let observer = observers.get(scroller);
  if (observer === undefined) {
    // Code is coloured before it is scrolled to.
    observer = new IntersectionObserver(look, { root: scroller, rootMargin: "100%" });
    observers.set(scroller, observer);
  }
  observer.unobserve(code);
  observer.observe(code);
}

let isPrinting = false;

function look(entries: readonly IntersectionObserverEntry[]): void {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) paint(target);
    else if (!isPrinting || !target.isConnected) hide(target);
  }
}

function paint(code: Element): void {
  const grammar = wanted.get(code);
  if (grammar === undefined) {
    const ranges = hidden.get(code);
    if (ranges !== undefined) show(code, ranges);
    return;
  }
  wanted.delete(code);
  const spans = spansOf(code.textContent, grammar);
  if (spans === undefined) return;
  if (typeof Highlight === "undefined") wrapSpans(code, spans);
  else paintRanges(code, spans);
}

/** Roots with code, for printing. They are let go with their elements. */
const roots = new Set<WeakRef<Node>>();

function rememberRoot(root: Node): void {
  let isKnown = false;
  for (const ref of roots) {
    const known = ref.deref();
    if (known === undefined) roots.delete(ref);
    isKnown ||= known === root;
  }
  if (!isKnown) roots.add(new WeakRef(root));
}

// On paper everything is near.
addEventListener("beforeprint", () => {
  isPrinting = true;
  for (const ref of roots) {
    const root = ref.deref() as ParentNode | undefined;
    for (const code of root?.querySelectorAll("pre > code") ?? []) paint(code);
  }
});
addEventListener("afterprint", () => {
  isPrinting = false;
  for (const code of painted.keys()) observe(code);
});

/** Chromium paints ranges like selected text there, whatever their colours. */
const forced = matchMedia("(forced-colors: active)");
forced.addEventListener("change", () => {
  for (const name of Object.values(ROLES)) CSS.highlights?.delete(`agent-chat-${name}`);
  for (const ranges of painted.values()) register(ranges);
});

/** Takes the colours away until they are needed again. */
function hide(code: Element): void {
  const ranges = painted.get(code);
  if (ranges === undefined) return;
  for (const [role, range] of ranges) highlightOf(role).delete(range);
  painted.delete(code);
  hidden.set(code, ranges);
}

function show(code: Element, ranges: Ranges): void {
  if (painted.has(code)) return;
  register(ranges);
  painted.set(code, ranges);
  hidden.delete(code);
}

function register(ranges: Ranges): void {
  if (!forced.matches) for (const [role, range] of ranges) highlightOf(role).add(range);
}

function paintRanges(code: Element, spans: readonly HighlightSpan[]): void {
  hide(code);
  // Some browsers report nothing of elements that have left the page.
  for (const element of painted.keys()) if (!element.isConnected) hide(element);
  const places = placesIn(code);
  const ranges = spans.map(({ role, start, end }) => {
    const [startContainer, startOffset] = places(start);
    const [endContainer, endOffset] = places(end);
    return [role, new StaticRange({ startContainer, startOffset, endContainer, endOffset })] as const;
  });
  show(code, ranges);
}

function highlightOf(role: string): Highlight {
  const name = `agent-chat-${role}`;
  const known = CSS.highlights.get(name);
  if (known !== undefined) return known;
  const created = new Highlight();
  CSS.highlights.set(name, created);
  return created;
}

/** Finds the text node and the offset in it, for offsets in the whole text that only grow. */
function placesIn(code: Element): (offset: number) => [Text, number] {
  const texts = textsOf(code);
  let before = 0;
  let index = 0;
  return (offset) => {
    while (offset - before > (texts[index]?.length ?? 0) && index < texts.length - 1) {
      before += texts[index]?.length ?? 0;
      index += 1;
    }
    const text = texts[index] ?? new Text();
    return [text, Math.min(offset - before, text.length)];
  };
}

/** For browsers that paint no ranges: an element around each coloured part. */
function wrapSpans(code: Element, spans: readonly HighlightSpan[]): void {
  for (const span of code.querySelectorAll("[class^=token-]")) span.replaceWith(...span.childNodes);
  code.normalize();
  let before = 0;
  for (const text of textsOf(code)) {
    const end = before + text.length;
    const inside = spans.filter((span) => span.start < end && span.end > before);
    wrapIn(text, before, inside);
    before = end;
  }
}

function wrapIn(text: Text, before: number, spans: readonly HighlightSpan[]): void {
  // From the end, so that the text before keeps its offsets.
  for (const { role, start, end } of spans.toReversed()) {
    const from = Math.max(start - before, 0);
    if (end - before < text.length) text.splitText(end - before);
    const part = from > 0 ? text.splitText(from) : text;
    const span = document.createElement("span");
    span.className = `token-${role}`;
    span.style.color = `var(--_code-${role})`;
    part.replaceWith(span);
    span.append(part);
    if (from === 0) return;
  }
}

function textsOf(code: Element): Text[] {
  const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
  const texts: Text[] = [];
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    if (node instanceof Text) texts.push(node);
  }
  return texts;
}
