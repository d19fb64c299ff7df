/** Buttons for an answer that has failed. Loaded while an empty chat is idle. */

import { html, nothing, type TemplateResult } from "lit";
import "../i18n/add-part-texts.ts";
import { type Failure, IN_THE_LOG } from "../conversations/messages.ts";
import { copyOn } from "./actions.ts";
import { ChatPart } from "./chat-part.ts";
import { Clock } from "./controllers/clock.ts";
import { retryButton, smallButton } from "./controls.ts";

/** Failures because the server does not accept the state: only a new conversation helps. */
const STATE_LOST = /^(conversation_expired|invalid_state)$/;

/** Failures that only the owner of the server can fix, besides those in the log that are not retryable. */
const FOR_OWNER = /^(internal|unauthorized|forbidden|unreadable)$/;

export class WaysOnElement extends ChatPart {
  static override properties = { failure: { attribute: false }, canRetry: { attribute: false } };
  failure!: Failure;
  /** Whether the last answer has failed, and another one can be asked for. */
  canRetry = false;

  constructor() {
    super();
    new Clock(this, () => this.#retryIn > 0);
  }

  protected override render(): TemplateResult {
    const { strings, actions } = this.context;
    const { code, retryable } = this.failure;
    const needsOwner = FOR_OWNER.test(code) || (!retryable && IN_THE_LOG.test(code));
    return html`
      ${needsOwner ? this.#renderReport() : nothing}
      ${retryable && this.canRetry ? this.#renderRetry() : nothing}
      ${STATE_LOST.test(code) && this.canRetry ? retryButton(strings.startOver, () => actions.retry({ afresh: true })) : nothing}
      ${code === "context_too_long" && this.canRetry ? smallButton("reset", strings.newConversation, () => actions.closeConversation()) : nothing}
    `;
  }

  /** Disabled until the server accepts a message again, if it has said when. */
  #renderRetry(): TemplateResult {
    const { strings, actions } = this.context;
    const seconds = this.#retryIn;
    const label = seconds > 0 ? strings.retryIn(formatClock(seconds, strings.lang)) : strings.retry;
    return retryButton(label, () => actions.retry(), seconds > 0);
  }

  /** Seconds until the server accepts a message again; zero or negative when it does. */
  get #retryIn(): number {
    return this.canRetry ? Math.ceil(((this.failure.retryAt ?? 0) - Date.now()) / 1_000) : 0;
  }

  /** Copies a report for the owner: users can do nothing else. */
  #renderReport(): TemplateResult {
    const copy = (event: Event) =>
      void copyOn(event, ({ copyFailure }, button) => copyFailure(this.failure, button), this.context);
    return smallButton("copy", html`<span .textContent=${this.context.strings.copyReport}></span>`, copy);
  }
}

/** Formats a number of seconds as a countdown: "0:18", "1:00:05". */
function formatClock(seconds: number, lang: string): string {
  const [minute, second] = [Math.floor(seconds / 60), seconds % 60].map((part) => part % 60);
  const hours = Math.floor(seconds / 3600);
  const parts = hours > 0 ? [hours, minute, second] : [minute, second];
  return parts
    .map((part = 0, index) => part.toLocaleString(lang, { minimumIntegerDigits: index === 0 ? 1 : 2 }))
    .join(":");
}
