/** Draws inline tokens. No string becomes HTML, so nothing has to be sanitised: raw HTML but a few names is text. */

import type { MarkedToken, Token, Tokens } from "marked";
import type { Strings } from "../i18n/strings.ts";
import { create } from "../styles/elements.ts";
import { decodeEntities } from "./entities.ts";
import { pairAt } from "./html-names.ts";
import type { RuleToken } from "./inline-rules.ts";
import { type SafeImage, safeImage, safeLink } from "./safe-url.ts";
import { appendText, linkElement, type Parent } from "./text.ts";

/** `failed`: the image could not be loaded, or a policy of the page forbids it. */
export type ImageStatus = "requested" | "failed";

/** Images of other servers: `ask` loads them on request; `none` or a list of hosts if the page's policy allows only these. */
export type MayLoadImages = "none" | "ask" | readonly string[];

export interface InlineContext {
  readonly strings: Strings;
  /** The external images that the reader has asked for, by source. */
  readonly images: Map<string, ImageStatus>;
  readonly mayLoadImages: MayLoadImages | undefined;
}

export function appendInline(parent: Parent, tokens: readonly Token[], context: InlineContext, isInLink = false): void {
  for (let index = 0; index < tokens.length; index += 1) {
    const token = tokens[index] as MarkedToken | RuleToken;
    const pair = pairAt(tokens, index);
    if (pair) {
      appendInline(parent.appendChild(create(pair.name)), tokens.slice(index + 1, pair.end), context, isInLink);
      index = pair.end;
    } else if ("rule" in token) parent.append((token as RuleToken).rule.draw(token.text, context.strings));
    else appendToken(parent, token as MarkedToken, context, isInLink);
  }
}

function appendToken(parent: Parent, token: MarkedToken, context: InlineContext, isInLink: boolean): void {
  switch (token.type) {
    case "strong":
    case "em":
    case "del":
      appendInline(parent.appendChild(create(token.type)), token.tokens, context, isInLink);
      return;
    case "codespan": {
      const code = parent.appendChild(create("code"));
      code.setAttribute("translate", "no");
      appendText(code, token.text);
      return;
    }
    case "br":
      parent.append(create("br"));
      return;
    case "link":
      appendLink(parent, token, context, isInLink);
      return;
    case "image":
      appendImage(parent, token, context, isInLink);
      return;
    case "checkbox":
      // The list item draws its own checkbox.
      return;
    case "html":
    case "escape":
      appendText(parent, token.text);
      return;
    case "text":
      // marked leaves text inside raw HTML as it was written, and so does this: the HTML is shown, not run.
      appendText(parent, token.escaped ? token.text : decodeEntities(token.text));
      return;
    default:
      appendText(parent, token.raw);
  }
}

function appendLink(parent: Parent, token: Tokens.Link, context: InlineContext, isInLink: boolean): void {
  const link = isInLink ? undefined : safeLink(token.autolink ? token.href : decodeEntities(token.href));
  const target = link === undefined ? parent : linkElement(link);
  if (token.autolink) appendText(target, token.text);
  else appendInline(target, token.tokens, context, isInLink || link !== undefined);
  if (link !== undefined) parent.append(target);
}

function appendImage(parent: Parent, token: Tokens.Image, context: InlineContext, isInLink: boolean): void {
  const alt = plainText(token.tokens);
  const source = decodeEntities(token.href);
  const image = safeImage(source);
  const status = image && (context.images.get(image.src) ?? (image.host === "" ? "requested" : undefined));
  if (image !== undefined && status === "requested") {
    parent.append(imageElement(image.src, alt, isInLink ? undefined : context.strings));
  } else if (image === undefined || isInLink) {
    // A link must not contain a button or another link: there the image becomes its alternative text.
    appendText(parent, alt || source);
  } else {
    const { strings, mayLoadImages } = context;
    const isNamed = !Array.isArray(mayLoadImages) || (mayLoadImages.includes(image.host) && /^https/.test(image.src));
    const isAsked = mayLoadImages !== "none" && isNamed && status === undefined;
    parent.append(isAsked ? imageButton(image, alt, strings) : imageLink(image, alt, strings, status === "failed"));
  }
}

