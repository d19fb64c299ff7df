/** Why a model stopped, in the words of any server. */

import type { TurnFinish } from "./provider.ts";

/** Google's ways to say that the model wrote a call that is none, or of a tool that it does not have; proxies and packages pass them on. */
export const MALFORMED_CALL = /malformed|function_call_filter|unexpected_tool_call/i;

/** The server gave up in the middle of the answer: DeepSeek's `insufficient_system_resource`, vLLM's `abort`, Zhipu's `network_error`. */
const GIVEN_UP = /error|abort|cancel|fail|interrupt|insufficient_system_resource|time_?out/i;

/** `undefined` for an answer that is not whole. An unknown word is an end: servers have dozens of them. */
export function turnFinish(reason: string): TurnFinish | undefined {
  if (GIVEN_UP.test(reason)) return undefined;
  // Google adds the kind of filter: "content_filter: PROHIBITED_CONTENT".
  if (reason.startsWith("content_filter")) return "content_filter";
  // The last two are Mistral's and Zhipu's, for a full context.
  return ["length", "model_length", "model_context_window_exceeded"].includes(reason) ? "length" : "stop";
}
