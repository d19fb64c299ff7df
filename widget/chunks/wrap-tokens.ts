/** Code as text nodes, and as elements where a browser paints no ranges. */

/** A part of a source, and what it is to the reader. */
export interface Token {
  readonly role: string;
  readonly start: number;
  readonly end: number;
}

/** For browsers that paint no ranges: an element around each token. */
export function wrapTokens(code: Element, tokens: readonly Token[]): void {
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

export function textsOf(code: Element): Text[] {
  const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
  const texts: Text[] = [];
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    if (node instanceof Text) texts.push(node);
  }
  return texts;
}
