/** Reads the events of one stream of the Responses API. */

import type { AssistantMessage, HistoryToolCall } from "../../protocol/chat.ts";
import { asString, isRecord, type Json, records } from "../../protocol/json.ts";
import { type AnswerPart, partsField } from "../answer-parts.ts";
import { UpstreamFailure, UpstreamGarbage, UpstreamTruncation } from "../failures.ts";
import { assistantMessage, callArguments, endEvent, StringBuilder } from "../history.ts";
import type { ModelEvent, ModelRequest, TurnFinish } from "../provider.ts";
import type { MessageReader } from "../transport/request.ts";
import { responsesUsage } from "../usage.ts";
import { keptItem } from "./input.ts";

/** Reads the calls of tools that OpenAI runs, and the sources of answers. */
export type HostedTools = typeof import("./hosted-tools.ts");

export class ResponsesReader implements MessageReader<ModelEvent> {
  readonly #request: ModelRequest;
  /** Calls by their id: the final snapshot repeats the calls, and may contain one that had no event of its own. */
  readonly #calls = new Map<string, HistoryToolCall>();
  readonly #cutCalls = new Set<string>();
  readonly #hosted: InstanceType<HostedTools["HostedToolReader"]> | undefined;
  readonly #parts: AnswerPart[] = [];
  /** Where the text of each item begins in `#said`. */
  readonly #starts = new Map<string, number>();
  readonly #said = new StringBuilder();
  #textItem = "";
  #thinkingPart = "";
  #hasItems = false;
  isComplete = false;

  constructor(request: ModelRequest, tools: HostedTools | undefined) {
    this.#request = request;
    this.#hosted = tools && new tools.HostedToolReader();
  }

  read(event: string, json: Json, said: ModelEvent[]): void {
    const type = asString(json.type) || event;
    switch (type) {
      case "response.output_text.delta":
      case "response.refusal.delta":
        this.#text(itemKey(json), asString(json.delta), said);
        break;
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        this.#thinking(type, json, said);
        break;
      case "response.output_item.added":
        if (isRecord(json.item)) this.#hosted?.begin(json.item, said);
        break;
      case "response.code_interpreter_call_code.done":
        this.#hosted?.run(json, said);
        break;
      case "response.output_text.annotation.added": {
        const text = this.#said.toString().slice(this.#starts.get(itemKey(json)));
        this.#hosted?.cite([{ text, annotations: [json.annotation] }], this.#said.toString(), said);
        break;
      }
      case "response.output_item.done":
        this.#hasItems = true;
        this.#item(json.item, itemKey(json), said);
        break;
      case "response.completed":
      case "response.incomplete":
        this.#finish(json.response, said);
        break;
      case "response.failed":
      case "response.cancelled":
        throw new UpstreamFailure(failureOf(json.response));
    }
  }

  knows(event: string, { type }: Json): boolean {
    return event.startsWith("response.") || asString(type).startsWith("response.");
  }

  end(): void {
    if (!this.isComplete) throw new UpstreamTruncation("its stream ended without response.completed");
  }

  #text(item: string, delta: string, said: ModelEvent[]): void {
    if (delta === "") return;
    // Two messages of one response, such as a remark before the answer, are two paragraphs.
    const gap = this.#said.length > 0 && this.#textItem !== item ? "\n\n" : "";
    this.#textItem = item;
    if (!this.#starts.has(item)) this.#starts.set(item, this.#said.length + gap.length);
    this.#said.append(gap + delta);
    said.push({ type: "text", delta: gap + delta });
  }

  #thinking(type: string, json: Json, said: ModelEvent[]): void {
    const delta = asString(json.delta);
    if (delta === "") return;
    const part = `${type} ${asString(json.item_id)} ${json.summary_index ?? json.content_index}`;
    const gap = this.#thinkingPart !== "" && this.#thinkingPart !== part ? "\n\n" : "";
    this.#thinkingPart = part;
    said.push({ type: "thinking", delta: gap + delta });
  }

  #item(item: unknown, key: string, said: ModelEvent[]): void {
    if (!isRecord(item)) return;
    if (item.type === "function_call") this.#call(item, said);
    else if (item.type === "message") this.#message(item, key, said);
    else if (item.type === "reasoning" || this.#hosted?.finish(item, said)) this.#parts.push(...keptItem(item));
  }

  #call(item: Json, said: ModelEvent[]): void {
    const [id, name] = [asString(item.call_id), asString(item.name)];
    if (id === "" || name === "") throw new UpstreamGarbage("a function call has no id or no name");
    if (item.status === "incomplete") {
      this.#cutCalls.add(id);
      return;
    }
    if (this.#calls.has(id)) return;
    const called = { name, arguments: callArguments(asString(item.arguments), name, this.#request.setup.tools) };
    this.#calls.set(id, { id, type: "function", function: called });
    this.#parts.push({ type: "call" });
    said.push({ type: "call", call: { id, ...called } });
  }

  /** A whole message; usually its text was streamed before. */
  #message(item: Json, key: string, said: ModelEvent[]): void {
    if (this.#said.length === 0) this.#text(key, wholeText(item.content), said);
    const start = this.#starts.get(key);
    // A blank text is not kept: the end of the run puts a sentence in its place.
    if (start === undefined || this.#said.toString().slice(start).trim() === "") return;
    const phase = asString(item.phase);
    const notes = phase === "" ? {} : { notes: { phase } };
    this.#parts.push({ type: "text", span: [start, this.#said.length], ...notes });
    this.#hosted?.cite(item.content, this.#said.toString(), said);
  }

  #finish(response: unknown, said: ModelEvent[]): void {
    if (!isRecord(response) || asString(response.id) === "") throw new UpstreamGarbage("the response has no id");
    const output: unknown[] = Array.isArray(response.output) ? response.output : [];
    for (const [index, item] of output.entries()) {
      if (!this.#hasItems || (isRecord(item) && item.type === "function_call")) this.#item(item, String(index), said);
    }
    this.isComplete = true;
    const calls = [...this.#calls.values()];
    const saysMore = this.#parts.some((part) => part.type === "item" || "notes" in part);
    const message: AssistantMessage = {
      ...assistantMessage(this.#said.toString(), calls),
      ...(saysMore ? partsField("openai", this.#parts, calls.length) : {}),
    };
    this.#request.keep(message, { id: asString(response.id), cutCalls: [...this.#cutCalls] });
    said.push(endEvent(finishOf(response), responsesUsage(response.usage)));
  }
}

/** Some servers behind a proxy give an item another id in each event; its index stays. */
function itemKey({ output_index: index, item_id: id }: Json): string {
  return typeof index === "number" ? String(index) : asString(id);
}

function wholeText(content: unknown): string {
  return records(content)
    .map(({ text, refusal }) => asString(text) || asString(refusal))
    .join("");
}

function failureOf(response: unknown): unknown {
  return isRecord(response) && isRecord(response.error) ? response.error : response;
}

function finishOf({ status, incomplete_details: details }: Json): TurnFinish {
  if (status !== "incomplete") return "stop";
  return isRecord(details) && details.reason === "content_filter" ? "content_filter" : "length";
}
