/** Providers that speak Chat Completions, built as a project's model string builds them. */

import assert from "node:assert/strict";
import type { LoadPackage } from "../../server/config/optional-package.ts";
import { readSettings } from "../../server/config/settings.ts";
import type { ConversationState, HistoryMessage } from "../../server/protocol/chat.ts";
import { textContent } from "../../server/providers/history.ts";
import { resolveProvider } from "../../server/providers/index.ts";
import type { ModelSettings, Provider } from "../../server/providers/provider.ts";
import { ask, type Conversation, type Turn } from "./upstream-conversation.ts";
import { eventStream, fixture, type UpstreamReply } from "./upstream-server.ts";

type Env = Record<string, string | undefined>;

/** The provider of a model string, with time limits longer than any test. */
export function serve(
  model: string,
  env: Env,
  modelSettings: ModelSettings = {},
  loadPackage: LoadPackage = (name) => import(name),
): Promise<Provider> {
  return resolveProvider(model, { settings: readSettings(env), modelSettings, loadPackage });
}

export const WEATHER = {
  name: "get_weather",
  description: "Weather of a city.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

/** A response with the bytes of a recorded stream. */
export const stream = (name: string): UpstreamReply => ({ body: [fixture(name)] });

/** The shortest response: the text "ok". */
export function ok(): UpstreamReply {
  const choice = { index: 0, delta: { content: "ok" }, finish_reason: "stop" };
  return { body: [eventStream({ choices: [choice] }, "[DONE]")] };
}

/** Asks, answers each call with "mild", and asks again. */
export async function runTools(conversation: Conversation): Promise<[Turn, Turn]> {
  const turn = await ask(conversation);
  const calls = turn.events.flatMap((event) => (event.type === "call" ? [event.call] : []));
  conversation.answer(calls.map(({ id, name }) => ({ id, name, content: textContent("mild"), failed: false })));
  return [turn, await ask(conversation)];
}

/** The history inside a state that must have one. */
export function historyOf(state: ConversationState): HistoryMessage[] {
  assert.ok("conversation_history" in state);
  return state.conversation_history as HistoryMessage[];
}

/** A history whose last turn is of another model: text, a call with all kinds of extra fields, a GIF. */
export const FOREIGN_HISTORY: HistoryMessage[] = [
  {
    role: "user",
    content: [
      { type: "text", text: "Weather here?" },
      { type: "image_url", image_url: { url: "data:image/gif;base64,R0lGODlh" } },
      { type: "file", file: { filename: "map.pdf", file_data: "data:application/pdf;base64,JVBERi0=" } },
    ],
  },
  {
    role: "assistant",
    content: null,
    reasoning_content: "I look.",
    thinking_blocks: [{ type: "thinking", thinking: "I look.", signature: "EqoB" }],
    tool_calls: [
      {
        id: "toolu_01",
        type: "function",
        function: { name: "get_weather", arguments: '{"city":"Lima"}' },
        provider_specific_fields: { signature: "s" },
      },
    ],
  },
  { role: "tool", tool_call_id: "toolu_01", content: "mild" },
  { role: "assistant", content: "Mild.", annotations: [{ type: "url" }] },
];
