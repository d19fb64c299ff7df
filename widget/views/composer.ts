import { html, nothing, type TemplateResult } from "lit";
import { strings } from "../strings.ts";
import * as icons from "./icons.ts";

export interface ComposerModel {
  /** Empty until the server has said who it is. */
  readonly agent: string;
  /** Media types for the file picker; empty hides it. Absent until the server has named them. */
  readonly accept: readonly string[] | undefined;
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
  const { agent, accept } = model;
  // Its place is kept until the server has answered: the text must not move under the cursor.
  const attachable = accept === undefined || accept.length > 0;
  return html`
    <form part="composer" class="composer" @submit=${model.onSubmit}>
      ${model.refusals} ${model.files}
      <div class=${attachable ? "composer-row attachable" : "composer-row"}>
        ${accept?.length ? attachView(accept, model) : nothing}
        <textarea
          part="input"
          rows="1"
          dir="auto"
          enterkeyhint="send"
          autocomplete="off"
          aria-label=${strings.composerLabel}
          placeholder=${agent === "" ? strings.composerLabel : strings.placeholder(agent)}
          @input=${model.onInput}
          @keydown=${model.onKeyDown}
          @paste=${model.onPaste}
        ></textarea>
        ${model.busy ? stopButton(model) : sendButton(model)}
      </div>
    </form>
  `;
}

function attachView(
  accept: readonly string[],
  { onPick, onAttach }: ComposerModel,
): TemplateResult {
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
      class="round attach"
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
