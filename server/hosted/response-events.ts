/** The Responses API, as servers of agents stream it: their events become events of ours. */

import { asString, isRecord, records } from "../protocol/json.ts";
import { reportsFailure, UpstreamFailure } from "../providers/failures.ts";

type Json = Record<string, unknown>;

/** Reads one answer. Its text may come in pieces, in a finished item, or in the finished response. */
export class ResponseEvents {
  /** What was said of the message that is being written. */
  #piece = "";
  #pieceItem: unknown;
  /** Everything that was said. */
  #said = "";
  /** Whether the next message is a paragraph of its own. */
  #isBeside = false;
  /** Calls of the agent's own that have no result yet. */
  readonly #open = new Set<unknown>();
  /** Whether the answer may end here. */
  isComplete = false;
  /** Whether nothing more can come: an agent that answers a call of its model asks it again in the same stream. */
  isOver = false;

  /** @throws UpstreamFailure for a failure that the event reports */
  *read(event: Json): Generator<object> {
    const { type, delta, item, response, ...rest } = event;
    const isSaid = type === "response.output_text.delta" || type === "response.refusal.delta";
    if (isSaid) yield* this.#say(asString(delta), rest.output_index ?? rest.item_id);
    else if (type === "response.reasoning_summary_text.delta" || type === "response.reasoning_text.delta") {
      yield { type: "thinking", data: asString(delta) };
    } else if (type === "response.output_item.done" && isRecord(item)) {
      if (item.type === "message") yield* this.#finishMessage(item);
      else yield* this.#readItem(item);
    } else if (type === "response.failed" || type === "response.cancelled") {
      throw new UpstreamFailure(isRecord(response) ? (response.error ?? response) : event);
    } else if (type === "response.completed" || type === "response.incomplete") {
      yield* this.#finish(isRecord(response) ? response : {});
    } else if (type === "[DONE]") {
      this.isComplete = true;
      this.isOver = true;
    } else if (type === "response.created") this.isComplete = false;
    else if (reportsFailure(event)) throw new UpstreamFailure(event);
  }

  *#say(text: string, item?: unknown): Generator<object> {
    if (text === "") return;
    // Two messages without a tool between them are two paragraphs.
    const isOther = this.#isBeside || (this.#piece !== "" && this.#pieceItem !== item);
    if (isOther) this.#piece = "";
    const gap = isOther ? "\n\n" : "";
    this.#isBeside = false;
    this.#pieceItem = item;
    this.#piece += text;
    this.#said += gap + text;
    yield { type: "token", data: gap + text };
  }

  /** A whole message: only what was not streamed is taken from there. */
  *#finishMessage({ content }: Json): Generator<object> {
    if (this.#piece === "") yield* this.#say(wholeText(content));
    this.#isBeside = this.#piece !== "";
    this.#piece = "";
  }

  *#finish({ output, usage, incomplete_details: details }: Json): Generator<object> {
    for (const item of records(output)) {
      if (item.type !== "message") yield* this.#readItem(item);
      else if (!this.#said.includes(wholeText(item.content))) yield* this.#finishMessage(item);
    }
    if (isRecord(usage)) yield { type: "usage", data: usage };
    const isCut = isRecord(details) && details.reason === "max_output_tokens";
    if (isCut) yield { type: "finish_reason", data: "length" };
    this.isComplete = true;
    this.isOver = this.#open.size === 0;
  }

  /** Tools of the agent's own: a call with its result beside it, or in another item. */
  *#readItem(item: Json): Generator<object> {
    const { type, id, call_id: callId, name, arguments: args, output, error, status } = item;
    const isTool = type === "function_call_output" || asString(type).endsWith("_call");
    if (isTool) [this.#piece, this.#isBeside] = ["", false];
    if (type === "function_call") {
      this.#open.add(callId);
      yield { type: "tool_call", data: { id: asString(callId), tool: asString(name), arguments: args } };
    } else if (type === "function_call_output") {
      this.#open.delete(callId);
      yield { type: "tool_result", data: { id: callId, output: outputText(output) } };
    } else if (type === "mcp_approval_request") {
      yield { type: "tool_approval", data: { id: asString(id), tool: asString(name), arguments: args, kept: item } };
    } else if (isTool && typeof id === "string") {
      const tool = asString(name) || asString(type).replace(/_call$/, "");
      // An approved call goes on in the row of its request.
      const row = asString(item.approval_request_id) || id;
      yield { type: "tool_call", data: { id: row, tool, arguments: args ?? item.action ?? {} } };
      const failed = Boolean(error) || status === "failed";
      const shown = failed ? "The tool failed." : outputText(output);
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
