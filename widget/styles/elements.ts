/** Elements with a class. Attributes with text from a message are set by the caller, after a check. */

export function create<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  className = "",
): HTMLElementTagNameMap[Name] {
  const node = document.createElement(name);
  if (className !== "") node.className = className;
  return node;
}

/** A button of a box, with icons. `label` is its accessible name and its tooltip. */
export function boxButton(className: string, label: string, ...icons: readonly string[]): HTMLButtonElement {
  const button = create("button", `icon-button ${className}`);
  button.type = "button";
  button.title = label;
  button.setAttribute("aria-label", label);
  button.append(...icons.map(svgIcon));
  return button;
}

/** Like the icons of `ui/icons.ts`, but without Lit. The buttons around them have the accessible names. */
export function svgIcon(path: string): SVGSVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.appendChild(document.createElementNS(svg.namespaceURI, "path")).setAttribute("d", path);
  return svg;
}
