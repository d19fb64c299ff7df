import { Late } from "../late.ts";
import type { SpokenEvent } from "../provider.ts";
import type { ResponsesModel, ResponsesOptions, ResponsesTurn } from "./model.ts";
import type { FinishedResponse } from "./reader.ts";

/** Who is asked of a conversation that the API keeps. */
export type StoredModel = Pick<ResponsesModel, "ask" | "prepare">;

/** A model of the API; its code comes a moment after the start. */
export class LateResponsesModel implements StoredModel {
  readonly #model: Late<StoredModel>;

  constructor(options: ResponsesOptions) {
    this.#model = new Late(async () => new (await import("./model.ts")).ResponsesModel(options));
  }

  prepare(): Promise<void> {
    return this.#model.prepare();
  }

  ask<End>(
    turn: ResponsesTurn,
    end: (finished: FinishedResponse) => End,
    signal: AbortSignal,
  ): AsyncIterable<readonly (SpokenEvent | End)[]> {
    return this.#model.now?.ask(turn, end, signal) ?? this.#askLate(turn, end, signal);
  }

  async *#askLate<End>(
    turn: ResponsesTurn,
    end: (finished: FinishedResponse) => End,
    signal: AbortSignal,
  ): AsyncGenerator<readonly (SpokenEvent | End)[], void> {
    yield* (await this.#model.come()).ask(turn, end, signal);
  }
}
