import { noChange } from "lit";
import { Directive, directive, type ElementPart, type PartInfo, PartType } from "lit/directive.js";
import { MarkdownStream } from "./markdown-stream.ts";

class MarkdownDirective extends Directive {
  #stream: MarkdownStream | undefined;

  constructor(part: PartInfo) {
    super(part);
    if (part.type !== PartType.ELEMENT) {
      throw new Error("markdown() stands inside the tag of the element that it fills");
    }
  }

  override render(_text: string, _streaming: boolean): unknown {
    return noChange;
  }

  override update(part: ElementPart, [text, streaming]: [text: string, streaming: boolean]): unknown {
    this.#stream ??= new MarkdownStream(part.element as HTMLElement);
    this.#stream.update(text, streaming);
    return noChange;
  }
}

/**
 * Renders Markdown as the children of the element that it stands in. `text` is the whole text so far; `streaming` says
 * that more may come.
 */
export const markdown = directive(MarkdownDirective);
