/**
 * Colours code. A chunk: it is loaded with the first code block whose language it knows.
 *
 * The text is left alone where the browser can paint ranges (CSS Custom Highlight API), so a selection survives and nothing
 * flickers. The names of highlights belong to the whole page: every element and every copy of the script shares them.
 */

import type { ShjToken } from "@speed-highlight/core/tokenize";
import { tokenizeWith } from "@speed-highlight/core/tokenize";
import { grammars } from "./grammars.ts";
import { highlightSheet } from "./highlight.styles.ts";
import { skipListener } from "./skipped-parts.ts";
import { type Token, textsOf, wrapTokens } from "./wrap-tokens.ts";

/** Longer code stays plain: it would hold the page up. */
const maxLength = 50_000;

/** Grammars look ahead along a line or across white space, which costs the square of its length. */
const costly = /[^\n]{1000}|\s{200}/;

/** What a kind of token is to the reader. Kinds that are not here keep the colour of the text. */
const roles: Partial<Record<ShjToken, string>> = {
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

type Ranges = readonly (readonly [role: string, range: StaticRange])[];

/**
 * The ranges of each painted element, so that they can go: the registry keeps them alive, and with them what they stand in.
 * Only those near view: with each change to the page, browsers make something anew for each range that they may paint,
 * which with a thousand of them is a frame's work, and a second's for the next collection of garbage.
 */
const painted = new Map<Element, Ranges>();

/** Those of elements far from view. */
const hidden = new WeakMap<Element, Ranges>();

/** Grammars of what has not been painted since its text has grown. */
const wanted = new WeakMap<Element, string>();

/** Chromium paints ranges like selected text there, whatever their colours. */
const forced = matchMedia("(forced-colors: active)");
forced.addEventListener("change", () => {
  for (const name of Object.values(roles)) CSS.highlights?.delete(`agent-chat-${name}`);
  for (const ranges of painted.values()) register(ranges);
});

const listenForSkips = skipListener((part, skips) => {
  for (const code of part.querySelectorAll("pre > code")) {
    if (skips) {
      observerOf(code).unobserve(code);
      hide(code);
    } else if (hidden.has(code) || wanted.has(code)) observerOf(code).observe(code);
  }
});

let isPrinting = false;

/** One for each element that scrolls: of the page's own view the scroller shows a part, and margins of that are cut off by it. */
const observers = new WeakMap<Element, IntersectionObserver>();

function observerOf(code: Element): IntersectionObserver {
  const scroller = code.closest(".scroller") ?? document.documentElement;
  let observer = observers.get(scroller);
  if (observer === undefined) {
    // What is about to be scrolled to is coloured when it comes.
    observer = new IntersectionObserver(look, { root: scroller, rootMargin: "100%" });
    observers.set(scroller, observer);
  }
  return observer;
}

function look(entries: readonly IntersectionObserverEntry[]): void {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) paint(target);
    else if (!isPrinting || !target.isConnected) hide(target);
  }
}

/** Colours the code of an element as soon as it can be seen, again if its text has grown. `grammar`: a key of `grammars`. */
export function highlight(code: HTMLElement, grammar: string): void {
  wanted.set(code, grammar);
  const root = code.getRootNode();
  adoptSheet(root);
  listenForSkips(root);
  ask(code);
}

/** Observing anew answers anew. */
function ask(code: Element): void {
  const observer = observerOf(code);
  observer.unobserve(code);
  observer.observe(code);
}

function paint(code: Element): void {
  const grammar = wanted.get(code);
  if (grammar === undefined) {
    const ranges = hidden.get(code);
    if (ranges !== undefined) show(code, ranges);
    return;
  }
  wanted.delete(code);
  const tokens = tokensOf(code.textContent, grammar);
  if (tokens === undefined) return;
  if (typeof Highlight === "undefined") wrapTokens(code, tokens);
  else paintRanges(code, tokens);
}

/** The coloured parts of a source; undefined when it is not to be coloured. */
export function tokensOf(source: string, grammar: string): Token[] | undefined {
  const rules = grammars[grammar];
  if (rules === undefined || source.length > maxLength || costly.test(source)) return undefined;
  const tokens: Token[] = [];
  let end = 0;
  tokenizeWith(
    source,
    rules,
    (text, type) => {
      const start = end;
      end += text.length;
      const role = type && roles[type];
      if (role !== undefined && text !== "") tokens.push({ role, start, end });
    },
    { languages: grammars },
  );
  return tokens;
}

function adoptSheet(root: Node): void {
  const owner = root instanceof ShadowRoot ? root : document;
  if (owner.adoptedStyleSheets.includes(highlightSheet)) return;
  owner.adoptedStyleSheets.push(highlightSheet);
  // On paper everything is near.
  const weak = new WeakRef(owner);
  addEventListener("beforeprint", () => {
    isPrinting = true;
    for (const code of weak.deref()?.querySelectorAll("pre > code") ?? []) paint(code);
  });
  addEventListener("afterprint", () => {
    isPrinting = false;
    for (const code of painted.keys()) ask(code);
  });
}

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

function paintRanges(code: Element, tokens: readonly Token[]): void {
  hide(code);
  // Where a browser tells nothing of what has left the page.
  for (const element of painted.keys()) if (!element.isConnected) hide(element);
  const places = placesIn(code);
  const ranges = tokens.map(({ role, start, end }) => {
    const [startContainer, startOffset] = places(start);
    const [endContainer, endOffset] = places(end);
    const range = new StaticRange({ startContainer, startOffset, endContainer, endOffset });
    return [role, range] as const;
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

/** Finds the text node and the offset in it for ever later offsets in the whole text. */
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
