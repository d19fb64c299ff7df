/** The files of a message, sent or still in the composer. */

import { html, nothing, type TemplateResult } from "lit";
import { MEDIA_TYPES } from "../../server/protocol/attachments.ts";
import { formatBytes } from "../i18n/format.ts";
import type { Strings } from "../i18n/strings.ts";
import type { SentFile } from "../session/messages.ts";
import { icons } from "./icons.ts";

/** `renderButton` draws what takes a file out again. */
export function renderFiles<File extends SentFile>(
  files: readonly File[],
  className: "draft-files" | "sent-files",
  strings: Strings,
  renderButton?: (file: File) => TemplateResult,
): TemplateResult | typeof nothing {
  if (files.length === 0) return nothing;
  return html`
    <ul part="attachments" class=${className} aria-label=${strings.attachedFiles}>
      ${files.map(
        (file) => html`
          <li part="attachment" class=${file.previewUrl === undefined ? "chip" : "chip picture"}>
            ${
              file.previewUrl === undefined
                ? renderLabel(file, strings)
                : html`<img src=${file.previewUrl} alt=${file.name} title=${file.name} />`
            }
            ${renderButton?.(file) ?? nothing}
          </li>
        `,
      )}
    </ul>
  `;
}

function renderLabel({ name, mediaType, size }: SentFile, { lang }: Strings): TemplateResult {
  return html`
    <span class="file-icon">${icons.file}</span>
    <span class="file-text">
      <span class="file-name" title=${name}>${name}</span>
      <span class="file-kind">
        ${MEDIA_TYPES[mediaType].label}${size === undefined ? "" : ` · ${formatBytes(size, lang)}`}
      </span>
    </span>
  `;
}
