import type { Usage } from "../protocol/chat.ts";
import { toProviderError, UpstreamGarbage } from "./failures.ts";
import { isRecord, text } from "./json.ts";
import type { ProviderEvent, ToolCall, TurnFinish } from "./provider.ts";
import { UpstreamFailure } from "./upstream-refusal.ts";

type Json = Readonly<Record<string, unknown>>;

/** How a response ended, once its stream has said so. */
export interface ResponseOutcome {
  id: string;
  finish: TurnFinish;
  usage: Usage | undefined;
}

/** Reads the events of one OpenAI Responses stream. */
export class ResponsesReader {
  readonly #label: string;
  /** By call id, so that the final snapshot can bring what no event of its own has brought. */
  readonly #calls = new Map<string, ToolCall>();
  #thinkingPart = "";
  #textItem = "";
  #outcome: ResponseOutcome | undefined;

  constructor(label: string) {
    this.#label = label;
  }

  get calls(): readonly ToolCall[] {
    return [...this.#calls.values()];
  }

  /** `undefined` while the response is not over: a stream that ends before that was cut. */
  get outcome(): ResponseOutcome | undefined {
    return this.#outcome;
  }

  /** What one event says to a reader. Throws `ProviderError` for a response that failed. */
  read(type: string, event: Json): ProviderEvent[] {
    switch (type) {
      case "response.output_text.delta":
      case "response.refusal.delta":
        return this.#text(event);
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        return this.#thinking(type, event);
      case "response.output_item.done":
        return this.#item(event.item);
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

  #text(event: Json): ProviderEvent[] {
    const delta = text(event.delta);
    if (delta === "") return [];
    const item = text(event.item_id);
    // Two messages of one response, such as a remark before the answer, are two paragraphs.
    const isNewItem = this.#textItem !== "" && this.#textItem !== item;
    this.#textItem = item;
    return [{ type: "text", delta: isNewItem ? `\n\n${delta}` : delta }];
  }

  #thinking(type: string, event: Json): ProviderEvent[] {
    const delta = text(event.delta);
    if (delta === "") return [];
    const index = event.summary_index ?? event.content_index;
    const part = `${type} ${text(event.item_id)} ${String(index)}`;
    const isNewPart = this.#thinkingPart !== "" && this.#thinkingPart !== part;
    this.#thinkingPart = part;
    return [{ type: "thinking", delta: isNewPart ? `\n\n${delta}` : delta }];
  }

  #item(item: unknown): ProviderEvent[] {
    if (!isRecord(item) || item.type !== "function_call") return [];
    const [id, name] = [text(item.call_id), text(item.name)];
    if (id === "" || name === "") {
      throw toProviderError(
        this.#label,
        new UpstreamGarbage("a function call has no id or no name"),
      );
    }
    if (this.#calls.has(id)) return [];
    const call = {
      id,
      name,
      arguments: text(item.arguments).trim() === "" ? "{}" : text(item.arguments),
    };
    this.#calls.set(id, call);
    return [{ type: "call", call }];
  }

  #end(response: unknown): ProviderEvent[] {
    if (!isRecord(response) || text(response.id) === "") {
      throw toProviderError(this.#label, new UpstreamGarbage("the response has no id"));
    }
    const output: unknown[] = Array.isArray(response.output) ? response.output : [];
    const events = output.flatMap((item) => this.#item(item));
    this.#outcome = {
      id: text(response.id),
      finish: turnFinish(response),
      usage: readUsage(response.usage),
    };
    return events;
  }
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
