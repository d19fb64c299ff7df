/** Serves a page with the chat element, whose scripted agent asks for approval before it acts. */

import type { TestContext } from "node:test";
import type { ToolApproval } from "../../server/protocol/chat.ts";
import type { StreamEvent } from "../../server/protocol/events.ts";
import { done, type ScriptedServer, startScriptedServer } from "../widget/scripted-server.ts";
import { sitePage, startSite } from "./site.ts";
import { startServer } from "./start-server.ts";

export interface AskingSite {
  readonly agent: ScriptedServer;
  readonly url: string;
}

/** A page with `<agent-chat>` that fills it, or with a launcher. */
export async function startAskingSite(
  t: TestContext,
  { lang = "en", launcher = false, head = "" } = {},
): Promise<AskingSite> {
  const [files, agent] = await Promise.all([startServer(t), startScriptedServer(t, { info: { suggestions: [] } })]);
  const chat = launcher
    ? `<agent-chat-launcher server="${agent.url}"></agent-chat-launcher>`
    : `<agent-chat server="${agent.url}" style="position: fixed; inset: 0"></agent-chat>`;
  const script = `<script src="${files.url}/widget.js" data-launcher="none"></script>`;
  const scheme = '<meta name="color-scheme" content="light dark">';
  const site = await startSite(t, {
    "/": sitePage(`${script}<section aria-label="Help">${chat}</section>`, scheme + head, lang),
  });
  return { agent, url: site.url };
}

/** A `tool_approval` event that expires in an hour. */
export function approval(id: string, text: string, args: object = {}, more: Partial<ToolApproval> = {}): StreamEvent {
  const expires_at = new Date(Date.now() + 3_600_000).toISOString();
  const data: ToolApproval = { id, tool: "cancel_order", arguments: JSON.stringify(args), text, expires_at, ...more };
  return { type: "tool_approval", data } as unknown as StreamEvent;
}

export const asked = (data = "", state = { previous_response_id: "open" }): StreamEvent =>
  ({ ...done(data, state), finish_reason: "approval_required" }) as unknown as StreamEvent;
