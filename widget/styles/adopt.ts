/** Makes the style sheet of an element, or of a part that is loaded later: all elements share that of a part. */
export function sheetOf(css: string): CSSStyleSheet {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  return sheet;
}

/** Adds the style sheets of a part to the root around it, once each. */
export function adoptSheets(part: Node, sheets: readonly CSSStyleSheet[]): void {
  const root = part.getRootNode();
  const { adoptedStyleSheets: adopted } = root instanceof ShadowRoot ? root : document;
  adopted.push(...sheets.filter((sheet) => !adopted.includes(sheet)));
}
