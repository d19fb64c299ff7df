/** Claude with a scripted upstream, for the tests of the Messages API. */

import * as sdk from "@anthropic-ai/sdk";
import { readSettings } from "../../server/config/settings.ts";
import { ALL_MEDIA_TYPES } from "../../server/protocol/attachments.ts";
import type { HistoryMessage } from "../../server/protocol/chat.ts";
import { messagesProvider } from "../../server/providers/anthropic/provider.ts";
import type { ModelSettings, Provider, TransportLimits } from "../../server/providers/provider.ts";
import { ask, INSTANT_CLOCK, open, PATIENT } from "./upstream-conversation.ts";
import { fixture, startUpstream, type UpstreamReply, type UpstreamServer } from "./upstream-server.ts";

interface TestClaude {
  model?: string;
  settings?: ModelSettings;
  limits?: TransportLimits;
}

/** A model that thinks without being asked to, so that thinking goes back, unless told otherwise. */
export function claude(upstream: Pick<UpstreamServer, "url">, options: TestClaude = {}): Provider {
  const { model = "claude-sonnet-5", settings: modelSettings = {}, limits = PATIENT } = options;
  const setup = {
    id: "anthropic",
    label: "Anthropic",
    mediaTypes: ALL_MEDIA_TYPES,
    model,
    // The package adds `/v1` itself.
    settings: readSettings({ ANTHROPIC_API_KEY: "sk-ant-test", ANTHROPIC_BASE_URL: upstream.url.replace(/\/v1$/, "") }),
    modelSettings,
    limits,
    loadPackage: () => Promise.reject(new Error("the package is there already")),
  };
  return messagesProvider(sdk, setup, INSTANT_CLOCK);
}

/** An answer with the bytes of `test/fixtures/providers/anthropic/<name>.sse`. */
export function stream(name: string): UpstreamReply {
  return { body: [fixture(`anthropic/${name}`)] };
}

export const WEATHER = {
  name: "get_weather",
  description: "Weather of a city.",
  parameters: {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: { city: { type: "string" } },
  },
};

interface Sending extends TestClaude {
  tools?: (typeof WEATHER)[];
}

/** The body that goes up for this history and the message "Next", without its cache points. */
export async function sentWith(history: HistoryMessage[], sending: Sending = {}) {
  const { tools = [WEATHER], ...options } = sending;
  await using upstream = await startUpstream(stream("text"));
  const state = { conversation_history: history };
  const { error } = await ask(open(claude(upstream, options), { state, tools, message: "Next" }));
  if (error !== undefined) throw error;
  const body = upstream.calls[0]?.json;
  for (const { content } of body.messages) for (const block of content) delete block.cache_control;
  return body;
}
