import { html, nothing, type TemplateResult } from "lit";
import { strings } from "../strings.ts";
import * as icons from "./icons.ts";

export interface ComposerModel {
  readonly agent: string;
  /** Media types for the file picker; empty hides it. */
  readonly accept: readonly string[];
  readonly files: TemplateResult | typeof nothing;
  readonly refusals: TemplateResult | typeof nothing;
  readonly busy: boolean;
  readonly stopping: boolean;
  readonly canSend: boolean;
  readonly onInput: () => void;
  readonly onKeyDown: (event: KeyboardEvent) => void;
  readonly onPaste: (event: ClipboardEvent) => void;
  readonly onPick: (event: Event) => void;
  readonly onAttach: () => void;
  readonly onSubmit: (event: SubmitEvent) => void;
  readonly onStop: () => void;
}

/** One card: files, text, and the button that sends or stops. */
export function composerView(model: ComposerModel): TemplateResult {
  return html`
    <form part="composer" class="composer" @submit=${model.onSubmit}>
      ${model.refusals} ${model.files}
      <div class="composer-row">
        ${model.accept.length === 0 ? nothing : attachView(model)}
        <textarea
          part="input"
          rows="1"
          dir="auto"
          enterkeyhint="send"
          autocomplete="off"
          aria-label=${strings.composerLabel}
          placeholder=${strings.placeholder(model.agent)}
          @input=${model.onInput}
          @keydown=${model.onKeyDown}
          @paste=${model.onPaste}
        ></textarea>
        ${model.busy ? stopButton(model) : sendButton(model)}
      </div>
    </form>
  `;
}

function attachView({ accept, onPick, onAttach }: ComposerModel): TemplateResult {
  return html`
    <input
      class="file-input"
      type="file"
      multiple
      hidden
      accept=${accept.join(",")}
      aria-label=${strings.attach}
      @change=${onPick}
    />
    <button
      type="button"
      part="attach"
      class="round"
      aria-label=${strings.attach}
      title=${strings.attach}
      @click=${onAttach}
    >
      ${icons.plus}
    </button>
  `;
}

function sendButton({ canSend }: ComposerModel): TemplateResult {
  return html`
    <button
      type="submit"
      part="send"
      class="round filled"
      aria-label=${strings.send}
      title=${strings.send}
      ?disabled=${!canSend}
    >
      ${icons.send}
    </button>
  `;
}

function stopButton({ stopping, onStop }: ComposerModel): TemplateResult {
  return html`
    <button
      type="button"
      part="stop"
      class="round filled"
      aria-label=${strings.stop}
      title=${strings.stop}
      ?disabled=${stopping}
      @click=${onStop}
    >
      ${icons.stop}
    </button>
  `;
}
