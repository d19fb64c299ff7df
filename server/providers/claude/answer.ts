/** The blocks of one answer by Claude: makes events of them at once, and in the end the message for the history. */

import type { Usage } from "../../protocol/chat.ts";
import { asString } from "../../protocol/json.ts";
import { type AnswerPart, partsField } from "../answer-parts.ts";
import { assistantMessage, StringBuilder } from "../history.ts";
import type { ModelEvent, ModelRequest, TurnFinish } from "../provider.ts";
import { endOfTurn, ToolCallAssembler } from "../stream-pieces.ts";
import type { ThinkingBlock } from "./messages.ts";

interface Thinking {
  type: "reasoning";
  text: string;
  signature: string;
  /** The content of an encrypted block, which has neither text nor signature. */
  data: string;
}

/** The reasons with which the Messages API and Converse end an answer. All others mean a complete answer. */
const FINISHES: ReadonlyMap<string, TurnFinish> = new Map([
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  // Only tools that run at Anthropic make an answer pause, which is then incomplete.
  ["pause_turn", "length"],
  ["refusal", "content_filter"],
  ["guardrail_intervened", "content_filter"],
  ["content_filtered", "content_filter"],
]);

/** The blocks of an answer may come interleaved; `index` says to which one a piece belongs. */
export class ClaudeAnswer {
  readonly #calls = new ToolCallAssembler();
  #blocks: (AnswerPart | Thinking)[] = [];
  readonly #thinking = new Map<unknown, Thinking>();
  #text = new StringBuilder();
  /** The index of the block with the latest thinking. */
  #thinker: unknown;

  /** Consecutive texts read as one; text after another kind of block begins a new paragraph. */
  addText(delta: string, said: ModelEvent[]): void {
    if (delta === "") return;
    const last = this.#blocks.at(-1);
    const gap = last?.type === "text" || this.#text.length === 0 ? "" : "\n\n";
    const start = this.#text.length + gap.length;
    this.#text.append(gap + delta);
    if (last?.type === "text") last.span[1] = this.#text.length;
    else this.#blocks.push({ type: "text", span: [start, this.#text.length] });
    said.push({ type: "text", delta: gap + delta });
  }

  get text(): string {
    return this.#text.toString();
  }

  /** All text so far was thinking, which is not sent back to the model. */
  withdrawText(said: ModelEvent[]): void {
    if (this.#text.length === 0) return;
    this.#text = new StringBuilder();
    this.#blocks = this.#blocks.filter(({ type }) => type !== "text");
    said.push({ type: "text_was_thinking" });
  }

  /** The thinking block at this index; the first call creates it. */
  thinkingAt(index: unknown): Thinking {
    const known = this.#thinking.get(index);
    if (known !== undefined) return known;
    const block: Thinking = { type: "reasoning", text: "", signature: "", data: "" };
    this.#thinking.set(index, block);
    this.#blocks.push(block);
    return block;
  }

  addThinking(index: unknown, delta: string, said: ModelEvent[]): void {
    this.thinkingAt(index).text += delta;
    this.showThinking(index, delta, said);
  }

  /** Shows thinking without keeping it. The thoughts of two blocks are two paragraphs. */
  showThinking(index: unknown, delta: string, said: ModelEvent[]): void {
    if (delta === "") return;
    const gap = this.#thinker === undefined || this.#thinker === index ? "" : "\n\n";
    this.#thinker = index;
    said.push({ type: "thinking", delta: gap + delta });
  }

  startCall(index: unknown, id: unknown, name: unknown): void {
    this.#blocks.push({ type: "call" });
    this.#calls.add({ index, id: asString(id), function: { name: asString(name) } });
  }

  addArguments(index: unknown, piece: string): void {
    this.#calls.add({ index, function: { arguments: piece } });
  }

  /** Adds the events of calls and end, and passes the message to `keep`. @throws UpstreamGarbage for a call without a name */
  finish(stopReason: string, usage: Usage | undefined, request: ModelRequest, said: ModelEvent[]): void {
    const finish = FINISHES.get(stopReason) ?? "stop";
    const endsInCall = this.#blocks.at(-1)?.type === "call";
    const calls = this.#calls.finish({ finish, endsInCall, request });
    const message = { ...assistantMessage(this.#text.toString(), calls), ...this.#thinkingFields(calls.length) };
    request.keep(message);
    said.push(...endOfTurn(message, finish, usage));
  }

  /** The thinking to send back, with its place. Without a signature it is left out: some models refuse it, some repeat it. */
  #thinkingFields(callCount: number): { thinking_blocks?: ThinkingBlock[] } {
    const thinking = [...this.#thinking.values()].filter(isKept);
    if (thinking.length === 0) return {};
    const parts = this.#blocks.flatMap((block): AnswerPart[] => {
      if (!("data" in block)) return [block];
      return isKept(block) ? [{ type: "reasoning" }] : [];
    });
    return { thinking_blocks: thinking.map(keptBlock), ...partsField("claude", parts, callCount) };
  }
}

function isKept({ data, signature }: Thinking): boolean {
  return data !== "" || signature !== "";
}

function keptBlock({ text, signature, data }: Thinking): ThinkingBlock {
  return data === "" ? { type: "thinking", thinking: text, signature } : { type: "redacted_thinking", data };
}
