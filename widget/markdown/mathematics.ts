/**
 * Draws formulas as MathML, which browsers lay out and screen readers speak. Loaded with the first formula, together
 * with Temml, which reads TeX, and a font: without a mathematical font, brackets do not grow with their content.
 */

import type { MathNode } from "temml";
import temml from "temml";
import temmlStyles from "temml/dist/Temml-STIX2.css";
import { adoptSheets, sheetOf } from "../styles/adopt.ts";
import { create } from "../styles/elements.ts";
import styles from "../styles/formulas.css";
import font from "./math-font/stix-two-math.woff2";

/** Formulas that are longer, or have more or deeper nested nodes, stay text: they would block the page. */
const MAX_LENGTH = 2000;
const MAX_NODES = 800;
const MAX_DEPTH = 60;

/** Maximum number of macro expansions. */
const MAX_EXPAND = 500;

/** Definitions of macros, which may expand endlessly, and chemistry, which is slow to read, have lower limits. */
const COSTLY = /\\(?:[egx]?def|let|futurelet|(?:re)?newcommand|providecommand|ce|pu)(?![a-z])/i;
const COSTLY_LENGTH = 500;
const COSTLY_EXPAND = 50;

/** The largest spaces and bars, in em and in points: larger ones may cover other content. */
const MAX_SIZE = [20, 200] as const;

/** Milliseconds of drawing before the page gets a turn. */
const TURN = 8;

const MATHML = "http://www.w3.org/1998/Math/MathML";
const ELEMENT = /^(?:m[a-z]+|none|semantics)$/;
/** No attributes with URLs, and none with names that something could refer to. */
const ATTRIBUTE =
  /^(?:accent|column(?:align|lines|spacing)|depth|display(?:style)?|fence|form|height|largeop|linethickness|[lr]space|math(?:background|color|size|variant)|m(?:ax|in)size|movablelimits|row(?:align|lines|spacing|span)|columnspan|notation|scriptlevel|separator|stretchy|symmetric|voffset|width)$/;

const OPEN = /^(\$\$?|\\[([])(.*?)(?:\$\$?|\\[)\]])$/s;

// Without its `@font-face`: a style sheet in a shadow root cannot load fonts.
const sheets = [sheetOf(temmlStyles.replace(/@font-face\s*\{[^}]*\}/, "")), sheetOf(styles)];
const copied = sheetOf(".math:not(.display) > math { display: none !important; }");

let fontLoading: Promise<unknown> | undefined;

/** Loads the font from its bytes, because a page's policy may forbid fonts from servers. */
async function loadFont(): Promise<void> {
  try {
    const bytes = Uint8Array.from(atob(font), (character) => character.charCodeAt(0));
    document.fonts.add(await new FontFace("agent-chat-math", bytes).load());
  } catch {
    // The browser's own font has to do.
  }
}

/** Roots with a listener for `copy`. */
const heard = new WeakSet<Node>();

/** Hides inline MathML during a copy: browsers would break the copied line there, though it is no part of the copy. */
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

/** Draws the formulas in a node, and resolves to their boxes. Unclosed, wrong or too large ones stay as written. */
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

/** Keeps the TeX, invisible, before the drawing: it can be selected, found and copied in all browsers alike. */
function draw(formula: HTMLElement): HTMLElement | undefined {
  const source = formula.dataset.source ?? "";
  const [, open = "", tex = ""] = OPEN.exec(source) ?? [];
  const isDisplay = open === "$$" || open === "\\[";
  const math = open && mathOf(tex, isDisplay);
  if (!math) return undefined;
  const box = create("span", "rendered math");
  box.classList.toggle("display", isDisplay);
  // This is announced to screen readers.
  box.dataset.source = source;
  const text = formula.firstElementChild as HTMLElement;
  text.setAttribute("aria-hidden", "true");
  formula.append(box);
  box.append(text, math);
  return box;
}

/** A formula as MathML; `undefined` if it is wrong or too large. */
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
    // Wrong TeX, too many macros, or too deep for the stack.
    return undefined;
  }
}

function elementOf({ type = "", attributes = {}, style = {}, classes = [] }: MathNode): Element {
  const node = document.createElementNS(MATHML, ELEMENT.test(type) ? type : "mrow") as MathMLElement;
  for (const [name, value] of Object.entries(attributes)) {
    // A page's policy may forbid the attribute.
    if (name === "style") node.style.cssText = String(value);
    else if (ATTRIBUTE.test(name)) node.setAttribute(name, String(value));
  }
  Object.assign(node.style, style);
  const names = classes.filter(Boolean).join(" ");
  if (names) node.setAttribute("class", names);
  return node;
}
