/** The files of a draft, those that are still being read, and why others were refused. */

import { html, nothing, type TemplateResult } from "lit";
import type { Strings } from "../i18n/strings.ts";
import { iconButton } from "../ui/buttons.ts";
import { renderFiles } from "../ui/files.ts";
import { icons } from "../ui/icons.ts";
import type { DraftFile, DraftFiles } from "./attachments.ts";

/** `onRemoved` is called when the person has taken a file out. */
export function renderDraftFiles(draft: DraftFiles, strings: Strings, onRemoved: () => void): unknown {
  return renderFiles(draft.files, "draft-files", strings, (file: DraftFile) =>
    iconButton({
      part: "remove",
      label: strings.remove(file.name),
      icon: icons.close,
      onClick: (event) => {
        draft.remove(file);
        onRemoved();
        // A click that no pointer made has a count of zero.
        if (event.detail === 0) focusNeighbour(event);
      },
      className: "remove",
    }),
  );
}

/** The keyboard goes on to the next file that can be taken out; after the last the text field has the focus. */
function focusNeighbour({ currentTarget }: Event): void {
  const item = (currentTarget as Element).closest("li");
  // The next file moves up into this one's place.
  const place = item?.nextElementSibling ? item : item?.previousElementSibling;
  place?.querySelector("button")?.focus();
}

export function renderRefusals(draft: DraftFiles, strings: Strings): TemplateResult {
  return html`
    ${draft.pending.map(({ name }) => html`<p class="reading">${icons.spinner}${name}</p>`)}
    ${draft.refusals.length === 0 ? nothing : renderReasons(draft, strings)}
  `;
}

function renderReasons(draft: DraftFiles, strings: Strings): TemplateResult {
  return html`
    <div part="refusals" class="refusals">
      ${icons.alert}
      <ul class="reasons">
        ${draft.refusals.map((refusal) => html`<li>${refusal(strings)}</li>`)}
      </ul>
      ${iconButton({
        part: "dismiss",
        label: strings.dismiss,
        icon: icons.close,
        onClick: () => draft.dismissRefusals(),
      })}
    </div>
  `;
}
