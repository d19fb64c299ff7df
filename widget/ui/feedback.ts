/** Thumbs up and down on answers. Loaded if the page enables them. */

import { html, nothing, type PropertyValues, type TemplateResult } from "lit";
import "../i18n/add-part-texts.ts";
import type { AssistantMessage, Failure, Feedback, FeedbackReason } from "../conversations/messages.ts";
import { failureText, type Strings } from "../i18n/strings.ts";
import styles from "../styles/feedback.css";
import { partSheets } from "../styles/part-sheets.ts";
import { renderActions } from "./actions.ts";
import { ChatPart } from "./chat-part.ts";
import type { Action } from "./extensions.ts";
import { icon } from "./icons.ts";
import { isTaken } from "./keys.ts";

/** The text of each reason. */
const REASONS = {
  incorrect: "reasonIncorrect",
  incomplete: "reasonIncomplete",
  off_topic: "reasonOffTopic",
  harmful: "reasonHarmful",
} as const satisfies Record<FeedbackReason, string>;

/** The longest comment, in characters: enough for a person, and not too much for any server. */
const MAX_COMMENT = 2_000;

const THUMB =
  "M7.5 11.5H5A1.5 1.5 0 0 0 3.5 13v5A1.5 1.5 0 0 0 5 19.5h2.5zm0 0l3.6-7.3a2 2 0 0 1 2.6 2.5l-.9 2.8h4.9a2.3 2.3 0 0 1 2.2 2.8l-1.1 5.4a2.3 2.3 0 0 1-2.2 1.8H7.5z";
const thumbUp = icon(THUMB);
const thumbDown = icon(THUMB, "icon upside-down");

const thumbs = ({ rateUp, rateDown }: Strings): readonly Action<FeedbackElement, TemplateResult>[] => [
  {
    name: "rate-up",
    label: rateUp,
    icon: thumbUp,
    pressed: ({ message }) => message.feedback?.rating === "up",
    run: (feedback, event) => feedback.press("up", event),
  },
  {
    name: "rate-down",
    label: rateDown,
    icon: thumbDown,
    pressed: ({ message }) => message.feedback?.rating === "down",
    run: (feedback, event) => feedback.press("down", event),
  },
];

/** Thumbs up and down, and after thumbs down a form that asks why. A second press withdraws a rating. */
export class FeedbackElement extends ChatPart {
  static override readonly sheets = partSheets(styles);
  static override properties = { message: { attribute: false }, isAsking: { state: true }, failure: { state: true } };
  message!: AssistantMessage;
  /** Why the last rating did not reach the server. */
  private failure: Failure | undefined;
  /** Whether the form is open. */
  private isAsking = false;

  protected override updated(changed: PropertyValues): void {
    if (changed.has("isAsking")) this.querySelector("form")?.scrollIntoView({ block: "nearest" });
  }

  protected override render(): TemplateResult {
    const { strings } = this.context;
    const { reason, comment } = this.message.feedback ?? {};
    const saidWhy = reason !== undefined || comment !== undefined;
    return html`
      ${renderActions(thumbs(strings), this)}
      ${this.failure ? html`<span class="thanks">${failureText(this.failure, strings)}</span>` : nothing}
      ${saidWhy && !this.isAsking && !this.failure ? html`<span class="thanks">${strings.feedbackThanks}</span>` : nothing}
      ${this.isAsking ? this.#renderForm() : nothing}
    `;
  }

  #renderForm(): TemplateResult {
    const { strings } = this.context;
    return html`
      <form part="feedback-form" class="feedback-form" @submit=${this.#submit} @keydown=${this.#keyDown}>
        <fieldset class="choices">
          <legend>${strings.feedbackQuestion}</legend>
          ${Object.entries(REASONS).map(
            ([reason, text]) => html`
              <label class="choice">
                <input type="radio" name="reason" value=${reason} />${strings[text]}
              </label>
            `,
          )}
        </fieldset>
        <textarea
          class="field"
          name="comment"
          rows="2"
          dir="auto"
          maxlength=${MAX_COMMENT}
          aria-label=${strings.feedbackComment}
          placeholder=${strings.feedbackComment}
        ></textarea>
        <div class="choices">
          <button type="button" class="small-button" @click=${this.#close}>${strings.feedbackClose}</button>
          <button type="submit" class="small-button filled">${strings.submit}</button>
        </div>
      </form>
    `;
  }

  press(pressed: Feedback["rating"], event: MouseEvent): void {
    // Ignores the second click of a double click.
    if (event.detail > 1) return;
    const { strings } = this.context;
    const rating = pressed === this.message.feedback?.rating ? undefined : pressed;
    void this.#rate(rating && { rating });
    if (rating) this.context.actions.announce(rating === "down" ? strings.feedbackQuestion : strings.feedbackThanks);
    this.#show(rating === "down");
  }

  #show(isAsking: boolean): void {
    if (isAsking === this.isAsking) return;
    this.context.actions.holdScroll();
    this.isAsking = isAsking;
  }

  async #rate(feedback: Feedback | undefined): Promise<void> {
    const { strings, actions } = this.context;
    this.failure = undefined;
    this.failure = await actions.rate({ ...this.message, feedback });
    if (this.failure) actions.alert(failureText(this.failure, strings));
  }

  readonly #close = (): void => {
    // Before the form is removed, which would lose the focus.
    this.querySelector<HTMLElement>('[part="rate-down"]')?.focus({ preventScroll: true });
    this.#show(false);
  };

  readonly #submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const data = new FormData(event.currentTarget as HTMLFormElement);
    const reason = data.get("reason") as FeedbackReason | null;
    const comment = String(data.get("comment")).trim();
    this.#close();
    if (reason === null && comment === "") return;
    void this.#rate({ rating: "down", ...(reason && { reason }), ...(comment && { comment }) });
    this.context.actions.announce(this.context.strings.feedbackThanks);
  };

  readonly #keyDown = (event: KeyboardEvent): void => {
    if (event.key !== "Escape" || isTaken(event)) return;
    // Escape only closes the form: it neither closes the panel around the chat nor stops an answer.
    event.preventDefault();
    this.#close();
  };
}
