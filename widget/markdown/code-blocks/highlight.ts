/**
 * Colours code by ranges that the browser paints (CSS Custom Highlight API). The text is left alone, so selections
 * survive and nothing flickers. Names of highlights are global: all elements in the page share them.
 */

import * as languages from "@speed-highlight/core/languages";
import { type ShjLanguageData, type ShjToken, tokenizeWith } from "@speed-highlight/core/tokenize";

/**
 * Grammars by name; some contain others. They have a type of ours, because the package's own conflict under
 * `exactOptionalPropertyTypes`.
 */
const grammars = languages as Record<string, unknown> as Record<string, ShjLanguageData>;

/** Loops over all but a few characters, which read to the end of the code from every place where a match may begin. */
const ENDLESS = /(\[\^[^\]]+\]|\(\[\^\?\]\|\\\?\[\^\?>\]\))\*/g;

// Real matches are short in these grammars: with a limit hostile code costs milliseconds instead of seconds.
for (const name of ["bash", "css", "docker", "html", "xml"]) limitLoops(grammars[name]);

function limitLoops(rules: ShjLanguageData | undefined): void {
  for (const rule of Array.isArray(rules) ? rules : []) {
    if (rule.match instanceof RegExp) {
      const { source, flags } = rule.match;
      rule.match = new RegExp(source.replace(ENDLESS, "$1{0,500}"), flags);
    }
    if ("sub" in rule && typeof rule.sub === "object") limitLoops(rule.sub);
  }
}

/** Longer code stays plain: colouring it would block the page. */
const MAX_LENGTH = 50_000;

/** Grammars look ahead along a line or across white space, in quadratic time. */
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

/** The grammars of elements whose text has changed since they were painted. */
const wanted = new WeakMap<Element, string>();

const ranges = new WeakMap<Element, Ranges>();

/**
 * The elements whose ranges are painted: only those near the view. At each change of the page, browsers process every
 * range that they may paint, which takes a whole frame for a thousand of them.
 */
const painted = new Set<Element>();

/** Roots with code, for printing. Weak, so that they are freed with their elements. */
const roots: WeakRef<ParentNode>[] = [];
const knownRoots = new WeakSet<Node>();

/** Colours the code of an element as soon as it can be seen, again if its text has grown. */
export function highlight(code: HTMLElement, grammar: string): void {
  wanted.set(code, grammar);
  const root = code.getRootNode() as ShadowRoot;
  if (!knownRoots.has(root)) roots.push(new WeakRef(root));
  knownRoots.add(root);
  observe(code);
}

/** One for each element that scrolls, which would clip the margins of the page's own viewport. */
const observers = new WeakMap<Element, IntersectionObserver>();

/** Observing an element again reports it again. */
function observe(code: Element): void {
  const scroller = code.closest(".scroller, dialog") ?? document.documentElement;
  // Code is coloured before it is scrolled to.
  const observer = observers.get(scroller) ?? new IntersectionObserver(look, { root: scroller, rootMargin: "100%" });
  observers.set(scroller, observer);
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

// Everything is printed, near the view or not.
addEventListener("beforeprint", () => {
  isPrinting = true;
  for (const code of roots.flatMap((root) => [...(root.deref()?.querySelectorAll("pre > code") ?? [])])) paint(code);
});
addEventListener("afterprint", () => {
  isPrinting = false;
  for (const code of painted) observe(code);
});

/** With forced colours Chromium paints ranges like selected text, whatever their colours: none are added then. */
const forced = matchMedia("(forced-colors: active)");
forced.addEventListener("change", () => {
  for (const name of Object.values(ROLES)) CSS.highlights.delete(`agent-chat-${name}`);
  for (const code of painted) register(code);
});

function paint(code: Element): void {
  const grammar = wanted.get(code);
  const spans = grammar && spansOf(code.textContent, grammar);
  wanted.delete(code);
  if (spans) {
    hide(code);
    ranges.set(code, rangesOf(code, spans));
  }
  // Some browsers do not report elements that have left the page.
  for (const element of painted) if (!element.isConnected) hide(element);
  if (painted.has(code)) return;
  painted.add(code);
  register(code);
}

/** Removes the colours until they are needed again. */
function hide(code: Element): void {
  if (!painted.delete(code)) return;
  for (const [role, range] of ranges.get(code) ?? []) CSS.highlights.get(`agent-chat-${role}`)?.delete(range);
}

function register(code: Element): void {
  if (forced.matches) return;
  for (const [role, range] of ranges.get(code) ?? []) highlightOf(role).add(range);
}

function highlightOf(role: string): Highlight {
  const name = `agent-chat-${role}`;
  const known = CSS.highlights.get(name) ?? new Highlight();
  CSS.highlights.set(name, known);
  return known;
}

function rangesOf(code: Element, spans: readonly HighlightSpan[]): Ranges {
  const places = placesIn(code);
  return spans.map(({ role, start, end }) => {
    const [startContainer, startOffset] = places(start);
    const [endContainer, endOffset] = places(end);
    return [role, new StaticRange({ startContainer, startOffset, endContainer, endOffset })];
  });
}

/** Finds the text node and the offset in it, for offsets in the whole text that only grow. */
function placesIn(code: Element): (offset: number) => [Text, number] {
  // Code is drawn in chunks of whole lines, each with one text node.
  const texts = [...code.children].flatMap(({ firstChild }) => (firstChild instanceof Text ? [firstChild] : []));
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
