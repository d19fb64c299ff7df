import { html, nothing, type TemplateResult } from "lit";
import type { ChatContext, ShownAgent } from "./context.ts";

/** Messages to send with one click. */
export function renderSuggestions(
  texts: ShownAgent["suggestions"],
  { strings, actions }: ChatContext,
): TemplateResult | typeof nothing {
  const suggestions = texts
    .map((text) => (typeof text === "string" ? [text] : text))
    .filter(([label = ""]) => label.trim());
  if (suggestions.length === 0) return nothing;
  return html`
    <ul part="suggestions" class="suggestions" aria-label=${strings.suggestions}>
      ${suggestions.map(([label = "", prompt = label]) => {
        const send = () => actions.sendSuggestion(prompt);
        return html`
          <li>
            <button type="button" part="suggestion" class="pill" dir="auto" @click=${send}>
              <span>${label}</span>${prompt === label ? nothing : html`<small>${prompt}</small>`}
            </button>
          </li>
        `;
      })}
    </ul>
  `;
}
