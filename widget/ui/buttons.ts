/** The kinds of button that several parts of the interface have. */

import { html, nothing, type TemplateResult } from "lit";
import { icons } from "./icons.ts";

interface IconButton {
  readonly part: string;
  /** Its name, also for the pointer. */
  readonly label: string;
  readonly icon: TemplateResult;
  readonly onClick: (event: MouseEvent) => void;
  readonly disabled?: boolean;
  readonly className?: string;
  /** Of a button that stays pressed; absent for all others. */
  readonly pressed?: boolean;
}

/** A button that shows an icon and is named by its label. */
export function iconButton({ part, label, icon, onClick, disabled, className, pressed }: IconButton): TemplateResult {
  return html`
    <button
      type="button"
      part=${part}
      class=${className ?? "icon-button"}
      aria-label=${label}
      title=${label}
      aria-pressed=${pressed ?? nothing}
      ?disabled=${disabled ?? false}
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
