import type { MarkedToken, Token, Tokens } from "marked";
import { decodeEntities } from "./entities.ts";
import type { MarkdownStrings } from "./markdown-strings.ts";
import { safeImage, safeLink } from "./safe-url.ts";
import { visibleText } from "./visible-text.ts";

/** What drawing needs besides the tokens. */
export interface Drawing {
  readonly document: Document;
  readonly strings: MarkdownStrings;
  /** External images that the reader has asked for. */
  readonly requestedImages: ReadonlySet<string>;
  /** Lexes the inline text that belongs to a block's token list. */
  inline(tokens: readonly Token[]): readonly MarkedToken[];
}

/** Creates an element with a class. Attributes that carry text from a message are set by the caller, after judging. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  drawing: Drawing,
  name: Name,
  className = "",
): HTMLElementTagNameMap[Name] {
  const node = drawing.document.createElement(name);
  if (className !== "") node.className = className;
  return node;
}

/** Appends text as text, joined to a text node that is already last so that growing text keeps its node. */
export function appendText(parent: HTMLElement, text: string): void {
  if (text === "") return;
  const last = parent.lastChild;
  if (last instanceof Text) last.appendData(visibleText(text, last.data));
  else parent.append(visibleText(text));
}

/** Draws inline tokens into an element. */
export function drawInline(
  parent: HTMLElement,
  tokens: readonly Token[],
  drawing: Drawing,
  inLink = false,
): void {
  for (const token of tokens) drawToken(parent, token as MarkedToken, drawing, inLink);
}

function drawToken(
  parent: HTMLElement,
  token: MarkedToken,
  drawing: Drawing,
  inLink: boolean,
): void {
  switch (token.type) {
    case "strong":
    case "em":
    case "del":
      drawInline(parent.appendChild(element(drawing, token.type)), token.tokens, drawing, inLink);
      return;
    case "codespan":
      appendText(parent.appendChild(element(drawing, "code")), token.text);
      return;
    case "br":
      parent.append(element(drawing, "br"));
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

function drawLink(
  parent: HTMLElement,
  token: Tokens.Link,
  drawing: Drawing,
  inLink: boolean,
): void {
  const link = inLink
    ? undefined
    : safeLink(token.autolink ? token.href : decodeEntities(token.href));
  const target = link === undefined ? parent : element(drawing, "a");
  if (token.autolink) appendText(target, token.text);
  else drawInline(target, token.tokens, drawing, inLink || link !== undefined);
  if (link === undefined) return;
  target.setAttribute("href", link.href);
  target.setAttribute("target", "_blank");
  target.setAttribute("rel", "noopener noreferrer nofollow");
  if (link.host !== "") target.setAttribute("title", link.host);
  parent.append(target);
}

function drawImage(
  parent: HTMLElement,
  token: Tokens.Image,
  drawing: Drawing,
  inLink: boolean,
): void {
  const alt = plainText(token.tokens);
  const source = decodeEntities(token.href);
  const image = safeImage(source);
  if (image !== undefined && (image.host === "" || drawing.requestedImages.has(image.src))) {
    parent.append(imageElement(image.src, alt, drawing));
    return;
  }
  // A button may not stand in a link, so there the image is its alternative text.
  if (image === undefined || inLink) {
    appendText(parent, alt || source);
    return;
  }
  const button = element(drawing, "button", "image");
  button.type = "button";
  button.dataset.src = image.src;
  button.dataset.alt = alt;
  appendText(button, `${drawing.strings.loadImage} ${image.host}`);
  if (alt !== "") {
    // The space keeps the two apart when they are read aloud.
    appendText(button, " ");
    appendText(button.appendChild(element(drawing, "span", "image-alt")), alt);
  }
  parent.append(button);
}

/** An image that is requested without saying from where. */
export function imageElement(
  src: string,
  alt: string,
  drawing: Pick<Drawing, "document">,
): HTMLImageElement {
  const image = drawing.document.createElement("img");
  image.className = "image";
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
