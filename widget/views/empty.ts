import { html, nothing, type TemplateResult } from "lit";
import type { ChatClient } from "../chat-client.ts";
import { strings } from "../strings.ts";
import { retryButton } from "./failure.ts";
import * as icons from "./icons.ts";

/** What a conversation without messages shows. */
export function startView({ key, phase, info, connection }: ChatClient): TemplateResult | typeof nothing {
  if (key.prompt) return nothing;
  if (phase === "connecting") return connectingView;
  if (phase === "unreachable") return unreachableView(() => connection.tryNow());
  return greetingView(info?.welcome);
}

function greetingView(welcome: string | undefined): TemplateResult {
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
const connectingView = html`
  <div class="greeting"><span class="bone"></span></div>
`;

/** First messages to send with one click. */
export function suggestionsView(
  texts: readonly string[],
  onPick: (text: string) => void,
): TemplateResult | typeof nothing {
  const suggestions = texts.filter((text) => text.trim());
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

/** Shown instead of the greeting when the server does not answer. */
export function unreachableView(onRetry: () => void): TemplateResult {
  return html`
    <div class="greeting">
      <div part="error" class="failure" role="alert">
        ${icons.alert}
        <p>${strings.unreachable}</p>
        ${retryButton(strings.retry, onRetry)}
      </div>
    </div>
  `;
}
