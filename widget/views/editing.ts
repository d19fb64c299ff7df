import { html, type TemplateResult } from "lit";
import { strings } from "../strings.ts";
import { iconButton } from "./header.ts";
import * as icons from "./icons.ts";

/** Stands above the composer while an earlier message is changed. */
export function editingView(withoutFiles: boolean, onCancel: () => void): TemplateResult {
  return html`
    <div part="editing" class="status-line">
      ${icons.edit}
      <p>${strings.editing} ${withoutFiles ? strings.filesGone : ""}</p>
      ${iconButton("cancel-edit", strings.cancelEdit, icons.close, onCancel)}
    </div>
  `;
}
