import { html, nothing, type TemplateResult } from "lit";
import { MEDIA_TYPES } from "../../server/protocol/attachments.ts";
import type { AttachmentDraft, DraftFile } from "../attachment-draft.ts";
import { formatBytes } from "../format.ts";
import { strings } from "../strings.ts";
import type { SentFile } from "../transcript.ts";
import * as icons from "./icons.ts";

/** The files of the message that is being written. */
export function draftFilesView(
  files: readonly DraftFile[],
  onRemove: (id: number) => void,
): TemplateResult | typeof nothing {
  if (files.length === 0) return nothing;
  return html`
    <ul part="attachments" class="draft-files" aria-label=${strings.attachedFiles}>
      ${files.map(
        (file) => html`
          <li part="attachment" class=${file.url === undefined ? "chip" : "chip picture"}>
            ${file.url === undefined ? fileLabel(file) : thumbnail(file.name, file.url)}
            <button
              type="button"
              class="remove"
              aria-label=${strings.remove(file.name)}
              title=${strings.remove(file.name)}
              @click=${() => onRemove(file.id)}
            >
              ${icons.close}
            </button>
          </li>
        `,
      )}
    </ul>
  `;
}

/** The files of a message that was sent. */
export function sentFilesView(files: readonly SentFile[]): TemplateResult | typeof nothing {
  if (files.length === 0) return nothing;
  return html`
    <ul class="sent-files" aria-label=${strings.attachedFiles}>
      ${files.map(
        (file) => html`
          <li part="attachment" class=${file.url === undefined ? "chip" : "chip picture"}>
            ${file.url === undefined ? fileLabel(file) : thumbnail(file.name, file.url)}
          </li>
        `,
      )}
    </ul>
  `;
}

/** Why files were not taken: in place, until the person has read it. */
export function refusalsView(draft: AttachmentDraft): TemplateResult | typeof nothing {
  if (draft.refusals.length === 0) return nothing;
  return html`
    <div part="refusals" class="refusals">
      ${icons.alert}
      <ul class="reasons">
        ${draft.refusals.map((refusal) => html`<li>${refusal}</li>`)}
      </ul>
      <button
        type="button"
        class="icon-button"
        aria-label=${strings.dismiss}
        title=${strings.dismiss}
        @click=${() => draft.dismissRefusals()}
      >
        ${icons.close}
      </button>
    </div>
  `;
}

function thumbnail(name: string, url: string): TemplateResult {
  return html`<img src=${url} alt=${name} title=${name} decoding="async" />`;
}

function fileLabel(
  file: Pick<DraftFile, "name" | "mediaType"> & { size?: number },
): TemplateResult {
  const size = file.size === undefined ? "" : ` · ${formatBytes(file.size)}`;
  return html`
    <span class="file-icon">${icons.file}</span>
    <span class="file-text">
      <span class="file-name" title=${file.name}>${file.name}</span>
      <span class="file-kind">${MEDIA_TYPES[file.mediaType].label}${size}</span>
    </span>
  `;
}
