/** The model that is built in: no key, no network, the same answer every time, and honest about it. */

import { setTimeout as delay } from "node:timers/promises";
import { ProviderError } from "../failures/provider-error.ts";
import { assistantMessage, toHistoryCall } from "../history/answer.ts";
import type { ChatModel, ChatModelEvent, ChatModelRequest, Tell, ToolCall } from "../provider.ts";
import { planDemo } from "./script.ts";

/** Milliseconds between two words: about the speed of a hosted model. */
const WORD_MS = 12;

export const demoModel: ChatModel = { stream: play };

/** Plays what the script plans, word by word. */
async function play(request: ChatModelRequest, signal: AbortSignal, tell: Tell<ChatModelEvent>): Promise<void> {
  let said = "";
  let words = 0;
  const calls: ToolCall[] = [];
  for (const step of planDemo(request)) {
    switch (step.type) {
      case "text":
      case "thinking":
        for (const delta of step.text.match(/\s*\S+\s*$|\s*\S+/g) ?? []) {
          await delay(step.wordMs ?? WORD_MS, undefined, { signal });
          if (step.type === "text") said += delta;
          words++;
          await tell([{ type: step.type, delta }]);
        }
        break;
      case "call":
        calls.push(step.call);
        await tell([step]);
        break;
      case "fail":
        throw new ProviderError("provider_error", step.message);
    }
  }
  await tell([
    {
      type: "end",
      finish: "stop",
      usage: { input_tokens: countWords(request), output_tokens: words },
      message: assistantMessage(said, calls.map(toHistoryCall)),
    },
  ]);
}

/** The demo has no tokenizer; a word counts as one token. */
function countWords({ messages }: ChatModelRequest): number {
  const texts = messages.map(({ content }) => (typeof content === "string" ? content : ""));
  return texts.join(" ").split(/\s+/).filter(Boolean).length;
}
