import type { AssistantMessage, Usage } from "../../protocol/chat.ts";
import { isRecord } from "../../protocol/is-record.ts";
import { toProviderError, UpstreamGarbage } from "../failures/failures.ts";
import { GrowingText } from "../growing-text.ts";
import type { SpokenEvent, ToolCall, TurnFinish } from "../provider.ts";
import { text } from "../text.ts";
import { UpstreamFailure } from "../upstream/refusal.ts";
import { missingSources } from "./citations.ts";
import { HostedCalls, isHostedCall } from "./hosted.ts";
import { keptItem, type OutputPart, toAssistantMessage } from "./output.ts";

type Json = Readonly<Record<string, unknown>>;

/** A response whose stream has said how it ended. */
export interface FinishedResponse {
  id: string;
  finish: TurnFinish;
  usage: Usage | undefined;
  calls: readonly ToolCall[];
  /** Ids of calls that the token limit has cut: they cannot be made, but the response is open at them. */
  cutCalls: readonly string[];
  /** For conversations that the client keeps. */
  message: AssistantMessage;
}

/** Reads the events of one OpenAI Responses stream. */
export class ResponsesReader {
  readonly #label: string;
  /** By call id, so that the final snapshot can bring what no event of its own has brought. */
  readonly #calls = new Map<string, ToolCall>();
  readonly #cutCalls = new Set<string>();
  readonly #hosted = new HostedCalls();
  readonly #parts: OutputPart[] = [];
  /** Where the text of each item begins in `#said`. */
  readonly #starts = new Map<string, number>();
  readonly #said = new GrowingText();
  #textItem = "";
  #thinkingPart = "";
  #hasItems = false;
  #finished: FinishedResponse | undefined;

  constructor(label: string) {
    this.#label = label;
  }

  /** `undefined` while the response is not over: a stream that ends before that was cut. */
  get finished(): FinishedResponse | undefined {
    return this.#finished;
  }

  /** What one event says to a reader. Throws `ProviderError` for a response that failed. */
  read(type: string, event: Json): SpokenEvent[] {
    switch (type) {
      case "response.output_text.delta":
      case "response.refusal.delta":
        return this.#text(itemKey(event), text(event.delta));
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        return this.#thinking(type, event);
      case "response.output_item.added":
        return isRecord(event.item) && isHostedCall(event.item) ? this.#hosted.begin(event.item) : [];
      case "response.code_interpreter_call_code.done":
        return this.#hosted.run(event);
      case "response.output_item.done":
        this.#hasItems = true;
        return this.#item(event.item, itemKey(event));
      case "response.completed":
      case "response.incomplete":
        return this.#end(event.response);
      case "response.failed":
      case "response.cancelled":
        throw toProviderError(this.#label, new UpstreamFailure(failureOf(event.response)));
      default:
        return [];
    }
  }

  #text(item: string, delta: string): SpokenEvent[] {
    if (delta === "") return [];
    // Two messages of one response, such as a remark before the answer, are two paragraphs.
    const gap = this.#said.length > 0 && this.#textItem !== item ? "\n\n" : "";
    this.#textItem = item;
    if (!this.#starts.has(item)) this.#starts.set(item, this.#said.length + gap.length);
    this.#said.add(gap + delta);
    return [{ type: "text", delta: gap + delta }];
  }

  #thinking(type: string, event: Json): SpokenEvent[] {
    const delta = text(event.delta);
    if (delta === "") return [];
    const index = event.summary_index ?? event.content_index;
    const part = `${type} ${text(event.item_id)} ${String(index)}`;
    const isNewPart = this.#thinkingPart !== "" && this.#thinkingPart !== part;
    this.#thinkingPart = part;
    return [{ type: "thinking", delta: isNewPart ? `\n\n${delta}` : delta }];
  }

  #item(item: unknown, key: string): SpokenEvent[] {
    if (!isRecord(item)) return [];
    if (item.type === "function_call") return this.#call(item);
    if (item.type === "message") return this.#message(item, key);
    const isHosted = isHostedCall(item);
    const part = isHosted || item.type === "reasoning" ? keptItem(item) : undefined;
    if (part !== undefined) this.#parts.push(part);
    return isHosted ? this.#hosted.finish(item) : [];
  }

  #call(item: Json): SpokenEvent[] {
    const [id, name] = [text(item.call_id), text(item.name)];
    if (id === "" || name === "") {
      throw toProviderError(this.#label, new UpstreamGarbage("a function call has no id or no name"));
    }
    if (item.status === "incomplete") {
      this.#cutCalls.add(id);
      return [];
    }
    if (this.#calls.has(id)) return [];
    const written = text(item.arguments).trim() === "" ? "{}" : text(item.arguments);
    const call = { id, name, arguments: written };
    this.#calls.set(id, call);
    this.#parts.push({ type: "function_call", call_id: id });
    return [{ type: "call", call }];
  }

  /** A whole message: its text has mostly come in pieces before. */
  #message(item: Json, key: string): SpokenEvent[] {
    const events = this.#said.length === 0 ? this.#text(key, wholeText(item.content)) : [];
    const start = this.#starts.get(key);
    if (start === undefined) return events;
    const { phase } = item;
    const end = this.#said.length;
    this.#parts.push({
      type: "message",
      start,
      end,
      ...(typeof phase === "string" ? { phase } : {}),
    });
    return [...events, ...this.#text(key, missingSources(this.#said.text.slice(start), item.content))];
  }

  #end(response: unknown): SpokenEvent[] {
    if (!isRecord(response) || text(response.id) === "") {
      throw toProviderError(this.#label, new UpstreamGarbage("the response has no id"));
    }
    const output: unknown[] = Array.isArray(response.output) ? response.output : [];
    const events = output.flatMap((item, index) =>
      this.#hasItems && !isFunctionCall(item) ? [] : this.#item(item, String(index)),
    );
    const calls = [...this.#calls.values()];
    this.#finished = {
      id: text(response.id),
      finish: turnFinish(response),
      usage: readUsage(response.usage),
      calls,
      cutCalls: [...this.#cutCalls],
      message: toAssistantMessage(this.#said.text, calls, this.#parts),
    };
    return events;
  }
}

/** Some servers behind a proxy give an item another id in each event; its place stays. */
function itemKey({ output_index: index, item_id: id }: Json): string {
  return typeof index === "number" ? String(index) : text(id);
}

function isFunctionCall(item: unknown): boolean {
  return isRecord(item) && item.type === "function_call";
}

function wholeText(content: unknown): string {
  if (!Array.isArray(content)) return "";
  return content.map((part: unknown) => (isRecord(part) ? text(part.text) || text(part.refusal) : "")).join("");
}

function failureOf(response: unknown): unknown {
  return isRecord(response) && isRecord(response.error) ? response.error : response;
}

function turnFinish({ status, incomplete_details: details }: Json): TurnFinish {
  if (status !== "incomplete") return "stop";
  return isRecord(details) && details.reason === "content_filter" ? "content_filter" : "length";
}

function readUsage(usage: unknown): Usage | undefined {
  if (!isRecord(usage)) return undefined;
  const { input_tokens: input, output_tokens: output } = usage;
  if (typeof input !== "number" || typeof output !== "number") return undefined;
  return { input_tokens: input, output_tokens: output };
}