function imageButton({ src, host }: SafeImage, alt: string, strings: Strings): HTMLButtonElement {
  const button = create("button", "image small-button");
  button.type = "button";
  button.dataset.src = src;
  button.dataset.alt = alt;
  appendText(button, strings.loadImage(host));
  if (alt !== "") {
    // The space keeps the two apart when they are read aloud.
    appendText(button, " ");
    appendText(button.appendChild(create("span", "image-alt")), alt);
  }
  return button;
}

/** Replaces an image that cannot be shown here: its alternative text, and a link to the image. */
function imageLink(
  { src, host }: SafeImage,
  alt: string,
  { imageFailed, openImage }: Strings,
  isFailed: boolean,
): HTMLElement {
  const node = create("span", "image-alt");
  appendText(node, !isFailed ? alt : alt === "" ? imageFailed : `${alt} (${imageFailed})`);
  // An image from the text itself has no address.
  if (host === "") return node;
  if (node.hasChildNodes()) appendText(node, " ");
  const link = node.appendChild(linkElement({ href: src, host }));
  appendText(link, openImage(host));
  return node;
}

/** An image, requested without a referrer. With `strings` it is a button that enlarges it. */
function imageElement(src: string, alt: string, strings?: Strings): HTMLImageElement {
  const image = create("img", "image");
  image.setAttribute("alt", alt);
  if (strings) {
    const button = { role: "button", tabindex: "0", "aria-haspopup": "dialog" };
    for (const [name, value] of Object.entries(button)) image.setAttribute(name, value);
    if (alt === "") image.setAttribute("aria-label", strings.enlargeImage);
  }
  image.setAttribute("decoding", "async");
  // Before `src`: setting the source starts the request.
  image.setAttribute("referrerpolicy", "no-referrer");
  image.setAttribute("src", src);
  return image;
}

function plainText(tokens: readonly Token[]): string {
  return tokens
    .map((generic) => {
      const token = generic as MarkedToken;
      if (token.type === "text") return token.escaped ? token.text : decodeEntities(token.text);
      if (token.type === "br") return "\n";
      if ("tokens" in token && token.tokens !== undefined) return plainText(token.tokens);
      return "text" in token ? token.text : "";
    })
    .join("");
}

/** Loads external images inside `root` when the reader asks for them, and replaces those that cannot be loaded. */
export function listenForImages(root: HTMLElement, context: InlineContext, signal: AbortSignal): void {
  root.addEventListener(
    "click",
    ({ target }) => {
      const button = (target as Element).closest<HTMLButtonElement>("button.image");
      if (button) requestImage(button, context);
    },
    { signal },
  );
  // A failure to load does not bubble, but it can be caught on its way down.
  root.addEventListener("error", ({ target }) => replaceFailed(target, context), { signal, capture: true });
}

function requestImage(button: HTMLButtonElement, { images, strings }: InlineContext): void {
  const { src = "", alt = "" } = button.dataset;
  images.set(src, "requested");
  // The image may fail to load, so the focus moves to the box that scrolls.
  const box = button.matches(":focus") && button.closest<HTMLElement>("[tabindex]");
  button.replaceWith(imageElement(src, alt, strings));
  if (box) box.focus({ preventScroll: true });
}

function replaceFailed(target: EventTarget | null, { images, strings }: InlineContext): void {
  if (!(target instanceof HTMLImageElement)) return;
  const image = safeImage(target.src);
  if (image === undefined || (image.host !== "" && !images.has(image.src))) return;
  images.set(image.src, "failed");
  target.replaceWith(imageLink(image, target.alt, strings, true));
}
