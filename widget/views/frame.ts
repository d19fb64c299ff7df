import { html, nothing, type TemplateResult } from "lit";
import type { FileDrop } from "../file-drop.ts";
import { strings } from "../strings.ts";
import * as icons from "./icons.ts";

export interface FrameModel {
  /** Whether the conversation has no messages: what is there then moves to the middle. */
  readonly empty: boolean;
  readonly header: TemplateResult;
  readonly content: unknown;
  /** What is to be known before one writes. */
  readonly status: unknown;
  readonly dock: TemplateResult;
  readonly announcements: TemplateResult;
  readonly drop: FileDrop;
  /** Present while the newest text is out of view. */
  readonly onJump: (() => void) | undefined;
  readonly onKeyDown: (event: KeyboardEvent) => void;
}

/** Header, transcript and dock, and what lies over them. */
export function frameView(model: FrameModel): TemplateResult {
  const { drop, onJump } = model;
  return html`
    <div
      class=${model.empty ? "chat is-empty" : "chat"}
      lang=${strings.lang}
      @keydown=${model.onKeyDown}
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
        ${onJump ? jumpView(onJump) : nothing} ${model.status}
        <slot name="before-composer"></slot>
        ${model.dock}
        <slot name="footer"></slot>
      </div>
      ${drop.render()} ${model.announcements}
    </div>
  `;
}

/** Brings a reader who scrolled up back to the newest text. */
function jumpView(onJump: () => void): TemplateResult {
  return html`
    <button type="button" part="jump" class="small-button jump" @click=${onJump}>
      ${icons.down}${strings.jump}
    </button>
  `;
}
