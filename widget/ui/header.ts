import { html, nothing, type TemplateResult } from "lit";
import type { Client } from "../session/client.ts";
import { iconButton } from "./buttons.ts";
import type { ChatContext } from "./chat-part.ts";
import { icons } from "./icons.ts";

export interface Header {
  readonly context: ChatContext;
  /** Absent where the element has no server. */
  readonly client: Client | undefined;
  readonly onReset: () => void;
  readonly onToggleTheme: () => void;
}

/** The agent's name, and what can be done with the whole conversation. */
export function renderHeader({ context, client, onReset, onToggleTheme }: Header): TemplateResult {
  const { strings, theme } = context;
  const isDark = theme === "dark";
  const { name = "", agent = client?.phase === "connecting" ? "" : strings.fallbackAgent } = client?.info ?? {};
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
        ${
          client?.key.isTyped
            ? iconButton({
                part: "forget-key",
                label: strings.forgetKey,
                icon: icons.key,
                onClick: () => client.forgetKey(),
              })
            : nothing
        }
        ${iconButton({
          part: "theme-toggle",
          label: isDark ? strings.toLight : strings.toDark,
          icon: isDark ? icons.sun : icons.moon,
          onClick: onToggleTheme,
        })}
        ${iconButton({
          part: "reset",
          label: strings.newConversation,
          icon: icons.compose,
          onClick: onReset,
          disabled: !client?.session.messages.length,
        })}
        <slot name="header-end"></slot>
      </div>
    </header>
  `;
}
