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
import { inSkippedPart, skipListener } from "./skipped-parts.ts";

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

interface Token {
  readonly role: string;
  readonly start: number;
  readonly end: number;
}

type Ranges = readonly (readonly [role: string, range: StaticRange])[];

/** The ranges of each painted element, so that they can go: the registry keeps them alive, and with them what they stand in. */
const painted = new Map<Element, Ranges>();

/** Those of elements in parts that are skipped: whenever anything changes, browsers look at each range that they are to paint. */
const skipped = new WeakMap<Element, Ranges>();

const wanted = new WeakMap<Element, string>();

/** What leaves the page has no size any more; where it comes back, it has one again. */
const presence = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (!target.isConnected) clear(target);
    else if (!painted.has(target)) observer.observe(target);
  }
});

/** Chromium paints ranges like selected text there, whatever their colours. */
const forced = matchMedia("(forced-colors: active)");
forced.addEventListener("change", () => {
  for (const name of Object.values(roles)) CSS.highlights?.delete(`agent-chat-${name}`);
});

const listenForSkips = skipListener((part, skips) => {
  for (const code of part.querySelectorAll("pre > code")) {
    const ranges = (skips ? painted : skipped).get(code);
    if (ranges === undefined) continue;
    if (skips) {
      clear(code);
      presence.unobserve(code);
      skipped.set(code, ranges);
    } else if (!inSkippedPart(code)) show(code, ranges);
  }
});

const observer = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      if (target instanceof HTMLElement) paint(target, wanted.get(target) ?? "");
    }
  },
  // What is about to be scrolled to is coloured when it comes.
  { rootMargin: "50%" },
);

/** Colours the code of an element as soon as it can be seen, again if its text has grown. `grammar`: a key of `grammars`. */
export function highlight(code: HTMLElement, grammar: string): void {
  wanted.set(code, grammar);
  // Observing anew answers anew.
  observer.unobserve(code);
  observer.observe(code);
}

function paint(code: HTMLElement, grammar: string): void {
  const tokens = tokensOf(code.textContent, grammar);
  if (tokens === undefined || forced.matches) return;
  adoptSheet(code.getRootNode());
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
  // On paper nothing is skipped.
  const weak = new WeakRef(owner);
  addEventListener("beforeprint", () => {
    for (const code of weak.deref()?.querySelectorAll("pre > code") ?? []) {
      const ranges = skipped.get(code);
      if (ranges) show(code, ranges);
    }
  });
}

function clear(code: Element): void {
  for (const [role, range] of painted.get(code) ?? []) highlightOf(role).delete(range);
  painted.delete(code);
  skipped.delete(code);
}

function show(code: Element, ranges: Ranges): void {
  if (!forced.matches) for (const [role, range] of ranges) highlightOf(role).add(range);
  painted.set(code, ranges);
  skipped.delete(code);
  presence.observe(code);
}

function paintRanges(code: HTMLElement, tokens: readonly Token[]): void {
  clear(code);
  // What had no size when it left the page was not told of.
  for (const element of painted.keys()) if (!element.isConnected) clear(element);
  listenForSkips(code.getRootNode());
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
function placesIn(code: HTMLElement): (offset: number) => [Text, number] {
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

function textsOf(code: HTMLElement): Text[] {
  const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
  const texts: Text[] = [];
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    if (node instanceof Text) texts.push(node);
  }
  return texts;
}

/** For browsers that paint no ranges: an element around each token. */
function wrapTokens(code: HTMLElement, tokens: readonly Token[]): void {
  for (const span of code.querySelectorAll("[class^=token-]")) span.replaceWith(...span.childNodes);
  code.normalize();
  let before = 0;
  for (const text of textsOf(code)) {
    const end = before + text.length;
    const inside = tokens.filter((token) => token.start < end && token.end > before);
    wrapIn(text, before, inside);
    before = end;
  }
}

function wrapIn(text: Text, before: number, tokens: readonly Token[]): void {
  // From the end, so that what is still to be cut keeps its offsets.
  for (const { role, start, end } of tokens.toReversed()) {
    const from = Math.max(start - before, 0);
    if (end - before < text.length) text.splitText(end - before);
    const part = from > 0 ? text.splitText(from) : text;
    const span = document.createElement("span");
    span.className = `token-${role}`;
    part.replaceWith(span);
    span.append(part);
    if (from === 0) return;
  }
}
