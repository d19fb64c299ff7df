import { html, nothing, type TemplateResult } from "lit";
import { strings } from "../strings.ts";
import { iconButton } from "./header.ts";
import * as icons from "./icons.ts";

const FILLED = "icon-button round filled";

export interface ComposerModel {
  /** Empty until the server has said who it is. */
  readonly agent: string;
  /** Media types for the file picker; empty hides it. Absent until the server has named them. */
  readonly accept: readonly string[] | undefined;
  readonly files: unknown;
  readonly refusals: TemplateResult | typeof nothing;
  readonly busy: boolean;
  readonly stopping: boolean;
  readonly canSend: boolean;
  readonly onInput: () => void;
  readonly onComposed: () => void;
  readonly onKeyDown: (event: KeyboardEvent) => void;
  readonly onPaste: (event: ClipboardEvent) => void;
  readonly onPick: (event: Event) => void;
  readonly onAttach: () => void;
  readonly onSend: () => void;
  readonly onStop: (click: UIEvent) => void;
}

/** One card: files, text, and the button that sends or stops. */
export function composerView(model: ComposerModel): TemplateResult {
  const { agent, accept } = model;
  // Its place is kept until the server has answered: the text must not move under the cursor.
  const attachable = accept === undefined || accept.length > 0;
  return html`
    <div part="composer" class="composer" @mousedown=${focusField}>
      ${model.refusals} ${model.files}
      <div class=${attachable ? "composer-row attachable" : "composer-row"}>
        ${attachable ? attachView(accept, model) : nothing}
        <textarea
          id="input"
          part="input"
          rows="1"
          aria-label=${strings.composerLabel}
          placeholder=${agent === "" ? strings.composerLabel : strings.placeholder(agent)}
          @input=${model.onInput}
          @keydown=${model.onKeyDown}
          @compositionend=${model.onComposed}
          @paste=${model.onPaste}
        ></textarea>
        ${
          // One element for both, which keeps the focus.
          model.busy
            ? iconButton("stop", strings.stop, icons.stop, model.onStop, model.stopping, FILLED)
            : iconButton("send", strings.send, icons.send, model.onSend, !model.canSend, FILLED)
        }
      </div>
    </div>
  `;
}

/** The card looks like one field: a press on its edge, between its buttons or beside its files is meant for the text. */
function focusField(event: MouseEvent): void {
  const target = event.target as Element;
  if (!target.matches(".composer,.composer-row,.draft-files")) return;
  // Which would take the focus away again.
  event.preventDefault();
  (event.currentTarget as Element).querySelector("textarea")?.focus();
}

function attachView(accept: readonly string[] | undefined, { onPick, onAttach }: ComposerModel): TemplateResult {
  return html`
    <input
      type="file"
      multiple
      hidden
      accept=${accept}
      @change=${onPick}
    />
    ${iconButton("attach", strings.attach, icons.plus, onAttach, !accept, "icon-button round attach")}
  `;
}
