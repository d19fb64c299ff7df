/** Agents behind HTTP, in any language: what a project imports as `agUi` and `responses`. */

import type { RunAttachment, RunFunction, RunInput } from "../agent/run-function.ts";
import { ConfigError } from "../errors.ts";
import { asString, isRecord, records } from "../protocol/json.ts";
import { UpstreamFailure, UpstreamTruncation } from "../providers/failures.ts";
import { failure } from "./answer.ts";
import { patched } from "./json-patch.ts";

export interface RemoteOptions {
  /** Sent with each request, such as `authorization`. */
  headers?: Record<string, string>;
}

/** The `run` of an agent that speaks AG-UI at this address. */
export function agUi(url: string, { headers = {} }: RemoteOptions = {}): RunFunction {
  checkUrl("agUi", url);
  return async function* (input) {
    const { message, messages, attachments, state, ctx, signal } = input;
    let own: unknown = state ?? {};
    const ids = messages.map((_message, index) => `${ctx.conversation}-${index}`);
    const sent = messages.map((one, index) => ({ id: ids[index], ...one }));
    const last = sent.at(-1);
    const body = {
      threadId: ctx.conversation,
      runId: ctx.run.id,
      state: own,
      messages:
        attachments.length === 0 || last === undefined
          ? sent
          : [...sent.slice(0, -1), { ...last, content: [...textParts(message, "text"), ...attachments.map(agUiPart)] }],
      tools: [],
      context: [],
      forwardedProps: {},
    };
    let isFinished = false;
    for await (const event of await posted(url, body, headers, signal)) {
      if (event.type === "STATE_SNAPSHOT") own = event.snapshot;
      if (event.type === "STATE_DELTA") own = patched(own, event.delta);
      if (event.type === "STATE_SNAPSHOT" || event.type === "STATE_DELTA") yield { type: "state", data: own };
      isFinished ||= event.type === "RUN_FINISHED" || event.type === "RUN_ERROR";
      yield event;
    }
    if (!isFinished) throw new UpstreamTruncation("its stream ended without RUN_FINISHED");
  };
}

/** The `run` of an agent that is served with the Responses API at this address. It gets the whole conversation each time. */
export function responses(url: string, { headers = {} }: RemoteOptions = {}): RunFunction {
  checkUrl("responses", url);
  return async function* ({ message, messages, attachments, signal }: RunInput) {
    const last = { role: "user", content: [...textParts(message, "input_text"), ...attachments.map(responsesPart)] };
    const input = attachments.length === 0 ? messages : [...messages.slice(0, -1), last];
    let isFinished = false;
    for await (const event of await posted(url, { input, stream: true }, headers, signal)) {
      yield* readResponse(event);
      isFinished ||= event.type === "response.completed" || event.type === "response.incomplete";
    }
    if (!isFinished) throw new UpstreamTruncation("its stream ended without response.completed");
  };
}

/** Only where it is used: most agents are no further than an import. */
async function posted(...request: Parameters<typeof import("./upstream.ts").postForEvents>) {
  const { postForEvents } = await import("./upstream.ts");
  return postForEvents(...request);
}

/** @throws ConfigError */
function checkUrl(name: string, url: unknown): void {
  if (typeof url === "string" && /^https?:\/\//.test(url) && URL.canParse(url)) return;
  throw new ConfigError(`${name} needs the agent's address, such as ${name}("http://127.0.0.1:8000/").`);
}

function textParts(text: string, type: string): object[] {
  return text === "" ? [] : [{ type, text }];
}

function base64(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
}

function agUiPart({ type, mimeType, data }: RunAttachment): object {
  return { type: type === "image" ? "image" : "document", source: { type: "data", value: base64(data), mimeType } };
}

function responsesPart({ type, name, mimeType, data }: RunAttachment): object {
  const url = `data:${mimeType};base64,${base64(data)}`;
  return type === "image"
    ? { type: "input_image", image_url: url }
    : { type: "input_file", filename: name, file_data: url };
}

/** An event of a response, as events of ours. */
function* readResponse({ type, delta, item, response, ...rest }: Record<string, unknown>): Generator<object> {
  if (type === "response.output_text.delta" || type === "response.refusal.delta") {
    yield { type: "token", data: asString(delta) };
  } else if (type === "response.reasoning_summary_text.delta" || type === "response.reasoning_text.delta") {
    yield { type: "thinking", data: asString(delta) };
  } else if (type === "response.output_item.done" && isRecord(item)) {
    yield* readItem(item);
  } else if (type === "response.failed" || type === "error") {
    throw new UpstreamFailure(isRecord(response) ? response.error : { type, ...rest });
  } else if (type === "response.completed" || type === "response.incomplete") {
    const { usage, incomplete_details: details } = isRecord(response) ? response : {};
    if (isRecord(usage)) yield { type: "usage", data: usage };
    const isCut = isRecord(details) && details.reason === "max_output_tokens";
    if (isCut) yield { type: "finish_reason", data: "length" };
  }
}

/** Tools of the agent's own: a call with its result beside it, or in another item. */
function* readItem(item: Record<string, unknown>): Generator<object> {
  const { type, id, call_id: callId, name, arguments: args, output, error, status } = item;
  if (type === "function_call") {
    yield { type: "tool_call", data: { id: asString(callId), tool: asString(name), arguments: args } };
  } else if (type === "function_call_output") {
    yield { type: "tool_result", data: { id: callId, output: outputText(output) } };
  } else if (type === "mcp_approval_request") {
    throw failure(`The agent asks for an approval (${asString(name)}), which cannot be given to an agent with run.`);
  } else if (asString(type).endsWith("_call") && typeof id === "string") {
    const tool = asString(name) || asString(type).replace(/_call$/, "");
    yield { type: "tool_call", data: { id, tool, arguments: args ?? item.action ?? {} } };
    const failed = Boolean(error) || status === "failed";
    const shown = failed ? "The tool failed." : outputText(output);
    yield { type: "tool_result", data: { id, output: shown, status: failed ? "failed" : "completed" } };
  }
}

function outputText(output: unknown): unknown {
  return Array.isArray(output)
    ? records(output)
        .map(({ text }) => asString(text))
        .join("\n")
    : (output ?? "");
}
