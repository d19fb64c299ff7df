import { Late } from "../../node/late.ts";
import type { SpokenEvent, Tell } from "../provider.ts";
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

  async prepare(): Promise<void> {
    const model = await this.#model.come();
    await model.prepare();
  }

  async ask<End>(
    turn: ResponsesTurn,
    end: (finished: FinishedResponse) => End,
    signal: AbortSignal,
    tell: Tell<SpokenEvent | End>,
  ): Promise<void> {
    const model = await this.#model.part;
    return model.ask(turn, end, signal, tell);
  }
}
