/** What a page says about a place in it: its language and its direction. */

/** Languages that are written from right to left, among those that browsers are set to. */
const RIGHT_TO_LEFT = /^(?:ar|ckb|dv|fa|he|ps|sd|ug|ur|yi)\b/i;

/**
 * The tag that the nearest element names, such as `de-CH`, or the browser's setting; and the direction that the nearest
 * element states which names a language or a direction, or else that in which the language is written.
 */
export function languageAt(element: Element): [tag: string, direction: "ltr" | "rtl"] {
  const tag = nearest(element, "[lang]")?.getAttribute("lang") || navigator.language;
  const stated = nearest(element, "[dir],[lang]")?.getAttribute("dir");
  const isRtl = stated === "rtl" || (stated !== "ltr" && RIGHT_TO_LEFT.test(tag));
  return [tag, isRtl ? "rtl" : "ltr"];
}

/** Like `closest`, and out of shadow roots. */
function nearest(element: Element, selector: string): Element | null {
  const root = element.getRootNode();
  const found = element.closest(selector);
  return found ?? (root instanceof ShadowRoot ? nearest(root.host, selector) : null);
}
