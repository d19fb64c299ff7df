/** What a conversation without messages shows, and messages to send with one click. */

import { html, nothing, type TemplateResult } from "lit";
import { retryButton } from "./buttons.ts";
import type { ChatContext } from "./chat-part.ts";
import { icons } from "./icons.ts";

export function renderGreeting(welcome: string | undefined, { strings }: ChatContext): TemplateResult {
  return html`
    <div part="empty" class="greeting">
      <slot name="empty">
        <span class="mark">${icons.spark}</span>
        <p class="welcome" dir="auto">${welcome ?? strings.welcome}</p>
      </slot>
    </div>
  `;
}

/** Where the greeting will be. */
export const connectingView = html`
  <div class="greeting"><span class="bone"></span></div>
`;

/** Stands in the place of a part that cannot be shown, because the server does not answer. */
export function renderUnreachable({ strings }: ChatContext, onRetry?: () => void): TemplateResult {
  return html`
    <div class="greeting">
      <div part="error" class="failure" role="alert">
        ${icons.alert}
        <p>${strings.unreachable}</p>
        ${onRetry ? retryButton(strings.retry, onRetry) : nothing}
      </div>
    </div>
  `;
}

export function renderSuggestions(
  texts: readonly string[],
  { strings }: ChatContext,
  onPick: (text: string) => void,
): TemplateResult | typeof nothing {
  const suggestions = texts.filter((text) => text.trim() !== "");
  if (suggestions.length === 0) return nothing;
  return html`
    <ul part="suggestions" class="suggestions" aria-label=${strings.suggestions}>
      ${suggestions.map(
        (text) => html`
          <li>
            <button type="button" part="suggestion" class="pill" dir="auto" @click=${() => onPick(text)}>
              ${text}
            </button>
          </li>
        `,
      )}
    </ul>
  `;
}
