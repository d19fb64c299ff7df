import { html, type TemplateResult } from "lit";
import { strings } from "../strings.ts";
import { fileIcon } from "./file-icon.ts";

/** Lies over everything while files are dragged over the element. */
export function dropView(): TemplateResult {
  return html`
    <div class="drop" aria-hidden="true">
      <div class="drop-card">${fileIcon}<span>${strings.dropHere}</span></div>
    </div>
  `;
}
