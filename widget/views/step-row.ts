import { html, nothing, type TemplateResult } from "lit";
import type { Disclosure } from "../disclosure.ts";
import * as stepIcons from "./step-icons.ts";

export interface StepRowModel {
  /** Of what the row opens: the element `body-ID`. */
  readonly id: string;
  /** Of the group around it, which then stays open, too. */
  readonly group?: string;
  readonly open: boolean;
  readonly view: Disclosure;
  readonly icon: TemplateResult;
  readonly name: string;
  /** What tells it from others of the same name. */
  readonly hint?: unknown;
  /** Whether it is still going on. */
  readonly running?: boolean;
  /** What the icon says, for those who do not see it. */
  readonly note?: string | undefined;
  /** What else is known: how long it took. */
  readonly aside?: string | undefined;
}

/** The line that opens a step, or a group of them. */
export function stepRow(model: StepRowModel): TemplateResult {
  const { id, group, open, view, icon, name, hint, running, note, aside } = model;
  return html`
    <button
      type="button"
      class="step-row"
      aria-expanded=${open}
      aria-controls=${`body-${id}`}
      @click=${() => view.toggle(id, open, group)}
    >
      <span class="step-icon">${icon}</span>
      <span class=${running ? "step-name shimmer" : "step-name"}>${name}</span>
      <span class="hint" dir="auto">${hint}</span>
      <span class="visually-hidden">${note}</span>
      ${aside === undefined ? nothing : html`<span class="aside">${aside}</span>`}
      <span class="chevron">${stepIcons.chevron}</span>
    </button>
  `;
}
