/**
 * A history goes to a client and returns with the next message: the next prompt must begin with the same bytes as before, so
 * that the provider reads them from its prompt cache.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { readState } from "../../server/agent/state.ts";
import type { ConversationState, ImagePart } from "../../server/protocol/chat.ts";
import { textContent } from "../../server/providers/history.ts";
import { IMAGE_AND_PDF, TEXT_FILE } from "../support/files.ts";
import { PROVIDERS_WITH_HISTORY } from "../support/providers-with-history.ts";
import { ask, type Conversation, open } from "../support/upstream-conversation.ts";
import { startUpstream } from "../support/upstream-server.ts";

const TOOLS = ["get_weather", "get_time"].map((name) => ({
  name,
  description: "For a test.",
  parameters: { type: "object", properties: { city: { type: "string" } } },
}));

const PICTURE: ImagePart = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0=" } };

/** Repeats requests until the model makes no more calls; every second call fails. */
async function run(conversation: Conversation): Promise<ConversationState> {
  for (;;) {
    const { events, error } = await ask(conversation);
    if (error !== undefined) throw error;
    const calls = events.flatMap((event) => (event.type === "call" ? [event.call] : []));
    if (calls.length === 0) return conversation.state();
    conversation.answer(
      calls.map(({ id, name }, index) => {
        const failed = index % 2 === 1;
        return { id, name, content: [...textContent(`“${name}” 👋`), ...(failed ? [] : [PICTURE])], failed };
      }),
    );
  }
}

/** The state after a client has received, stored and returned it. */
function overTheWire(state: ConversationState): ConversationState {
  const limits = { maxHistoryItems: 1_000, maxHistoryBytes: 1e6 };
  const binding = {
    kind: "conversation_history",
    agent: "a",
    provider: "p",
    user: undefined,
    secrets: [],
    ownSecrets: [],
    limits,
  } as const;
  return readState(JSON.parse(JSON.stringify(state)), binding);
}

/** The prompt of a request as one text, without cache markers. */
function promptOf(body: Readonly<Record<string, unknown>>, fields: readonly string[]): string {
  const text = JSON.stringify(fields.map((field) => body[field]));
  return text.replaceAll(/,"cache_control":\{"type":"ephemeral"\}/g, "");
}

for (const { name, provider, calls, text, prompt } of PROVIDERS_WITH_HISTORY) {
  test(`${name}: each request of a conversation begins with the whole one before it, also after the client had the history`, async () => {
    await using upstream = await startUpstream(...calls, text, ...calls, text, text);
    const model = await provider(upstream);
    let state: ConversationState = {};
    for (const message of ["What is this?", "And that?", "Thanks"]) {
      const files = IMAGE_AND_PDF.filter(({ mime_type: type }) => model.mediaTypes.includes(type));
      const attachments = [...files, TEXT_FILE];
      state = overTheWire(await run(open(model, { tools: TOOLS, message, attachments, state })));
    }
    const prompts = upstream.calls.map(({ json }) => promptOf(json, prompt));
    assert.ok(prompts.length > 2 * calls.length + 2);
    for (const [index, next] of prompts.entries()) {
      // Without the brackets at the end of the list of messages.
      const before = (prompts[index - 1] ?? "").slice(0, -2);
      const at = [...before].findIndex((char, place) => char !== [...next][place]);
      assert.ok(next.startsWith(before), `request ${index} differs at ${at}: …${next.slice(at - 200, at + 200)}`);
    }
  });
}
