/** The kinds of button that several parts of the interface have. */

import { html, nothing, type TemplateResult } from "lit";
import { icons } from "./icons.ts";

interface IconButtonOptions {
  readonly disabled?: boolean;
  readonly className?: string;
  /** Of a button that stays pressed; absent for all others. */
  readonly pressed?: boolean;
}

/** A button that shows an icon, and is named by its label, also for the pointer. */
export function iconButton(
  part: string,
  label: string,
  icon: TemplateResult,
  onClick: (event: MouseEvent) => void,
  { disabled = false, className = "icon-button", pressed }: IconButtonOptions = {},
): TemplateResult {
  return html`
    <button
      type="button"
      part=${part}
      class=${className}
      aria-label=${label}
      title=${label}
      aria-pressed=${pressed ?? nothing}
      ?disabled=${disabled}
      @click=${onClick}
    >
      ${icon}
    </button>
  `;
}

/** A quiet button with a text. */
export function smallButton(part: string, label: unknown, onClick: () => void): TemplateResult {
  return html`
    <button type="button" part=${part} class="small-button" @click=${onClick}>${label}</button>
  `;
}

/** A quiet button with a circling arrow. */
export function retryButton(label: string, onClick: () => void): TemplateResult {
  return smallButton("retry", html`${icons.retry}${label}`, onClick);
}
