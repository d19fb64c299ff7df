import { html, nothing, type TemplateResult } from "lit";
import { strings } from "../strings.ts";
import type { Failure } from "../transcript.ts";
import * as icons from "./icons.ts";

/** Why an answer failed, and the way on where there is one. */
export function failureView(
  failure: Failure,
  { onRetry, onRetryAfresh }: { onRetry?: () => void; onRetryAfresh?: () => void },
): TemplateResult {
  return html`
    <div part="error" class="failure">
      ${icons.alert}
      <p>${failure.message}</p>
      ${failure.retryable && onRetry ? retryButton(strings.retry, onRetry) : nothing}
      ${
        failure.code === "conversation_expired" && onRetryAfresh
          ? retryButton(strings.startOver, onRetryAfresh)
          : nothing
      }
    </div>
  `;
}

/** A quiet button with a circling arrow. */
export function retryButton(label: string, onClick: () => void): TemplateResult {
  return html`
    <button type="button" part="retry" class="small-button" @click=${onClick}>
      ${icons.retry}${label}
    </button>
  `;
}
