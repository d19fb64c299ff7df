/** What can be done about an answer that has failed. Loaded while an empty chat is idle. */

import { html, nothing, type TemplateResult } from "lit";
import "../i18n/add-part-texts.ts";
import { type Failure, IN_THE_LOG } from "../conversations/messages.ts";
import { copyOn } from "./actions.ts";
import { ChatPart } from "./chat-part.ts";
import { Clock } from "./controllers/clock.ts";
import { retryButton, smallButton } from "./controls.ts";

/** States that the server does not take: only a new conversation goes on. */
const STATE_LOST = /^(conversation_expired|invalid_state)$/;

/** Failures that only the owner of the server can end. Those in the log that cannot be tried again are others. */
const FOR_OWNER = /^(internal|unauthorized|forbidden|unreadable)$/;

export class WaysOnElement extends ChatPart {
  static override properties = { failure: { attribute: false }, canRetry: { attribute: false } };
  failure!: Failure;
  /** Whether it is that of the last answer, and another one can be asked for. */
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

  /** Waits until the server takes a message again, where it has said when. */
  #renderRetry(): TemplateResult {
    const { strings, actions } = this.context;
    const seconds = this.#retryIn;
    const label = seconds > 0 ? strings.retryIn(formatClock(seconds, strings.lang)) : strings.retry;
    return retryButton(label, () => actions.retry(), seconds > 0);
  }

  /** Seconds until the server takes a message again; not positive when it does. */
  get #retryIn(): number {
    return this.canRetry ? Math.ceil(((this.failure.retryAt ?? 0) - Date.now()) / 1_000) : 0;
  }

  /** For the owner, from a person who can do nothing else. */
  #renderReport(): TemplateResult {
    const copy = (event: Event) =>
      void copyOn(event, ({ copyFailure }, button) => copyFailure(this.failure, button), this.context);
    return smallButton("copy", html`<span .textContent=${this.context.strings.copyReport}></span>`, copy);
  }
}

/** "0:18", "1:00:05": what is left, in seconds. */
function formatClock(seconds: number, lang: string): string {
  const [minute, second] = [Math.floor(seconds / 60), seconds % 60].map((part) => part % 60);
  const hours = Math.floor(seconds / 3600);
  const parts = hours > 0 ? [hours, minute, second] : [minute, second];
  return parts
    .map((part = 0, index) => part.toLocaleString(lang, { minimumIntegerDigits: index === 0 ? 1 : 2 }))
    .join(":");
}
