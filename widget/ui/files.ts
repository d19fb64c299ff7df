/** The files of a message, sent or still in the composer. Loaded with the first one. */

import { html, nothing, type TemplateResult } from "lit";
import { type AttributePart, Directive, directive } from "lit/directive.js";
import "../i18n/add-part-texts.ts";
import { labelOf } from "../../server/protocol/attachments.ts";
import type { SentFile } from "../conversations/messages.ts";
import { formatBytes } from "../i18n/format.ts";
import type { Strings } from "../i18n/strings.ts";
import styles from "../styles/files.css";
import { partSheets } from "../styles/part-sheets.ts";
import { ChatPart } from "./chat-part.ts";
import { iconButton } from "./controls.ts";
import { icon, icons } from "./icons.ts";

const fileIcon = icon("M13.5 3.5H7.5a2 2 0 0 0-2 2v13a2 2 0 0 0 2 2h9a2 2 0 0 0 2-2v-10zm0 0v5h5");

/** Limits for the size of a picture in a sent message, in pixels. */
const MAX_WIDTH = 238;
const MAX_HEIGHT = 200;
const MIN_HEIGHT = 56;

/** The object URL of a picture. It is revoked once the picture is loaded, as the image on screen no longer needs it. */
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

/** Smaller uploads end before anybody could read a progress bar. */
const UPLOAD_BAR_FROM_BYTES = 262_144;

export class FilesElement<File extends SentFile> extends ChatPart {
  static override readonly sheets = partSheets(styles);
  static override properties = { files: { attribute: false }, isSending: { attribute: false } };
  files: readonly File[] = [];
  /** Whether the files are being sent. */
  isSending = false;
  /** Removes a file from the composer; absent for files of a sent message. */
  takeOut: ((file: File) => void) | undefined;
  /** Moves a pasted text, which the composer shows as a file, into its text field. */
  unfold: ((file: File) => void) | undefined;

  protected override render(): TemplateResult {
    const { strings } = this.context;
    return html`
      <ul
        part="attachments"
        class=${this.takeOut ? "draft-files" : "sent-files"}
        aria-label=${strings.attachedFiles}
      >
        ${this.files.map(
          (file) => html`
            <li part="attachment" class=${isPicture(file) ? "chip picture" : "chip"}>
              ${file.picture ? this.#renderPicture(file, file.picture) : this.#renderText(file)}
              ${this.takeOut ? this.#renderRemove(file, this.takeOut) : nothing}
            </li>
          `,
        )}
      </ul>
      ${this.isSending ? this.#renderUpload() : nothing}
    `;
  }

  /** Without a percentage: over HTTP, browsers do not report how much has been sent. */
  #renderUpload(): TemplateResult | typeof nothing {
    const bytes = this.files.reduce((sum, { size = 0 }) => sum + size, 0);
    if (bytes < UPLOAD_BAR_FROM_BYTES) return nothing;
    const { uploading } = this.context.strings;
    return html`<div part="upload" class="upload" role="progressbar" aria-label=${uploading}>${uploading}</div>`;
  }

  /** In a sent message the picture is a button, whose click `openLarge` handles, as for all images. */
  #renderPicture(file: File, picture: Blob): TemplateResult {
    const { name } = file;
    const { width, height } = shownSize(file);
    const image = html`<img
      src=${pictureUrl(picture)}
      alt=${name}
      title=${name}
      width=${width ?? nothing}
      height=${height ?? nothing}
    />`;
    return this.takeOut ? image : html`<button type="button" aria-haspopup="dialog">${image}</button>`;
  }

  #renderText(file: File): TemplateResult {
    const { strings } = this.context;
    if (!("text" in file)) return renderLabel(file, strings);
    return html`<button
      type="button"
      part="unfold"
      class="unfold"
      title=${strings.unfoldText}
      @click=${({ detail }: MouseEvent) => detail < 2 && this.unfold?.(file)}
    >
      ${renderLabel(file, strings, nothing)}
    </button>`;
  }

  #renderRemove(file: File, takeOut: (file: File) => void): TemplateResult {
    const press = (event: MouseEvent) => {
      takeOut(file);
      // `detail` is 0 if no pointer has made the click.
      if (event.detail === 0) focusNeighbour(event);
    };
    return iconButton("remove", this.context.strings.remove(file.name), icons.close, press, { className: "remove" });
  }
}

/** Focuses the remove button of the next file, else the previous. After the last file, the text field has the focus. */
function focusNeighbour({ currentTarget }: Event): void {
  const item = (currentTarget as Element).closest("li");
  // The next file will be redrawn in this list item.
  const place = item?.nextElementSibling ? item : item?.previousElementSibling;
  place?.querySelector<HTMLElement>(".remove")?.focus();
}

/** Whether to draw a picture, or a placeholder until it is read. */
const isPicture = ({ picture, isKept, width }: SentFile) => !!picture || (isKept && width);

/** Pixels reserved for a kept picture. None for one that is being sent: it may grow, and until then is short. */
function shownSize({ width, height, isKept }: SentFile): Pick<SentFile, "width" | "height"> {
  if (!width || !height || !isKept) return {};
  const shown = Math.max(MIN_HEIGHT, Math.min(height, MAX_HEIGHT, (MAX_WIDTH * height) / width));
  return { width: Math.round(Math.min(MAX_WIDTH, (shown * width) / height)), height: Math.round(shown) };
}

function renderLabel(file: SentFile, { lang }: Strings, title: unknown = file.name): TemplateResult {
  const { name, mediaType, size } = file;
  const { width, height } = shownSize(file);
  return html`
    ${isPicture(file) ? html`<canvas width=${width ?? nothing} height=${height ?? nothing}></canvas>` : nothing}
    <span class="file-icon">${fileIcon}</span>
    <span class="file-text">
      <span class="file-name" dir="auto" title=${title}>${name}</span>
      <span class="file-kind">
        <bdi>${labelOf(mediaType)}</bdi>${size === undefined ? "" : html` · <bdi>${formatBytes(size, lang)}</bdi>`}
      </span>
    </span>
  `;
}
