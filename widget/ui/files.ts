/** The files of a message, sent or still in the composer. */

import { html, nothing, type TemplateResult } from "lit";
import { type AttributePart, Directive, directive } from "lit/directive.js";
import { MEDIA_TYPES } from "../../server/protocol/attachments.ts";
import { formatBytes } from "../i18n/format.ts";
import type { Strings } from "../i18n/strings.ts";
import type { SentFile } from "../session/messages.ts";
import { icons } from "./icons.ts";

/** The address of a picture. It lasts until the picture is loaded: what is shown needs it no longer. */
class PictureUrl extends Directive {
  #picture: Blob | undefined;
  #url = "";

  override update({ element }: AttributePart, [picture]: [Blob]): string {
    if (picture === this.#picture) return this.#url;
    this.#picture = picture;
    const url = URL.createObjectURL(picture);
    this.#url = url;
    const revoke = () => URL.revokeObjectURL(url);
    for (const type of ["load", "error"]) element.addEventListener(type, revoke, { once: true });
    return url;
  }

  override render(_picture: Blob): string {
    return this.#url;
  }
}

const pictureUrl = directive(PictureUrl);

/** `renderButton` draws what takes a file out again. */
export function renderFiles<Shown extends SentFile>(
  files: readonly Shown[],
  className: "draft-files" | "sent-files",
  strings: Strings,
  renderButton?: (file: Shown) => TemplateResult,
): TemplateResult | typeof nothing {
  if (files.length === 0) return nothing;
  return html`
    <ul part="attachments" class=${className} aria-label=${strings.attachedFiles}>
      ${files.map(
        (file) => html`
          <li part="attachment" class=${file.picture ? "chip picture" : "chip"}>
            ${
              file.picture
                ? html`<img src=${pictureUrl(file.picture)} alt=${file.name} title=${file.name} />`
                : renderLabel(file, strings)
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
