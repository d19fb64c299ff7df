import { html, nothing, type TemplateResult } from "lit";
import { MEDIA_TYPES } from "../../server/protocol/attachments.ts";
import type { AttachmentDraft, DraftFile } from "../attachment-draft.ts";
import { formatBytes } from "../format.ts";
import { strings } from "../strings.ts";
import type { SentFile } from "../transcript.ts";
import { fileIcon } from "./file-icon.ts";
import { iconButton } from "./header.ts";
import * as icons from "./icons.ts";
import { spinner } from "./step-icons.ts";
import { type Sending, uploadView } from "./upload.ts";

/** The files of a message: as `SentFile`s, or as those of the draft with a way to take each out. */
export function filesView<File extends SentFile>(
  files: readonly File[],
  className: "draft-files" | "sent-files",
  onRemove?: (file: File) => void,
): TemplateResult | typeof nothing {
  if (files.length === 0) return nothing;
  return html`
    <ul part="attachments" class=${className} aria-label=${strings.attachedFiles}>
      ${files.map(
        (file) => html`
          <li part="attachment" class=${file.url === undefined ? "chip" : "chip picture"}>
            ${file.url === undefined ? fileLabel(file) : thumbnail(file.name, file.url)}
            ${onRemove ? removeButton(file.name, () => onRemove(file)) : nothing}
          </li>
        `,
      )}
    </ul>
  `;
}

/** Those of a sent message; with the session, if it is the last one, also how much of them has left. */
export function sentFilesView(files: readonly SentFile[], sending: Sending | false): unknown {
  return [filesView(files, "sent-files"), sending ? uploadView(files, sending) : nothing];
}

function removeButton(name: string, onRemove: () => void): TemplateResult {
  const remove = (event: Event) => {
    onRemove();
    // A click that no pointer made counts none.
    if (event instanceof MouseEvent && event.detail === 0) focusNeighbour(event);
  };
  return iconButton("remove", strings.remove(name), icons.close, remove, false, "remove");
}

/** Who takes out several files with the keyboard goes on with the next one; after the last the text field has the focus. */
function focusNeighbour({ currentTarget }: Event): void {
  const item = currentTarget instanceof Element ? currentTarget.closest("li") : null;
  // The next file moves up into this one's place.
  const place = item?.nextElementSibling ? item : item?.previousElementSibling;
  place?.querySelector("button")?.focus();
}

/** What becomes of files: which are still being read, and why others were not taken, until the person has read it. */
export function refusalsView(draft: AttachmentDraft): TemplateResult {
  return html`
    ${draft.pending.map(({ name }) => html`<p class="reading">${spinner}${name}</p>`)}
    ${draft.refusals.length === 0 ? nothing : reasonsView(draft)}
  `;
}

function reasonsView(draft: AttachmentDraft): TemplateResult {
  return html`
    <div part="refusals" class="refusals">
      ${icons.alert}
      <ul class="reasons">
        ${draft.refusals.map((refusal) => html`<li>${refusal}</li>`)}
      </ul>
      ${iconButton("dismiss", strings.dismiss, icons.close, () => draft.dismissRefusals())}
    </div>
  `;
}

function thumbnail(name: string, url: string): TemplateResult {
  return html`<img src=${url} alt=${name} title=${name} />`;
}

function fileLabel(file: Pick<DraftFile, "name" | "mediaType"> & { size?: number | undefined }): TemplateResult {
  const size = file.size === undefined ? "" : ` · ${formatBytes(file.size)}`;
  return html`
    <span class="file-icon">${fileIcon}</span>
    <span class="file-text">
      <span class="file-name" title=${file.name}>${file.name}</span>
      <span class="file-kind">${MEDIA_TYPES[file.mediaType].label}${size}</span>
    </span>
  `;
}
