import { html, nothing, type TemplateResult } from "lit";
import { strings } from "../strings.ts";
import * as icons from "./icons.ts";

export interface HeaderModel {
  readonly name: string;
  readonly agent: string;
  readonly dark: boolean;
  readonly canReset: boolean;
  readonly canForgetKey: boolean;
  readonly onReset: () => void;
  readonly onToggleTheme: () => void;
  readonly onForgetKey: () => void;
}

/** Who one talks to, and what can be done to the whole conversation. */
export function headerView(model: HeaderModel): TemplateResult {
  const { name, agent } = model;
  return html`
    <header part="header" class="header">
      <slot name="header-start"></slot>
      <div class="who">
        <slot name="avatar"><span class="avatar">${icons.spark}</span></slot>
        <span class="names">
          <span class="agent">${agent}</span>
          ${name !== "" && name !== agent ? html`<span class="app">${name}</span>` : nothing}
        </span>
      </div>
      <div class="actions">
        ${model.canForgetKey ? iconButton("forget-key", strings.forgetKey, icons.key, model.onForgetKey) : nothing}
        ${iconButton(
          "theme-toggle",
          model.dark ? strings.toLight : strings.toDark,
          model.dark ? icons.sun : icons.moon,
          model.onToggleTheme,
        )}
        ${iconButton("reset", strings.newConversation, icons.compose, model.onReset, !model.canReset)}
        <slot name="header-end"></slot>
      </div>
    </header>
  `;
}

/** A button that shows an icon and is named by its label. */
export function iconButton(
  part: string,
  label: string,
  icon: TemplateResult,
  onClick: (event: MouseEvent) => void,
  disabled = false,
  className = "icon-button",
  pressed?: boolean,
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
