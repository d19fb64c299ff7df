/** Elements with a class. Attributes with text from a message are set by the caller, after a check. */

export function create<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  className = "",
): HTMLElementTagNameMap[Name] {
  const node = document.createElement(name);
  if (className !== "") node.className = className;
  return node;
}

/** As those of `ui/icons.ts`, without Lit. The buttons around them have names. */
export function svgIcon(path: string): SVGSVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.appendChild(document.createElementNS(svg.namespaceURI, "path")).setAttribute("d", path);
  return svg;
}
