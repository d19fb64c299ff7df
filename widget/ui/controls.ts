/** Buttons of several parts of the interface. */

import { html, nothing, type TemplateResult } from "lit";
import { icons } from "./icons.ts";
import { shownShortcut } from "./keys.ts";

interface IconButtonOptions {
  readonly disabled?: boolean;
  readonly className?: string | undefined;
  /** Absent for a button that does not stay pressed. */
  readonly pressed?: boolean | undefined;
  /** Keys that do the same. */
  readonly shortcut?: string;
}

/** A button that shows an icon, and is named by its label, also for the pointer. */
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

/** Whether the keyboard of the screen is used, which covers half of it and has no Shift+Enter. */
export function hasTouchKeyboard(): boolean {
  return matchMedia("(hover: none) and (pointer: coarse)").matches;
}

/** Brings into view what is being written in the place of a message. */
export function revealWritten(root: ParentNode): void {
  root.querySelector("textarea:focus")?.closest(".message.user")?.scrollIntoView({ block: "nearest" });
}
