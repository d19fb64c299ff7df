import { html, nothing, type TemplateResult } from "lit";
import type { ConnectionState } from "../session/reconnect-policy.ts";
import { retryButton } from "./buttons.ts";
import { ChatPart } from "./chat-part.ts";
import { icons } from "./icons.ts";

/** Above the composer, what is wrong with the connection. Not a live region: it counts seconds. */
export class StatusElement extends ChatPart {
  static override properties = {
    state: { attribute: false },
    isOffline: { attribute: false },
    retryIn: { attribute: false },
  };
  state: ConnectionState = "online";
  /** Whether the browser says that it has no network. */
  isOffline = false;
  /** Seconds until the next try. */
  retryIn = 0;

  protected override render(): TemplateResult | typeof nothing {
    const { state, isOffline, retryIn } = this;
    const { strings, actions } = this.context;
    if (state === "online" && !isOffline) return nothing;
    const isWaiting = state === "waiting";
    const problem = isOffline ? strings.offline : strings.unreachable;
    return html`
      <div part="connection" class="status-line">
        ${icons.alert}
        <p>
          ${state === "connecting" ? strings.connecting : problem}
          ${isWaiting ? strings.tryingAgainIn(retryIn) : nothing}
        </p>
        ${isWaiting ? retryButton(strings.tryNow, () => actions.reconnect()) : nothing}
      </div>
    `;
  }
}
