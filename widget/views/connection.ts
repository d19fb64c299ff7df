import { html, nothing, type TemplateResult } from "lit";
import type { Connection } from "../connection.ts";
import { strings } from "../strings.ts";
import { retryButton } from "./failure.ts";
import * as icons from "./icons.ts";

/** How it is about the line, while that is not good. Not a live region: it counts seconds. */
export function connectionView(connection: Connection): TemplateResult | typeof nothing {
  const { state, isOffline } = connection;
  if (state === "up" && !isOffline) return nothing;
  const waiting = state === "waiting";
  const what = isOffline ? strings.offline : strings.unreachable;
  return html`
    <div part="connection" class="status-line">
      ${icons.alert}
      <p>
        ${state === "connecting" ? strings.connecting : what}
        ${waiting ? strings.tryingAgainIn(connection.retryIn) : nothing}
      </p>
      ${waiting ? retryButton(strings.tryNow, () => connection.tryNow()) : nothing}
    </div>
  `;
}
