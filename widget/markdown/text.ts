/** Text, and links. */

import { create } from "../styles/elements.ts";
import type { SafeLink } from "./safe-url.ts";

/** An element or a fragment that inline text is drawn into. */
export type Parent = HTMLElement | DocumentFragment;

// UAX #15 allows 30 combining marks in a row and no language comes near. A renderer slows down with each one.
const ENDLESS_MARKS = /(\p{M}{30})(?=\p{M})/gu;

/**
 * Appends text, to the last text node if there is one, so that growing text keeps its node. Overlong runs of combining
 * marks continue on a dotted circle, so that none is lost.
 */
export function appendText(parent: Parent, text: string): void {
  if (text === "") return;
  const last = parent.lastChild;
  // The text before is read only if it matters: reading would copy it for each of a paragraph's pieces.
  const before = last instanceof Text && /^\p{M}/u.test(text) ? last.data.slice(-31) : "";
  const shown = `${before}${text}`.replace(ENDLESS_MARKS, "$1\u25cc").slice(before.length);
  if (last instanceof Text) last.appendData(shown);
  else parent.append(shown);
}

/** An empty link. The page that it opens gets no access to this one. */
export function linkElement({ href, host }: SafeLink): HTMLAnchorElement {
  const link = create("a");
  link.setAttribute("href", href);
  link.setAttribute("target", "_blank");
  link.setAttribute("rel", "noopener noreferrer nofollow");
  if (host !== "") link.setAttribute("title", host);
  return link;
}
