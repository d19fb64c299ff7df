/** Agents behind the Responses API: what they are sent, and their events, which become events of Parley's. */

import {
  base64Of,
  messagesUntilAsked,
  type RunAttachment,
  type RunInput,
  textOfFile,
  textParts,
} from "../agent/run-function.ts";
import { HIDDEN_FAILURE } from "../agent/tool-definition.ts";
import { asString, isRecord, records } from "../protocol/json.ts";
import { messageSources } from "../providers/citations.ts";
import { reportsFailure, UpstreamFailure } from "../providers/failures.ts";
import { callsOf, partsOf, textOf } from "../providers/history.ts";
import { responsesUsage } from "../providers/usage.ts";

/** The whole conversation; after decisions, with the items of the open exchange and the decisions at its end. */
export function responsesInput(input: RunInput): object[] {
  const { message, messages, attachments, ctx } = input;
  const decided = ctx.approvals.flatMap(({ id, approved, reason, kept }) => [
    kept,
    { type: "mcp_approval_response", approval_request_id: id, approve: approved, reason },
  ]);
  const content = [...textParts(message, "input_text"), ...attachments.map(responsesPart)];
  const withFiles = attachments.length === 0 ? [] : [{ role: "user", content }];
  if (decided.length > 0) return [...messagesUntilAsked(input), ...itemsSince(input), ...decided, ...withFiles];
  return withFiles.length === 0 ? messages : [...messages.slice(0, -1), ...withFiles];
}

/** The items after the message that is still being answered, without the calls that have waited. */
function itemsSince({ exchange, ctx }: RunInput): object[] {
  const asked = new Set(ctx.approvals.map(({ id }) => id));
  return exchange.slice(1).flatMap((one): object[] => {
    if (one.role === "tool") {
      const { tool_call_id: callId } = one;
      return asked.has(callId) ? [] : [{ type: "function_call_output", call_id: callId, output: textOf(partsOf(one)) }];
    }
    const text = one.role === "assistant" && one.content ? [{ role: "assistant", content: one.content }] : [];
    const calls = callsOf([one]).filter(({ id }) => !asked.has(id));
    return [...text, ...calls.map(({ id, function: called }) => ({ type: "function_call", call_id: id, ...called }))];
  });
}

function responsesPart(file: RunAttachment): object {
  const { type, name, mimeType, data } = file;
  const text = textOfFile(file);
  if (text !== undefined) return { type: "input_text", text };
  const url = `data:${mimeType};base64,${base64Of(data)}`;
  return type === "image"
    ? { type: "input_image", image_url: url }
    : { type: "input_file", filename: name, file_data: url };
}

type Json = Record<string, unknown>;

/** Other values of `#writing`: no text since the last tool, a message that came whole, a finished message. */
const [NONE, WHOLE, FINISHED] = [Symbol("none"), Symbol("whole"), Symbol("finished")];

/** Reads one answer. Its text may come in pieces, in a finished item, or in the finished response. */
export class ResponseEvents {
  /** The message that is being written: the index or id in its pieces. */
  #writing: unknown = NONE;
  /** All text of this response, and the part of it that follows the last whole message. */
  #said = "";
  #rest = "";
  /** Ids of the messages that came in pieces. Without them, a whole message is recognised by its text. */
  readonly #streamed = new Set<unknown>();
  /** Calls of the agent's own that have no result yet. */
  readonly #open = new Set<unknown>();
  /** Results, by the id of the call: one may come before its call, and the finished response lists calls again. */
  readonly #results = new Map<unknown, object>();
  /** Whether the answer may end here. */
  isComplete = false;
  /** Whether nothing more can come. While calls are open, the agent makes another model request in the same stream. */
  isOver = false;

