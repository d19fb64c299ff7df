import { html, nothing, type PropertyValues, type TemplateResult } from "lit";
import type { SentFile } from "../session/messages.ts";
import { adoptSheet, sheetOf } from "../styles/adopt.ts";
import styles from "../styles/upload.css";
import { ChatPart } from "./chat-part.ts";

/** Smaller files are sent before a bar could be read. */
const WORTH_SHOWING_BYTES = 262_144;

const CHECK_EVERY_MS = 100;

const sheet = sheetOf(styles);

/**
 * Below the files of a message, how much of them has been sent. It keeps itself up to date, and nothing else is redrawn
 * meanwhile.
 */
export class UploadElement extends ChatPart {
  static override properties = {
    files: { attribute: false },
    isSending: { attribute: false },
    unsent: { attribute: false },
    remaining: { state: true },
  };
  files: readonly SentFile[] = [];
  /** Whether the message is on its way, or being answered. */
  isSending = false;
  /** See `MessageList`. */
  unsent: () => number = () => 0;
  /** The last result of `unsent`. */
  private remaining = 0;
  #timer: ReturnType<typeof setInterval> | undefined;

  override connectedCallback(): void {
    super.connectedCallback();
    adoptSheet(this, sheet);
    this.#watch();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearInterval(this.#timer);
  }

  protected override updated(changed: PropertyValues<this>): void {
    if (changed.has("isSending")) this.#watch();
  }

  protected override render(): TemplateResult | typeof nothing {
    if (this.remaining === 0) return nothing;
    const { uploading, lang } = this.context.strings;
    // As base64, which has 4 characters for 3 bytes.
    const length = (this.#bytes / 3) * 4;
    const share = 1 - this.remaining / Math.max(this.remaining, length);
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

  get #bytes(): number {
    return this.files.reduce((sum, { size = 0 }) => sum + size, 0);
  }

  /** Until all of the message has been sent. After a lost connection it is sent again. */
  #watch(): void {
    clearInterval(this.#timer);
    if (this.isSending && this.#bytes >= WORTH_SHOWING_BYTES)
      this.#timer = setInterval(() => this.#check(), CHECK_EVERY_MS);
    else this.remaining = 0;
  }

  #check(): void {
    const wasSent = this.remaining > 0 && this.unsent() === 0;
    this.remaining = this.unsent();
    if (wasSent) clearInterval(this.#timer);
  }
}
