import { html, nothing, type TemplateResult } from "lit";
import type { Disclosure } from "../disclosure.ts";
import { strings } from "../strings.ts";
import type { Feedback, FeedbackReason, Reply } from "../transcript.ts";
import { iconButton } from "./header.ts";
import { icon } from "./icons.ts";

const THUMB_UP =
  "M7.5 11.5H5A1.5 1.5 0 0 0 3.5 13v5A1.5 1.5 0 0 0 5 19.5h2.5zm0 0l3.6-7.3a2 2 0 0 1 2.6 2.5l-.9 2.8h4.9a2.3 2.3 0 0 1 2.2 2.8l-1.1 5.4a2.3 2.3 0 0 1-2.2 1.8H7.5z";

const up = icon(THUMB_UP);
const down = icon(THUMB_UP, "icon upside-down");

/** The words of each reason; the codes are what a page is told. */
const REASONS = {
  incorrect: "reasonIncorrect",
  incomplete: "reasonIncomplete",
  off_topic: "reasonOffTopic",
  harmful: "reasonHarmful",
} as const satisfies Record<FeedbackReason, string>;

/** Of the comment, in characters: what a person writes, and no more than a server takes in passing. */
const MAX_COMMENT = 2_000;

/** Called with the reply as it is rated now, without `feedback` when that was taken back; `words` are to be spoken. */
export type OnRate = (reply: Reply, words: string) => void;

/** Two thumbs, and after the lower one a form that asks why. A second press takes a rating back. */
export function feedbackView(reply: Reply, view: Disclosure, onRate: OnRate): TemplateResult {
  const { id, feedback } = reply;
  const formId = `${id}.why`;
  const rating = feedback?.rating;
  const open = rating === "down" && view.isOpen(formId, false);
  const rate = (to: Feedback["rating"]) => (event: MouseEvent) => {
    // The second click of two meant the same as the first.
    if (event.detail > 1) return;
    const next = to === rating ? undefined : to;
    const words = next === "down" ? strings.feedbackWhy : strings.feedbackThanks;
    onRate({ ...reply, feedback: next && { rating: next } }, next ? words : "");
    if (open === (next === "down")) return;
    void view.toggle(formId, open).then(() => {
      formAt(event)?.scrollIntoView({ block: "nearest" });
    });
  };
  const told = feedback?.reason ?? feedback?.comment;
  return html`
    ${iconButton("rate-up", strings.rateUp, up, rate("up"), false, "icon-button", rating === "up")}
    ${iconButton("rate-down", strings.rateDown, down, rate("down"), false, "icon-button", rating === "down")}
    ${told && !open ? html`<span class="thanks">${strings.feedbackThanks}</span>` : nothing}
    ${open ? formView(reply, formId, view, onRate) : nothing}
  `;
}

function formView(reply: Reply, formId: string, view: Disclosure, onRate: OnRate): TemplateResult {
  const close = (event: Event) => {
    // Before the form goes, and the focus in it.
    buttonAt(event)?.focus({ preventScroll: true });
    void view.toggle(formId, true);
  };
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget as HTMLFormElement);
    const reason = data.get("reason") as FeedbackReason | null;
    const comment = String(data.get("comment")).trim();
    close(event);
    if (reason === null && comment === "") return;
    const why = { ...(reason && { reason }), ...(comment && { comment }) };
    onRate({ ...reply, feedback: { rating: "down", ...why } }, strings.feedbackThanks);
  };
  const keyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || event.isComposing || event.keyCode === 229) return;
    // It closes the form, and neither the panel around the chat nor an answer that is coming.
    event.stopPropagation();
    event.preventDefault();
    close(event);
  };
  return html`
    <form part="feedback-form" class="feedback-form" @submit=${submit} @keydown=${keyDown}>
      <fieldset>
        <legend>${strings.feedbackWhy}</legend>
        ${Object.entries(REASONS).map(
          ([reason, text]) => html`
            <label class="choice">
              <input type="radio" name="reason" value=${reason} />${strings[text]}
            </label>
          `,
        )}
      </fieldset>
      <textarea
        name="comment"
        rows="2"
        dir="auto"
        maxlength=${MAX_COMMENT}
        aria-label=${strings.feedbackComment}
        placeholder=${strings.feedbackComment}
      ></textarea>
      <div class="choices">
        <button type="submit" class="small-button sends">${strings.feedbackSend}</button>
        <button type="button" class="small-button" @click=${close}>${strings.feedbackClose}</button>
      </div>
    </form>
  `;
}

const messageAt = ({ target }: Event) => (target as Element).closest(".message");

const formAt = (event: Event) => messageAt(event)?.querySelector(".feedback-form");

const buttonAt = (event: Event) => messageAt(event)?.querySelector<HTMLElement>('[part="rate-down"]');
