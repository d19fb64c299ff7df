import type { AssistantMessage, Usage } from "../protocol/chat.ts";
import { ExtraFields } from "./extra-fields.ts";
import { toProviderError, UpstreamGarbage } from "./failures.ts";
import { isRecord, text } from "./json.ts";
import type { ChatModelEvent, TurnFinish } from "./provider.ts";
import { ToolCallAssembler } from "./tool-call-assembler.ts";

/** Reads the chunks of one Chat Completions stream, as OpenAI and all who copied it send them. */
export class ChatReader {
  readonly #calls = new ToolCallAssembler();
  readonly #extra = new ExtraFields();
  #content = "";
  #finish: string | undefined;
  #usage: Usage | undefined;

  /** Whether the model has said that it is done: a stream that ends before that was cut. */
  get finished(): boolean {
    return this.#finish !== undefined;
  }

  /** What one chunk says to a reader. */
  read(chunk: Readonly<Record<string, unknown>>): ChatModelEvent[] {
    this.#usage = readUsage(chunk.usage) ?? this.#usage;
    // The chunk with the usage has no choices; some servers write `null` there.
    const choice: unknown = Array.isArray(chunk.choices) ? chunk.choices[0] : undefined;
    if (!isRecord(choice)) return [];
    this.#finish = text(choice.finish_reason) || this.#finish;
    return isRecord(choice.delta) ? this.#delta(choice.delta) : [];
  }

  /**
   * What there is to say at the end of the stream. Calls that were gathered are made whatever the finish
   * reason is: it says "stop" on several servers. `taken` are the call ids of the conversation so far.
   */
  end(taken: ReadonlySet<string>, label: string): ChatModelEvent[] {
    const calls = this.#calls.finish(taken);
    if (calls.some((call) => call.function.name === "")) {
      throw toProviderError(label, new UpstreamGarbage("a tool call has no name"));
    }
    const message: AssistantMessage = {
      ...this.#extra.toObject(),
      role: "assistant",
      content: this.#content === "" && calls.length > 0 ? null : this.#content,
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    };
    return [
      ...calls.map((call): ChatModelEvent => {
        const { name, arguments: written } = call.function;
        return { type: "call", call: { id: call.id, name, arguments: written } };
      }),
      {
        type: "end",
        finish: turnFinish(this.#finish),
        ...(this.#usage === undefined ? {} : { usage: this.#usage }),
        message,
      },
    ];
  }

  #delta(delta: Readonly<Record<string, unknown>>): ChatModelEvent[] {
    const events: ChatModelEvent[] = [];
    const thinking = thinkingOf(delta);
    if (thinking !== "") events.push({ type: "thinking", delta: thinking });
    const content = contentOf(delta.content) + text(delta.refusal);
    if (content !== "") {
      this.#content += content;
      events.push({ type: "text", delta: content });
    }
    if (Array.isArray(delta.tool_calls)) {
      for (const piece of delta.tool_calls) if (isRecord(piece)) this.#calls.add(piece);
    }
    this.#extra.add(delta, READ_FIELDS);
    return events;
  }
}

/** Fields of a delta that become fields of the message by themselves. `refusal` is kept as text. */
const READ_FIELDS = new Set(["role", "content", "refusal", "tool_calls"]);

/** The same reasoning may come in two or three fields at once: only the first that is there counts. */
function thinkingOf(delta: Readonly<Record<string, unknown>>): string {
  const plain = text(delta.reasoning_content) || text(delta.reasoning);
  if (plain !== "" || !Array.isArray(delta.thinking_blocks)) return plain;
  return delta.thinking_blocks
    .map((block: unknown) => (isRecord(block) ? text(block.thinking) : ""))
    .join("");
}

/** A string, or the text parts of an array, as some servers send what their model API sent. */
function contentOf(content: unknown): string {
  if (!Array.isArray(content)) return text(content);
  return content.map((part: unknown) => (isRecord(part) ? text(part.text) : "")).join("");
}

function readUsage(usage: unknown): Usage | undefined {
  if (!isRecord(usage)) return undefined;
  const { prompt_tokens: input, completion_tokens: output } = usage;
  if (typeof input !== "number" || typeof output !== "number") return undefined;
  return { input_tokens: input, output_tokens: output };
}

function turnFinish(reason: string | undefined): TurnFinish {
  return reason === "length" || reason === "content_filter" ? reason : "stop";
}
