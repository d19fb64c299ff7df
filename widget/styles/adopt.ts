/** A style sheet of an element, or of a part that is loaded later: of a part there is one for all elements. */
export function sheetOf(css: string): CSSStyleSheet {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  return sheet;
}

/** Gives the root around a part the part's style sheets. */
export function adoptSheets(part: Node, sheets: readonly CSSStyleSheet[]): void {
  const root = part.getRootNode();
  const { adoptedStyleSheets: adopted } = root instanceof ShadowRoot ? root : document;
  adopted.push(...sheets.filter((sheet) => !adopted.includes(sheet)));
}
