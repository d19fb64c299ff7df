/** Elements of the button and its bubble, which are drawn without Lit. */

export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  className: string,
): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
  made.className = className;
  return made;
}

/** As those of `ui/icons.ts`. The buttons around them have names. */
export function svgIcon(path: string): SVGSVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.appendChild(document.createElementNS(svg.namespaceURI, "path")).setAttribute("d", path);
  return svg;
}
