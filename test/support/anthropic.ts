/** Claude with a scripted upstream, for the tests of the Messages API. */

import type { HistoryMessage } from "../../server/protocol/chat.ts";
import { createAnthropic } from "../../server/providers/anthropic/provider.ts";
import type { Provider } from "../../server/providers/provider.ts";
import { ask, open, setupOf, type TestProvider } from "./upstream-conversation.ts";
import { fixture, startUpstream, type UpstreamReply, type UpstreamServer } from "./upstream-server.ts";

/** By default a model that thinks without being asked, so that requests carry earlier thinking. */
export function claude(upstream: Pick<UpstreamServer, "url">, options: TestProvider = {}): Provider {
  // `ANTHROPIC_BASE_URL` has no `/v1`.
  const env = { ANTHROPIC_API_KEY: "sk-ant-test", ANTHROPIC_BASE_URL: upstream.url.replace(/\/v1$/, "") };
  return createAnthropic(setupOf("anthropic", env, { model: "claude-sonnet-5", ...options }));
}

/** An answer with the bytes of `test/fixtures/providers/anthropic/<name>.sse`. */
export function stream(name: string): UpstreamReply {
  return { body: [fixture(`anthropic/${name}`)] };
}

export const WEATHER = {
  name: "get_weather",
  description: "Weather of a city.",
  parameters: { type: "object", properties: { city: { type: "string" } } },
};

interface Sending extends TestProvider {
  tools?: (typeof WEATHER)[];
}

/** The request body for this history and the message "Next", without its cache points. */
export async function sentWith(history: HistoryMessage[], sending: Sending = {}) {
  const { tools = [WEATHER], ...options } = sending;
  await using upstream = await startUpstream(stream("text"));
  const state = { conversation_history: history };
  const { error } = await ask(open(await claude(upstream, options), { state, tools, message: "Next" }));
  if (error !== undefined) throw error;
  const body = upstream.calls[0]?.json;
  for (const { content } of body.messages) for (const block of content) delete block.cache_control;
  return body;
}
