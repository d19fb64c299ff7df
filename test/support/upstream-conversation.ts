/** Conversations with a scripted upstream, for the tests of providers. */

import assert from "node:assert/strict";
import { createChatCompletions } from "../../server/providers/chat/create.ts";
import { ProviderError } from "../../server/providers/failures/provider-error.ts";
import type {
  Conversation,
  ConversationSetup,
  ModelSettings,
  Provider,
  ProviderEvent,
  ProviderTimes,
} from "../../server/providers/provider.ts";
import { createResponses } from "../../server/providers/responses/responses.ts";
import type { RetryClock } from "../../server/providers/upstream/retry.ts";
import type { UpstreamServer } from "./upstream-server.ts";

interface TestProvider {
  times?: ProviderTimes;
  model?: string;
  apiKey?: string | undefined;
  settings?: ModelSettings;
  clock?: RetryClock;
}

/** Far longer than any test: a time-out is only seen where a test asks for one. */
const PATIENT: ProviderTimes = { firstChunk: 20_000, idle: 20_000 };

/** Never waits between two tries. */
export const INSTANT_CLOCK = { wait: async () => {}, random: () => 0.5 };

export function responsesProvider(upstream: Pick<UpstreamServer, "url">, options: TestProvider = {}): Provider {
  return createResponses({ ...common(upstream, options), id: "openai", label: "OpenAI" });
}

export function chatProvider(upstream: Pick<UpstreamServer, "url">, options: TestProvider = {}): Provider {
  return createChatCompletions({ ...common(upstream, options), id: "litellm", label: "LiteLLM" });
}

function common(upstream: Pick<UpstreamServer, "url">, options: TestProvider) {
  const { times = PATIENT, model = "gpt-4o", apiKey = "sk-test", settings = {} } = options;
  const { clock = INSTANT_CLOCK } = options;
  return { baseUrl: upstream.url, apiKey, model, times, settings, clock };
}

/** A conversation that says "Hi" and has no tools, unless told otherwise. */
export function open(provider: Provider, setup: Partial<ConversationSetup> = {}): Conversation {
  return provider.open({
    instructions: "Be brief.",
    tools: [],
    state: {},
    message: "Hi",
    attachments: [],
    ...setup,
  });
}

/** One turn's events, and what the turn threw. */
export interface Turn {
  events: ProviderEvent[];
  error: unknown;
}

/** Asks once and gathers what comes, also where it fails. `onEvent` is told of each event as it comes. */
export async function ask(
  conversation: Conversation,
  signal: AbortSignal = new AbortController().signal,
  onEvent: (event: ProviderEvent) => void = () => {},
): Promise<Turn> {
  const events: ProviderEvent[] = [];
  const take = (batch: readonly ProviderEvent[]) => {
    events.push(...batch);
    batch.forEach(onEvent);
    return undefined;
  };
  try {
    await conversation.ask(signal, take);
    return { events, error: undefined };
  } catch (error) {
    return { events, error };
  }
}

/** Asks once, and throws when the first event comes. */
export async function leave(conversation: Conversation): Promise<void> {
  const left = new Error("left");
  const { error } = await ask(conversation, undefined, () => {
    throw left;
  });
  assert.equal(error, left);
}

/** The failure of a turn that must have failed, as clients see it. */
export function failureOf({ error }: Turn): ProviderError {
  if (error instanceof ProviderError) return error;
  throw new Error("the turn did not fail with a ProviderError", { cause: error });
}

/** All text of a turn. */
export function said({ events }: Turn, type: "text" | "thinking" = "text"): string {
  return events.map((event) => (event.type === type ? event.delta : "")).join("");
}
