/** Minimal responses of OpenAI's two APIs. */

import { eventStream, type UpstreamReply } from "./upstream-server.ts";

export interface ScriptedCall {
  id: string;
  name: string;
  args: unknown;
}

/** An API that the fake upstream can play, with the model string and settings to use it. */
export interface UpstreamApi {
  model: string;
  path: string;
  env(url: string): Record<string, string>;
  text(text: string, id?: string): UpstreamReply;
  calls(calls: readonly ScriptedCall[], id?: string): UpstreamReply;
  /** Begins to answer, then sends nothing more. */
  stall(text: string): UpstreamReply;
  /** Begins to answer; the stream ends without a final event. */
  cut(text: string): UpstreamReply;
}

export const RESPONSES: UpstreamApi = {
  model: "openai/gpt-5.2",
  path: "/v1/responses",
  env: (url) => ({ OPENAI_API_KEY: "sk-of-a-test", OPENAI_BASE_URL: url }),
  text: (text, id = "resp_1") => ({ body: [eventStream(textDelta(text), completed(id))] }),
  calls: (calls, id = "resp_1") => ({ body: [eventStream(...calls.map(functionCall), completed(id))] }),
  stall: (text) => ({ body: [eventStream(textDelta(text))], end: "stall" }),
  cut: (text) => ({ body: [eventStream(textDelta(text))] }),
};

export const CHAT_COMPLETIONS: UpstreamApi = {
  model: "litellm/team/gpt-5.2",
  path: "/v1/chat/completions",
  env: (url) => ({ LITELLM_BASE_URL: url, LITELLM_API_KEY: "sk-of-a-test" }),
  text: (text) => ({ body: [eventStream(chunk({ content: text }), finished("stop"), "[DONE]")] }),
  calls: (calls) => ({ body: [eventStream(...calls.map(toolCallChunk), finished("tool_calls"), "[DONE]")] }),
  stall: (text) => ({ body: [eventStream(chunk({ content: text }))], end: "stall" }),
  cut: (text) => ({ body: [eventStream(chunk({ content: text }))] }),
};

function textDelta(delta: string) {
  return { type: "response.output_text.delta", item_id: "msg_1", delta };
}

function functionCall({ id, name, args }: ScriptedCall) {
  const item = { type: "function_call", call_id: id, name, arguments: JSON.stringify(args) };
  return { type: "response.output_item.done", item };
}

function completed(id: string) {
  const usage = { input_tokens: 10, output_tokens: 5 };
  return { type: "response.completed", response: { id, status: "completed", usage } };
}

function chunk(delta: object) {
  return { choices: [{ index: 0, delta, finish_reason: null }] };
}

function toolCallChunk({ id, name, args }: ScriptedCall, index: number) {
  const call = { index, id, type: "function", function: { name, arguments: JSON.stringify(args) } };
  return chunk({ tool_calls: [call] });
}

function finished(finish_reason: string) {
  return { choices: [{ index: 0, delta: {}, finish_reason }], usage: { prompt_tokens: 10, completion_tokens: 5 } };
}
