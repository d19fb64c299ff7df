/** A style sheet of an element, or of a part that is loaded later: of a part there is one for all elements. */
export function sheetOf(css: string): CSSStyleSheet {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  return sheet;
}

/** Gives the root around a part the part's style sheet. */
export function adoptSheet(part: Node, sheet: CSSStyleSheet): void {
  const root = part.getRootNode();
  const owner = root instanceof ShadowRoot ? root : document;
  if (!owner.adoptedStyleSheets.includes(sheet)) owner.adoptedStyleSheets.push(sheet);
}
