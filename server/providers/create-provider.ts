import type { StateKind } from "../protocol/chat.ts";
import type { Model, Provider, ProviderFacts } from "./provider.ts";

/** A provider whose model has states of this kind. */
export function createProvider(
  { id, label, mediaTypes, models, citesResults }: ProviderFacts,
  stateKind: StateKind,
  model: Model,
): Provider {
  return { id, label, mediaTypes, models, citesResults, stateKind, model };
}
