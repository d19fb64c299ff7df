import type { MarkedToken, Token, Tokens } from "marked";
import { strings } from "../strings.ts";
import { decodeEntities } from "./entities.ts";
import { type SafeImage, type SafeLink, safeImage, safeLink } from "./safe-url.ts";
import { visibleText } from "./visible-text.ts";

/** `failed`: the image is not there, or a policy of the page forbids to show it. */
export type ImageStatus = "requested" | "failed";

/** What inline text is drawn into. */
export type Parent = HTMLElement | DocumentFragment;

/** What drawing needs besides the tokens. */
export interface Drawing {
  /** What became of the external images that the reader has asked for, by source. */
  readonly images: ReadonlyMap<string, ImageStatus>;
  /** Lexes the inline text that belongs to a block's token list, piece by piece. */
  inline(tokens: readonly Token[]): readonly (readonly MarkedToken[])[];
}

/** Creates an element with a class. Attributes that carry text from a message are set by the caller, after judging. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  className = "",
): HTMLElementTagNameMap[Name] {
  const node = document.createElement(name);
  if (className !== "") node.className = className;
  return node;
}

/** Appends text as text, joined to a text node that is already last so that growing text keeps its node. */
export function appendText(parent: Parent, text: string): void {
  if (text === "") return;
  const last = parent.lastChild;
  // What is there is read only where it matters: it would be copied for each of a paragraph's pieces.
  if (last instanceof Text) last.appendData(visibleText(text, /^\p{M}/u.test(text) ? last.data : ""));
  else parent.append(visibleText(text));
}

/** Draws inline tokens into an element. */
export function drawInline(parent: Parent, tokens: readonly Token[], drawing: Drawing, inLink = false): void {
  for (const token of tokens) drawToken(parent, token as MarkedToken, drawing, inLink);
}

function drawToken(parent: Parent, token: MarkedToken, drawing: Drawing, inLink: boolean): void {
  switch (token.type) {
    case "strong":
    case "em":
    case "del":
      drawInline(parent.appendChild(element(token.type)), token.tokens, drawing, inLink);
      return;
    case "codespan":
      appendText(parent.appendChild(element("code")), token.text);
      return;
    case "br":
      parent.append(element("br"));
      return;
    case "link":
      drawLink(parent, token, drawing, inLink);
      return;
    case "image":
      drawImage(parent, token, drawing, inLink);
      return;
    case "checkbox":
      // Drawn by the list item, which knows whether the task is done.
      return;
    case "html":
      appendText(parent, token.text);
      return;
    case "text":
      // marked leaves text inside raw HTML as it was written, and so do we: that HTML is shown, not run.
      appendText(parent, token.escaped ? token.text : decodeEntities(token.text));
      return;
    case "escape":
      appendText(parent, token.text);
      return;
    default:
      appendText(parent, token.raw);
  }
}

function drawLink(parent: Parent, token: Tokens.Link, drawing: Drawing, inLink: boolean): void {
  const link = inLink ? undefined : safeLink(token.autolink ? token.href : decodeEntities(token.href));
  const target = link === undefined ? parent : linkElement(link);
  if (token.autolink) appendText(target, token.text);
  else drawInline(target, token.tokens, drawing, inLink || link !== undefined);
  if (link !== undefined) parent.append(target);
}

/** An empty link that keeps the opened page away from ours. */
function linkElement({ href, host }: SafeLink): HTMLAnchorElement {
  const link = element("a");
  link.setAttribute("href", href);
  link.setAttribute("target", "_blank");
  link.setAttribute("rel", "noopener noreferrer nofollow");
  if (host !== "") link.setAttribute("title", host);
  return link;
}

function drawImage(parent: Parent, token: Tokens.Image, drawing: Drawing, inLink: boolean): void {
  const alt = plainText(token.tokens);
  const source = decodeEntities(token.href);
  const image = safeImage(source);
  const status = image && (image.host === "" ? "requested" : drawing.images.get(image.src));
  if (image !== undefined && status === "requested") {
    parent.append(imageElement(image.src, alt));
  } else if (image === undefined || inLink) {
    // A button or a link may not stand in a link, so there the image is its alternative text.
    appendText(parent, alt || source);
  } else {
    parent.append(status === "failed" ? failedImage(image, alt) : imageButton(image, alt));
  }
}

function imageButton({ src, host }: SafeImage, alt: string): HTMLButtonElement {
  const button = element("button", "image");
  button.type = "button";
  button.dataset.src = src;
  button.dataset.alt = alt;
  appendText(button, strings.loadImage(host));
  if (alt !== "") {
    // The space keeps the two apart when they are read aloud.
    appendText(button, " ");
    appendText(button.appendChild(element("span", "image-alt")), alt);
  }
  return button;
}

/** What stands in place of an image that cannot be shown here: its text, and a link to where it can be. */
export function failedImage({ src, host }: SafeImage, alt: string): HTMLElement {
  const node = element("span", "image-alt");
  appendText(node, alt === "" ? strings.imageFailed : `${alt} (${strings.imageFailed})`);
  appendText(node, " ");
  const link = node.appendChild(linkElement({ href: src, host }));
  appendText(link, strings.openImage(host));
  return node;
}

/** An image that is requested without saying from where. */
export function imageElement(src: string, alt: string): HTMLImageElement {
  const image = element("img", "image");
  image.setAttribute("alt", alt);
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
      if (token.type === "text") {
        return token.escaped ? token.text : decodeEntities(token.text);
      }
      if (token.type === "br") return "\n";
      if ("tokens" in token && token.tokens !== undefined) return plainText(token.tokens);
      return "text" in token ? token.text : "";
    })
    .join("");
}
