import type { AssistantMessage, HistoryToolCall, Usage } from "../../protocol/chat.ts";
import { isRecord } from "../../protocol/is-record.ts";
import { GrowingText } from "../growing-text.ts";
import { assistantMessage, endOfAnswer } from "../history/answer.ts";
import type { ChatModelEvent, TurnFinish } from "../provider.ts";
import { text } from "../text.ts";
import { ToolCallAssembler } from "../tool-call-assembler.ts";
import { isPlain, type Layout, type ThinkingBlock, thinkingBlocks } from "./thinking.ts";

type Json = Readonly<Record<string, unknown>>;

/** Reads the events of one Messages stream. */
export class AnthropicReader {
  readonly #calls = new ToolCallAssembler();
  /** By the index of their block. */
  readonly #thinking = new Map<unknown, Record<string, unknown>>();
  /** The indexes of the blocks that are calls of ours. */
  readonly #callBlocks = new Set<unknown>();
  readonly #layout: (Layout[number] | [number, number])[] = [];
  readonly #usage = new UsageCounter();
  readonly #content = new GrowingText();
  #stopReason = "";
  /** The index of the block that thought last. */
  #thinker: unknown;
  /** Whether the next text is a paragraph of its own. */
  #isNewParagraph = false;

  /** Whether the model has said that it is done: a stream that ends before that was cut. */
  get finished(): boolean {
    return this.#stopReason !== "";
  }

  /** What one event says to a reader. */
  read(event: Json): ChatModelEvent[] {
    switch (event.type) {
      case "message_start":
        this.#usage.add(isRecord(event.message) ? event.message.usage : undefined);
        return [];
      case "content_block_start":
        return isRecord(event.content_block) ? this.#start(event.index, event.content_block) : [];
      case "content_block_delta":
        return isRecord(event.delta) ? this.#delta(event.index, event.delta) : [];
      case "message_delta":
        this.#usage.add(event.usage);
        this.#stopReason = (isRecord(event.delta) && text(event.delta.stop_reason)) || this.#stopReason;
        return [];
      default:
        // `ping`, `content_block_stop`, and what later versions of the API add.
        return [];
    }
  }

  /** What there is to say at the end of the stream. `taken` are the call ids of the conversation so far. */
  end(taken: ReadonlySet<string>, label: string): ChatModelEvent[] {
    const finish = turnFinish(this.#stopReason);
    const endsInCall = this.#layout.at(-1) === "tool_use";
    const calls = this.#calls.finish({ finish, endsInCall, taken, label });
    return endOfAnswer(this.#message(calls), finish, this.#usage.total());
  }

  #start(index: unknown, block: Json): ChatModelEvent[] {
    switch (block.type) {
      case "text":
        return this.#startText(text(block.text));
      case "thinking": {
        this.#layout.push("thinking");
        this.#thinking.set(index, {
          type: "thinking",
          thinking: "",
          signature: text(block.signature),
        });
        return this.#think(index, text(block.thinking));
      }
      case "redacted_thinking":
        this.#layout.push("thinking");
        this.#thinking.set(index, { type: "redacted_thinking", data: text(block.data) });
        return [];
      case "tool_use":
        this.#layout.push("tool_use");
        this.#startCall(index, block);
        return [];
      default:
        // Blocks of tools that run on Anthropic's side: their results are in the text.
        return [];
    }
  }

  #delta(index: unknown, delta: Json): ChatModelEvent[] {
    switch (delta.type) {
      case "text_delta":
        return this.#say(text(delta.text));
      case "thinking_delta":
        return this.#think(index, text(delta.thinking));
      case "signature_delta": {
        const block = this.#thinking.get(index);
        if (block !== undefined) block.signature = text(delta.signature);
        return [];
      }
      case "input_json_delta":
        this.#write(index, text(delta.partial_json));
        return [];
      default:
        return [];
    }
  }

  #startText(first: string): ChatModelEvent[] {
    // Texts that follow each other (with citations, Claude makes many) read as one, and are kept as one.
    if (!Array.isArray(this.#layout.at(-1))) {
      this.#isNewParagraph = this.#content.length > 0;
      this.#layout.push([this.#content.length, this.#content.length]);
    }
    return this.#say(first);
  }

  #say(said: string): ChatModelEvent[] {
    if (said === "") return [];
    const delta = this.#isNewParagraph ? `\n\n${said}` : said;
    this.#isNewParagraph = false;
    this.#content.add(delta);
    const span = this.#layout.at(-1);
    if (Array.isArray(span)) {
      if (span[0] === span[1]) span[0] = this.#content.length - said.length;
      span[1] = this.#content.length;
    }
    return [{ type: "text", delta }];
  }

  #think(index: unknown, delta: string): ChatModelEvent[] {
    const block = this.#thinking.get(index);
    if (block === undefined || delta === "") return [];
    const isNewBlock = this.#thinker !== undefined && this.#thinker !== index;
    this.#thinker = index;
    block.thinking = text(block.thinking) + delta;
    return [{ type: "thinking", delta: isNewBlock ? `\n\n${delta}` : delta }];
  }

  #startCall(index: unknown, block: Json): void {
    this.#calls.add({ index, id: block.id, function: { name: block.name } });
    this.#callBlocks.add(index);
    // Empty here where the input follows in pieces; some gateways have it all at once.
    const isWhole = isRecord(block.input) && Object.keys(block.input).length > 0;
    if (isWhole) this.#write(index, JSON.stringify(block.input));
  }

  #write(index: unknown, piece: string): void {
    // Tools on Anthropic's side get inputs too: those are no calls of ours.
    if (this.#callBlocks.has(index)) this.#calls.add({ index, function: { arguments: piece } });
  }

  #message(calls: HistoryToolCall[]): AssistantMessage {
    const all: AssistantMessage = {
      ...assistantMessage(this.#content.text, calls),
      thinking_blocks: [...this.#thinking.values()],
    };
    const kept: ThinkingBlock[] = thinkingBlocks(all);
    const { thinking_blocks: _all, ...message } = all;
    if (kept.length === 0) return message;
    const layout = this.#layout.filter((block) => typeof block === "string" || block[0] < block[1]);
    return {
      ...message,
      thinking_blocks: kept,
      ...(isPlain(layout) ? {} : { anthropic_layout: layout }),
    };
  }
}

function turnFinish(reason: string): TurnFinish {
  switch (reason) {
    case "max_tokens":
    case "model_context_window_exceeded":
    // Only tools of Anthropic's own side make a turn pause: what was said is then not all of it.
    case "pause_turn":
      return "length";
    case "refusal":
      return "content_filter";
    default:
      return "stop";
  }
}

const INPUT_FIELDS = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"] as const;

/** The counts are cumulative, and gateways leave some of them out of the first or the last report. */
class UsageCounter {
  readonly #counts = new Map<string, number>();

  add(usage: unknown): void {
    if (!isRecord(usage)) return;
    for (const field of [...INPUT_FIELDS, "output_tokens"]) {
      const count = usage[field];
      if (typeof count !== "number") continue;
      this.#counts.set(field, Math.max(count, this.#counts.get(field) ?? 0));
    }
  }

  total(): Usage | undefined {
    const input = this.#counts.get("input_tokens");
    const output = this.#counts.get("output_tokens");
    if (input === undefined || output === undefined) return undefined;
    // `input_tokens` leaves out what was read from the cache or written to it.
    const counts = INPUT_FIELDS.map((field) => this.#counts.get(field) ?? 0);
    return { input_tokens: counts.reduce((sum, count) => sum + count, 0), output_tokens: output };
  }
}
