import { html, nothing, type TemplateResult } from "lit";
import type { ChatContext } from "./context.ts";

/** Messages to send with one click. */
export function renderSuggestions(
  texts: readonly string[],
  { strings, actions }: ChatContext,
): TemplateResult | typeof nothing {
  const suggestions = texts.filter((text) => text.trim() !== "");
  if (suggestions.length === 0) return nothing;
  return html`
    <ul part="suggestions" class="suggestions" aria-label=${strings.suggestions}>
      ${suggestions.map((text) => {
        const send = () => actions.sendSuggestion(text);
        return html`
          <li>
            <button type="button" part="suggestion" class="pill" dir="auto" @click=${send}>
              <span>${text}</span>
            </button>
          </li>
        `;
      })}
    </ul>
  `;
}
