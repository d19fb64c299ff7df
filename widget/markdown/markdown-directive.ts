import { noChange } from "lit";
import { Directive, directive, type ElementPart, type PartInfo, PartType } from "lit/directive.js";
import { MarkdownStream } from "./markdown-stream.ts";
import type { MarkdownStrings } from "./markdown-strings.ts";

/** What a host may set besides the text. */
export interface MarkdownOptions {
  /** Replaces strings of `markdownStrings`. Read once, when the element is first rendered. */
  readonly strings?: Partial<MarkdownStrings>;
}

class MarkdownDirective extends Directive {
  #stream: MarkdownStream | undefined;

  constructor(part: PartInfo) {
    super(part);
    if (part.type !== PartType.ELEMENT) {
      throw new Error(
        "markdown() stands inside the tag of the element that it fills, not in an attribute or between tags",
      );
    }
  }

  override render(_text: string, _streaming: boolean, _options?: MarkdownOptions): unknown {
    return noChange;
  }

  override update(
    part: ElementPart,
    [text, streaming, options]: [text: string, streaming: boolean, options?: MarkdownOptions],
  ): unknown {
    this.#stream ??= new MarkdownStream(part.element as HTMLElement, options?.strings);
    this.#stream.update(text, streaming);
    return noChange;
  }
}

/**
 * Renders Markdown as the children of the element that it stands in. `text` is the whole text so far; `streaming` says
 * that more may come.
 */
export const markdown = directive(MarkdownDirective);
