/** The model that is built in: no key, no network, the same answer every time, and honest about it. */

import { setTimeout as sleep } from "node:timers/promises";
import { ApiError } from "../../protocol/errors.ts";
import { assistantMessage, endOfTurn, toHistoryCall } from "../history.ts";
import type { ModelEvent, ModelRequest, ToolCall } from "../provider.ts";
import { planDemo } from "./script.ts";

/** Milliseconds between two words: about the speed of a hosted model. */
const WORD_MS = 12;

/** Plays what the script plans, word by word. */
export async function* demoModel(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent[]> {
  let said = "";
  let words = 0;
  const calls: ToolCall[] = [];
  for (const step of planDemo(request)) {
    switch (step.type) {
      case "text":
      case "thinking":
        for (const delta of step.text.match(/\s*\S+\s*$|\s*\S+/g) ?? []) {
          await sleep(step.wordMs ?? WORD_MS, undefined, { signal });
          if (step.type === "text") said += delta;
          words++;
          yield [{ type: step.type, delta }];
        }
        break;
      case "call":
        calls.push(step.call);
        break;
      case "fail":
        throw new ApiError("provider_error", step.message);
    }
  }
  const message = assistantMessage(said, calls.map(toHistoryCall));
  // Before the answer becomes one of the messages.
  const usage = { input_tokens: countWords(request), output_tokens: words };
  request.keep(message);
  yield endOfTurn(message, "stop", usage);
}

/** The demo has no tokenizer; a word counts as one token. */
function countWords({ messages }: ModelRequest): number {
  const texts = messages.map(({ content }) => (typeof content === "string" ? content : ""));
  return texts.join(" ").split(/\s+/).filter(Boolean).length;
}
