/** What answers an agent's messages: a model of a provider, or code of the agent's author. */

import type { ModelEvent, ModelSetup, OnRequestId, Provider, ServedFacts } from "../providers/provider.ts";
import type { Exchange } from "./exchange.ts";
import type { RunContext } from "./run-context.ts";
import { type End, type EndState, KINDS } from "./states.ts";

export interface AnswerSource extends ServedFacts {
  /**
   * Goes on with the exchange by one request, and yields what is said: one batch for each packet, and none is empty. Throws an
   * `ApiError` for every failure of the other side, also for an answer that broke off; after an abort it throws anything, or
   * ends quietly. The abort closes the upstream connection, and so does leaving the loop.
   */
  ask(exchange: Exchange, options: AskOptions): AsyncIterable<ModelEvent[]>;
  /** The state that a client goes on from after this end. */
  stateOf(exchange: Exchange, end: End): EndState;
}

export interface AskOptions {
  readonly setup: ModelSetup;
  readonly context: RunContext;
  readonly onRequestId?: OnRequestId | undefined;
}

/** Any other provider whose states are of the same kind can go on with the same conversation. */
export function modelSource({ model, ...facts }: Provider): AnswerSource {
  const { request, stateOf } = KINDS[facts.stateKind];
  return {
    ...facts,
    ask(exchange, { setup, context, onRequestId }) {
      const keep = exchange.keep.bind(exchange);
      return model({ setup, ...request(exchange), keep, onRequestId }, context.signal);
    },
    stateOf,
  };
}
