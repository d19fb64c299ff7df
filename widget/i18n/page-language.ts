/** The language and the direction at a place in a page. */

/** Right-to-left languages, among those that browsers can be set to. */
const RIGHT_TO_LEFT = /^(?:ar|ckb|dv|fa|he|ps|sd|ug|ur|yi)\b/i;

/**
 * The `lang` of the nearest element that has one, such as `de-CH`, or the browser's language; and the `dir` of the
 * nearest element that has a `lang` or a `dir`, or else the direction of that language.
 */
export function languageAt(element: Element): [tag: string, direction: "ltr" | "rtl"] {
  const tag = nearest(element, "[lang]")?.getAttribute("lang") || navigator.language;
  const stated = nearest(element, "[dir],[lang]")?.getAttribute("dir");
  const isRtl = stated === "rtl" || (stated !== "ltr" && RIGHT_TO_LEFT.test(tag));
  return [tag, isRtl ? "rtl" : "ltr"];
}

/** Like `closest`, but also searches outside of shadow roots. */
function nearest(element: Element, selector: string): Element | null {
  const root = element.getRootNode();
  const found = element.closest(selector);
  return found ?? (root instanceof ShadowRoot ? nearest(root.host, selector) : null);
}
