import { html, nothing, type TemplateResult } from "lit";
import type { FileDrop } from "../file-drop.ts";
import { strings } from "../strings.ts";

export interface FrameModel {
  /** Whether the conversation has no messages: what is there then moves to the middle. */
  readonly empty: boolean;
  readonly header: TemplateResult;
  readonly content: unknown;
  /** What is to be known before one writes. */
  readonly status: unknown;
  readonly dock: TemplateResult;
  /** Stands below the composer. */
  readonly disclaimer: string | undefined;
  readonly announcements: TemplateResult;
  readonly drop: FileDrop;
  /** The way to the newest text, while that is out of view. */
  readonly jump: unknown;
  readonly onKeyDown: (event: KeyboardEvent) => void;
}

/**
 * Header, transcript and dock, and what lies over them. The parts of `<agent-chat>`, in these and all views below:
 *
 * @csspart header - The bar at the top.
 * @csspart theme-toggle - The button between light and dark.
 * @csspart reset - The button for a new conversation.
 * @csspart forget-key - The button that forgets the saved key.
 * @csspart messages - The scrolling transcript.
 * @csspart message - One message; with `user` or `assistant`.
 * @csspart user - A message of the person.
 * @csspart assistant - A message of the agent.
 * @csspart markdown - The text of an answer.
 * @csspart code - A block of code, with its header.
 * @csspart table - The box in which a table scrolls.
 * @csspart steps - Thoughts and tool calls in a row; from three on they fold into one line.
 * @csspart thinking - A collapsible thinking trace.
 * @csspart tool - A collapsible tool call.
 * @csspart note - A sentence about an answer that did not end by itself.
 * @csspart error - A failure.
 * @csspart retry - The button to try again.
 * @csspart edit - The button that changes a message of the person.
 * @csspart queued - What is said under a message that waits for the connection.
 * @csspart take-back - The button that removes such a message.
 * @csspart ask-again - The button for another answer.
 * @csspart copy - A button that copies.
 * @csspart rate-up - The thumb for a good answer.
 * @csspart rate-down - The thumb for a bad one.
 * @csspart feedback-form - The form that asks what was wrong.
 * @csspart empty - The greeting.
 * @csspart suggestions - The list of first messages.
 * @csspart suggestion - One of them.
 * @csspart jump - The button to the newest text.
 * @csspart connection - What is said while the server cannot be reached.
 * @csspart editing - What is said while a message is changed.
 * @csspart cancel-edit - The button that leaves it as it was.
 * @csspart composer - The card with the text field.
 * @csspart input - The text field.
 * @csspart attach - The button for files.
 * @csspart attachments - The files of a message.
 * @csspart attachment - One file.
 * @csspart remove - The button that takes a file out again.
 * @csspart upload - How much of the files of a message has left.
 * @csspart refusals - Why files were not taken.
 * @csspart dismiss - The button that closes them.
 * @csspart send - The button that sends.
 * @csspart stop - The button that stops the answer.
 * @csspart disclaimer - The line below the composer.
 * @csspart key-form - The form that asks for a key.
 */
export function frameView(model: FrameModel): TemplateResult {
  const { drop, disclaimer } = model;
  return html`
    <div
      class=${model.empty ? "chat is-empty" : "chat"}
      lang=${strings.lang}
      @keydown=${(event: KeyboardEvent) => {
        keepInside(event);
        model.onKeyDown(event);
      }}
      @keypress=${keepInside}
      @keyup=${keepInside}
      @dragover=${drop.dragOver}
      @dragleave=${drop.dragLeave}
      @drop=${drop.drop}
    >
      ${model.header}
      <div
        part="messages"
        class="scroller"
        role="log"
        aria-live="off"
        aria-label=${strings.conversation}
        tabindex="0"
      >
        <div class="column">${model.content}</div>
      </div>
      <div class="dock">
        ${model.jump} ${model.status}
        <slot name="before-composer"></slot>
        ${model.dock}
        <slot name="footer">
          ${disclaimer ? html`<p part="disclaimer" class="disclaimer" dir="auto">${disclaimer}</p>` : nothing}
        </slot>
      </div>
      ${drop.render()} ${model.announcements}
    </div>
  `;
}

/**
 * Typing is not for the page: it sees the element where the text field is, and would take "/" or "s" for its shortcut. What
 * moves the focus, closes or is pressed with Ctrl or ⌘ goes on.
 */
function keepInside(event: KeyboardEvent): void {
  const [field] = event.composedPath();
  if (event.ctrlKey || event.metaKey || /^(Escape|Tab)$/.test(event.key)) return;
  if (field instanceof Element && field.matches("textarea,input")) event.stopPropagation();
}
