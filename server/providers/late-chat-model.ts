import { Late } from "../node/late.ts";
import type { ChatModel, ChatModelEvent, ChatModelRequest, Tell } from "./provider.ts";

/** A model whose code comes a moment after the start. */
export class LateChatModel implements ChatModel {
  readonly #model: Late<ChatModel>;

  /** `load` imports it. */
  constructor(load: () => Promise<ChatModel>) {
    this.#model = new Late(load);
  }

  async prepare(): Promise<void> {
    const model = await this.#model.come();
    await model.prepare?.();
  }

  async stream(request: ChatModelRequest, signal: AbortSignal, tell: Tell<ChatModelEvent>): Promise<void> {
    const model = await this.#model.part;
    return model.stream(request, signal, tell);
  }
}
