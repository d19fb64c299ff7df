import { html, nothing, type TemplateResult } from "lit";
import { strings } from "../strings.ts";
import type { Failure } from "../transcript.ts";
import * as icons from "./icons.ts";

export interface Retries {
  readonly onRetry?: (() => void) | undefined;
  readonly onRetryAfresh?: (() => void) | undefined;
}

/** States that the server does not take: only a new conversation goes on. */
const STATE_LOST = new Set<Failure["code"]>(["conversation_expired", "invalid_state"]);

/** What only those can mend who have the server's log. */
const IN_THE_LOG = /^(internal|provider_)/;

/** Why an answer failed, and the way on where there is one. */
export function failureView(failure: Failure, { onRetry, onRetryAfresh }: Retries): TemplateResult {
  const { code, message, reference } = failure;
  const known = reference && IN_THE_LOG.test(code);
  return html`
    <div part="error" class="failure">
      ${icons.alert}
      <p>${message} ${known ? strings.reference(reference) : nothing}</p>
      ${failure.retryable && onRetry ? retryButton(strings.retry, onRetry) : nothing}
      ${STATE_LOST.has(code) && onRetryAfresh ? retryButton(strings.startOver, onRetryAfresh) : nothing}
    </div>
  `;
}

/** A quiet button with a circling arrow. */
export function retryButton(label: string, onClick: () => void): TemplateResult {
  return smallButton("retry", html`${icons.retry}${label}`, onClick);
}

/** A quiet button with a text. */
export function smallButton(part: string, label: unknown, onClick: () => void): TemplateResult {
  return html`
    <button type="button" part=${part} class="small-button" @click=${onClick}>${label}</button>
  `;
}