  /** @throws UpstreamFailure for a failure that the event reports */
  *read(event: Json): Generator<object> {
    const { type, delta, item, response, ...rest } = event;
    const isSaid = type === "response.output_text.delta" || type === "response.refusal.delta";
    if (isSaid) {
      if (typeof rest.item_id === "string") this.#streamed.add(rest.item_id);
      yield* this.#say(asString(delta), rest.output_index ?? rest.item_id);
    } else if (type === "response.reasoning_summary_text.delta" || type === "response.reasoning_text.delta") {
      yield { type: "thinking", data: asString(delta) };
    } else if (type === "response.output_item.done" && isRecord(item)) yield* this.#readItem(item);
    else if (type === "response.failed" || type === "response.cancelled") {
      throw new UpstreamFailure(isRecord(response) ? (response.error ?? response) : event);
    } else if (type === "response.completed" || type === "response.incomplete") {
      yield* this.#finish(isRecord(response) ? response : {});
    } else if (type === "[DONE]") {
      this.isComplete = true;
      this.isOver = true;
    } else if (type === "response.created") [this.isComplete, this.#said, this.#rest] = [false, "", ""];
    else if (reportsFailure(event)) throw new UpstreamFailure(event);
  }

  *#say(text: string, item?: unknown): Generator<object> {
    if (text === "") return;
    // Two messages without a tool between them are two paragraphs.
    const gap = this.#writing === NONE || this.#writing === item ? "" : "\n\n";
    this.#writing = item;
    this.#said += gap + text;
    this.#rest += gap + text;
    yield { type: "token", data: gap + text };
  }

  /** Reads a whole message. If it was streamed already, its text follows that of the message before it. */
  *#finishMessage({ id, content }: Json): Generator<object> {
    const text = wholeText(content);
    const rest = this.#rest;
    const at = rest.indexOf(text.trim());
    if (at === -1 && !this.#streamed.has(id)) yield* this.#say(text, WHOLE);
    this.#rest = at === -1 ? rest : rest.slice(at + text.trim().length);
    for (const data of messageSources(content, this.#said)) yield { type: "found_source", data };
    if (this.#writing !== NONE) this.#writing = FINISHED;
  }

  *#finish({ output, usage, incomplete_details: details }: Json): Generator<object> {
    this.#rest = this.#said;
    for (const item of records(output)) yield* this.#readItem(item);
    const data = responsesUsage(usage);
    if (data !== undefined) yield { type: "usage", data };
    const isCut = isRecord(details) && details.reason === "max_output_tokens";
    if (isCut) yield { type: "finish_reason", data: "length" };
    this.isComplete = true;
    this.isOver = this.#open.size === 0;
  }

  /** Reads a message, or a call of the agent's own tool, whose result is in the same item or in another one. */
  *#readItem(item: Json): Generator<object> {
    const { type, id, call_id: callId, name, arguments: args, output, error, status } = item;
    const isTool = type === "function_call_output" || asString(type).endsWith("_call");
    if (isTool) this.#writing = NONE;
    if (type === "message") yield* this.#finishMessage(item);
    else if (type === "function_call") {
      yield { type: "tool_call", data: { id: asString(callId), tool: asString(name), arguments: args } };
      const result = this.#results.get(callId);
      if (result === undefined) this.#open.add(callId);
      else yield result;
    } else if (type === "function_call_output") {
      const result = { type: "tool_result", data: { id: callId, output: outputText(output) } };
      this.#results.set(callId, result);
      this.#open.delete(callId);
      yield result;
    } else if (type === "mcp_approval_request") {
      yield { type: "tool_approval", data: { id: asString(id), tool: asString(name), arguments: args, kept: item } };
    } else if (isTool && typeof id === "string") {
      const tool = asString(name) || asString(type).replace(/_call$/, "");
      // An approved call continues in the row of its approval request.
      const row = asString(item.approval_request_id) || id;
      yield { type: "tool_call", data: { id: row, tool, arguments: args ?? item.action ?? {} } };
      const failed = Boolean(error) || status === "failed";
      const shown = failed ? HIDDEN_FAILURE : outputText(output);
      yield { type: "tool_result", data: { id: row, output: shown, status: failed ? "failed" : "completed" } };
    }
  }
}

function wholeText(content: unknown): string {
  const parts = records(content).map(({ text, refusal }) => asString(text) || asString(refusal));
  return asString(content) || parts.join("");
}

function outputText(output: unknown): unknown {
  return Array.isArray(output)
    ? records(output)
        .map(({ text }) => asString(text))
        .join("\n")
    : (output ?? "");
}
