/**
 * Draws formulas as MathML, which browsers lay out and screen readers speak. Loaded with the first formula, together with
 * Temml, which reads TeX, and a font: without one for mathematics brackets do not grow around what they hold.
 */

import type { MathNode } from "temml";
import temml from "temml";
import temmlStyles from "temml/dist/Temml-STIX2.css";
import { adoptSheets, sheetOf } from "../styles/adopt.ts";
import { create } from "../styles/elements.ts";
import styles from "../styles/formulas.css";
import font from "./math-font/stix-two-math.woff2";

/** Longer formulas, and those that draw more or deeper, stay text: they would block the page. */
const MAX_LENGTH = 2000;
const MAX_NODES = 800;
const MAX_DEPTH = 60;

/** Limit of the steps in which macros are expanded. */
const MAX_EXPAND = 500;

/** Definitions of macros, which may expand to much or to themselves, and chemistry, which is read slowly, have their own limits. */
const COSTLY = /\\(?:[egx]?def|let|futurelet|(?:re)?newcommand|providecommand|ce|pu)(?![a-z])/i;
const COSTLY_LENGTH = 500;
const COSTLY_EXPAND = 50;

/** The largest spaces and bars, in em and in points: more may cover what is not the formula. */
const MAX_SIZE = [20, 200] as const;

/** Milliseconds of drawing, until the page gets a turn. */
const TURN = 8;

const MATHML = "http://www.w3.org/1998/Math/MathML";
const ELEMENT = /^(?:m[a-z]+|none|semantics)$/;
/** Neither addresses nor names that something could refer to. */
const ATTRIBUTE =
  /^(?:accent|column(?:align|lines|spacing)|depth|display(?:style)?|fence|form|height|largeop|linethickness|[lr]space|math(?:background|color|size|variant)|m(?:ax|in)size|movablelimits|row(?:align|lines|spacing|span)|columnspan|notation|scriptlevel|separator|stretchy|symmetric|voffset|width)$/;

const OPEN = /^(\$\$?|\\[([])(.*?)(?:\$\$?|\\[)\]])$/s;

// Its own font is not there: a sheet of a shadow root cannot bring one along.
const sheets = [sheetOf(temmlStyles.replace(/@font-face\s*\{[^}]*\}/, "")), sheetOf(styles)];
const copied = sheetOf(".math:not(.display) > math { display: none !important; }");

let fontLoading: Promise<unknown> | undefined;

/** Loads it from its bytes, because a page may allow fonts of no server. */
async function loadFont(): Promise<void> {
  try {
    const bytes = Uint8Array.from(atob(font), (character) => character.charCodeAt(0));
    document.fonts.add(await new FontFace("agent-chat-math", bytes).load());
  } catch {
    // The browser's own font has to do.
  }
}

/** Roots that are listened to. */
const heard = new WeakSet<Node>();

/** Where MathML stands in a line, browsers break that in a copy, though what is drawn is no part of it: it is away meanwhile. */
function keepLines(root: ShadowRoot): void {
  if (heard.has(root)) return;
  heard.add(root);
  root.addEventListener("copy", () => {
    root.adoptedStyleSheets.push(copied);
    setTimeout(() => root.adoptedStyleSheets.splice(root.adoptedStyleSheets.indexOf(copied), 1));
  });
}

/** Formulas that were drawn, or cannot be. */
const seen = new WeakSet<Element>();

/** Draws the formulas in a node, and answers their boxes. What is not closed yet, wrong or too large stays as it is written. */
export async function drawFormulas(node: Element): Promise<readonly HTMLElement[]> {
  fontLoading ??= loadFont();
  await fontLoading;
  adoptSheets(node, sheets);
  keepLines(node.getRootNode() as ShadowRoot);
  const boxes: HTMLElement[] = [];
  let start = performance.now();
  for (const formula of node.querySelectorAll<HTMLElement>(".tex")) {
    if (seen.has(formula)) continue;
    seen.add(formula);
    const box = draw(formula);
    if (box) boxes.push(box);
    if (performance.now() - start < TURN) continue;
    await new Promise((resolve) => setTimeout(resolve));
    start = performance.now();
  }
  return boxes;
}

/** The TeX stays before what is drawn, unseen: it can be marked, found and copied, in all browsers in the same way. */
function draw(formula: HTMLElement): HTMLElement | undefined {
  const source = formula.dataset.source ?? "";
  const [, open = "", tex = ""] = OPEN.exec(source) ?? [];
  const isDisplay = open === "$$" || open === "\\[";
  const math = open && mathOf(tex, isDisplay);
  if (!math) return undefined;
  const box = create("span", "rendered math");
  box.classList.toggle("display", isDisplay);
  // Is what is announced.
  box.dataset.source = source;
  const text = formula.firstElementChild as HTMLElement;
  text.setAttribute("aria-hidden", "true");
  formula.append(box);
  box.append(text, math);
  return box;
}

/** A formula as MathML, where there is nothing against that. */
export function mathOf(tex: string, isDisplay: boolean): Element | undefined {
  const [length, maxExpand] = COSTLY.test(tex) ? [COSTLY_LENGTH, COSTLY_EXPAND] : [MAX_LENGTH, MAX_EXPAND];
  if (tex.length > length) return undefined;
  try {
    const tree = temml.__renderToMathMLTree(tex, {
      displayMode: isDisplay,
      throwOnError: true,
      trust: false,
      maxExpand,
      maxSize: MAX_SIZE,
    });
    const math = document.createElementNS(MATHML, "math");
    if (isDisplay) math.setAttribute("displaystyle", "true");
    let left = MAX_NODES;
    const append = (parent: Element, children: readonly MathNode[] = [], depth = 0) => {
      for (const child of children) {
        left -= 1;
        if (left < 0 || depth > MAX_DEPTH) throw new Error("too large");
        if (child.text !== undefined) parent.append(child.text);
        else append(child.type ? parent.appendChild(elementOf(child)) : parent, child.children, depth + 1);
      }
    };
    append(math, tree.children);
    return math;
  } catch {
    // Wrong TeX, too many macros, or deeper than the stack.
    return undefined;
  }
}

function elementOf({ type = "", attributes = {}, style = {}, classes = [] }: MathNode): Element {
  const node = document.createElementNS(MATHML, ELEMENT.test(type) ? type : "mrow") as MathMLElement;
  for (const [name, value] of Object.entries(attributes)) {
    // As an attribute a policy of the page may forbid it.
    if (name === "style") node.style.cssText = String(value);
    else if (ATTRIBUTE.test(name)) node.setAttribute(name, String(value));
  }
  Object.assign(node.style, style);
  const names = classes.filter(Boolean).join(" ");
  if (names) node.setAttribute("class", names);
  return node;
}
