import { html, nothing, type TemplateResult } from "lit";

import type { ChatSession } from "../session/chat-session.ts";
import { adoptSheet, sheetOf } from "../styles/adopt.ts";
import styles from "../styles/upload.css";
import { ChatPart } from "./chat-part.ts";

const CHECK_EVERY_MS = 100;

const sheet = sheetOf(styles);

/**
 * Below the files of a message, how much of them has been sent. It keeps itself up to date, and nothing else is redrawn
 * meanwhile.
 */
export class UploadElement extends ChatPart {
  static override properties = {
    session: { attribute: false },
    bytes: { attribute: false },
    unsent: { state: true },
  };
  session!: Pick<ChatSession, "unsent">;
  /** Size of all files together. */
  bytes = 0;
  /** Characters of the message that have not been sent yet; infinite where the browser does not say how many. */
  private unsent = 0;
  #timer: ReturnType<typeof setInterval> | undefined;

  override connectedCallback(): void {
    super.connectedCallback();
    adoptSheet(this, sheet);
    // After a lost connection the message is sent again.
    this.#timer = setInterval(() => {
      this.unsent = this.session.unsent;
    }, CHECK_EVERY_MS);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearInterval(this.#timer);
  }

  protected override render(): TemplateResult | typeof nothing {
    if (this.unsent === 0) return nothing;
    const { uploading, lang } = this.context.strings;
    // As base64, which has 4 characters for 3 bytes.
    const length = (this.bytes / 3) * 4;
    const share = 1 - this.unsent / Math.max(this.unsent, length);
    const isKnown = Number.isFinite(share);
    const percent = Math.floor(share * 100);
    const words = isKnown ? (percent / 100).toLocaleString(lang, { style: "percent" }) : "";
    return html`<div
      part="upload"
      class="upload"
      role="progressbar"
      aria-label=${uploading}
      aria-valuenow=${isKnown ? percent : nothing}
      .style=${`--_done: ${isKnown ? percent : 0}%`}
    >
      ${uploading} ${words}
    </div>`;
  }
}
