/** Several models that stand in for each other. */

import { type Candidate, Failover } from "./failover.ts";
import { SetupError } from "./failures/provider-error.ts";
import { HistoryProvider } from "./history/history.ts";
import type { ChatModel, ChatModelEvent, Provider, SpokenEvent, Tell } from "./provider.ts";
import type { StoredModel } from "./responses/late-model.ts";
import type { ResponsesTurn } from "./responses/model.ts";
import type { FinishedResponse } from "./responses/reader.ts";
import { ResponsesProvider } from "./responses/responses.ts";

/** A provider with the model string that it was made of. */
export interface NamedProvider {
  readonly name: string;
  readonly provider: Provider;
}

/**
 * One provider of several: each request goes to the first, and to the next where that fails before it says
 * anything. It takes the files that all of them take, and its states are those of the first.
 * @throws SetupError for models that cannot go on with each other's conversations
 */
export function withFallbacks(first: NamedProvider, others: readonly NamedProvider[]): Provider {
  const all = [first, ...others];
  const mediaTypes = first.provider.mediaTypes.filter((type) =>
    others.every(({ provider }) => provider.mediaTypes.includes(type)),
  );
  const models = all.map(({ name }) => name);
  const about = { id: first.provider.id, label: first.provider.label, mediaTypes, models };
  const chats = all.flatMap(({ name, provider }) =>
    provider instanceof HistoryProvider ? [{ name, model: provider.chat }] : [],
  );
  if (chats.length === all.length) return new HistoryProvider(about, chatOf(chats));
  const stored = all.flatMap(({ name, provider }) =>
    provider instanceof ResponsesProvider ? [{ name, model: provider.model }] : [],
  );
  if (stored.length === all.length) {
    return new ResponsesProvider(about, storedOf(stored));
  }
  const odd = others.find(({ provider }) => provider.stateKind !== first.provider.stateKind);
  throw new SetupError(
    `fallbacks names "${odd?.name}", which cannot go on with a conversation of "${first.name}": one of them has OpenAI keep it. Set store: false, so that the client keeps all of it.`,
  );
}

function chatOf(chats: readonly Candidate<ChatModel>[]): ChatModel {
  const failover = new Failover(chats);
  return {
    prepare: () => prepareModels(chats),
    stream: (request, signal, tell) =>
      failover.ask<ChatModelEvent>(
        (chat, name, told) => chat.stream(request, signal, signing(name, told)),
        signal,
        tell,
      ),
  };
}

function storedOf(stored: readonly Candidate<StoredModel>[]): StoredModel {
  const failover = new Failover(stored);
  return {
    prepare: () => prepareModels(stored),
    ask: <End>(
      turn: ResponsesTurn,
      end: (finished: FinishedResponse) => End,
      signal: AbortSignal,
      tell: Tell<SpokenEvent | End>,
    ) =>
      failover.ask<SpokenEvent | End>(
        (model, name, told) => model.ask(turn, (finished) => ({ ...end(finished), model: name }), signal, told),
        signal,
        tell,
      ),
  };
}

async function prepareModels(candidates: readonly Candidate<{ prepare?(): Promise<void> }>[]): Promise<void> {
  await Promise.all(candidates.map(({ model }) => model.prepare?.()));
}

/** Adds to the end who it was. */
function signing(model: string, tell: Tell<ChatModelEvent>): Tell<ChatModelEvent> {
  return (events) =>
    tell(
      events.at(-1)?.type !== "end"
        ? events
        : events.map((event) => (event.type === "end" ? { ...event, model } : event)),
    );
}
