import { ALL_MEDIA_TYPES } from "../../protocol/attachments.ts";
import { HistoryProvider } from "../history/history.ts";
import { LateChatModel } from "../late-chat-model.ts";
import type { Provider } from "../provider.ts";
import type { ChatCompletionsOptions } from "./chat-completions.ts";

/** A provider that speaks OpenAI's Chat Completions API, whoever's server it is. */
export function createChatCompletions(options: ChatCompletionsOptions): Provider {
  const { id, label, mediaTypes = ALL_MEDIA_TYPES } = options;
  const model = new LateChatModel(async () => {
    const chat = await import("./chat-completions.ts");
    return new chat.ChatCompletionsModel(options);
  });
  return new HistoryProvider({ id, label, mediaTypes }, model);
}
