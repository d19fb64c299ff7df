/** Buttons that several parts of the interface use. */

import { html, nothing, type TemplateResult } from "lit";
import { icons } from "./icons.ts";
import { shownShortcut } from "./keys.ts";

interface IconButtonOptions {
  readonly disabled?: boolean;
  readonly className?: string | undefined;
  /** Absent for a button that is not a toggle. */
  readonly pressed?: boolean | undefined;
  /** Keyboard shortcut, such as "Ctrl+Shift+O". */
  readonly shortcut?: string;
}

/** A button with an icon. The label is its accessible name and its tooltip. */
export function iconButton(
  part: string,
  label: string,
  icon: TemplateResult,
  onClick: (event: MouseEvent) => void,
  { disabled = false, className = "icon-button", pressed, shortcut }: IconButtonOptions = {},
): TemplateResult {
  return html`
    <button
      type="button"
      part=${part}
      class=${className}
      aria-label=${label}
      title=${label}
      aria-pressed=${pressed ?? nothing}
      aria-keyshortcuts=${shortcut ? shownShortcut(shortcut) : nothing}
      ?disabled=${disabled}
      @click=${onClick}
    >
      ${icon}
    </button>
  `;
}

/** A quiet button with a text. */
export function smallButton(
  part: string,
  label: unknown,
  onClick: (event: Event) => void,
  disabled = false,
  className = "small-button",
): TemplateResult {
  return html`
    <button type="button" part=${part} class=${className} ?disabled=${disabled} @click=${onClick}>${label}</button>
  `;
}

/** A quiet button with a circling arrow. */
export function retryButton(label: string, onClick: () => void, disabled?: boolean): TemplateResult {
  return smallButton("retry", html`${icons.retry}${label}`, onClick, disabled);
}

/** Whether the device has an on-screen keyboard, which covers half of the screen and has no Shift+Enter. */
export function hasTouchKeyboard(): boolean {
  return matchMedia("(hover: none) and (pointer: coarse)").matches;
}

/** Scrolls the focused editor of a message into view. */
export function revealWritten(root: ParentNode): void {
  root.querySelector("textarea:focus")?.closest(".message.user")?.scrollIntoView({ block: "nearest" });
}
