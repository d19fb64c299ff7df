import { ALL_MEDIA_TYPES } from "../../protocol/attachments.ts";
import { HistoryProvider } from "../history/history.ts";
import { Late } from "../late.ts";
import type { ChatModel, ChatModelEvent, ChatModelRequest, Provider, Tell } from "../provider.ts";
import type { ChatCompletionsModel, ChatCompletionsOptions } from "./chat-completions.ts";

/** A provider that speaks OpenAI's Chat Completions API, whoever's server it is. */
export function createChatCompletions(options: ChatCompletionsOptions): Provider {
  const { id, label, mediaTypes = ALL_MEDIA_TYPES } = options;
  return new HistoryProvider({ id, label, mediaTypes }, new LateChatCompletions(options));
}

class LateChatCompletions implements ChatModel {
  readonly #model: Late<ChatCompletionsModel>;

  constructor(options: ChatCompletionsOptions) {
    this.#model = new Late(async () => {
      const chat = await import("./chat-completions.ts");
      return new chat.ChatCompletionsModel(options);
    });
  }

  async prepare(): Promise<void> {
    const model = await this.#model.come();
    await model.prepare();
  }

  async stream(
    request: ChatModelRequest,
    signal: AbortSignal,
    tell: Tell<ChatModelEvent>,
  ): Promise<void> {
    const model = this.#model.now ?? (await this.#model.come());
    return model.stream(request, signal, tell);
  }
}
