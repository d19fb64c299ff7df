import type {
  ContentBlockDelta,
  ContentBlockStart,
  ConverseStreamOutput,
  ReasoningContentBlockDelta,
  StopReason,
  TokenUsage,
} from "@aws-sdk/client-bedrock-runtime";
import type { AssistantMessage, HistoryToolCall, Usage } from "../../protocol/chat.ts";
import { isPlain, type Layout } from "../anthropic/thinking.ts";
import { ProviderError } from "../failures/provider-error.ts";
import { GrowingText } from "../growing-text.ts";
import { assistantMessage, endOfAnswer } from "../history/answer.ts";
import type { ChatModelEvent, TurnFinish } from "../provider.ts";
import { MODEL_TAGS, type ThinkTagPiece, ThinkTags } from "../think-tags.ts";
import { ToolCallAssembler } from "../tool-call-assembler.ts";
import { LABEL } from "./failures.ts";
import { type ThinkingBlock, thinkingBlock } from "./thinking.ts";

/** The blocks of an answer, in the order in which they began. */
type Block = Reasoning | Text | { kind: "tool_use" };

interface Reasoning {
  kind: "thinking";
  text: string;
  signature: string;
  redacted: Uint8Array[];
}

/** Where in the whole text it is. */
interface Text {
  kind: "text";
  start: number;
  end: number;
}

/** Reads the events of one ConverseStream answer. Its blocks may come interleaved, told apart by their index. */
export class BedrockReader {
  readonly #calls = new ToolCallAssembler();
  readonly #blocks: Block[] = [];
  readonly #reasoning = new Map<number, Reasoning>();
  /** Calls that the provider runs by itself are no concern of ours. */
  readonly #ignored = new Set<number>();
  /**
   * By the index of their text. Nova thinks aloud before each call, in tags, and so do models whose server
   * does not take it out: https://docs.aws.amazon.com/nova/latest/userguide/tool-use-invocation.html
   */
  readonly #tags = new Map<number, ThinkTags>();
  readonly #content = new GrowingText();
  /** The index of the block that thought last. */
  #thinker: number | undefined;
  #stopReason: StopReason | undefined;
  #usage: Usage | undefined;
  #complete = false;

  /** Whether the model has said that it is done: a stream that ends before that was cut. */
  get finished(): boolean {
    return this.#stopReason !== undefined;
  }

  /** Whether there is nothing left to come: the usage is the last event. */
  get complete(): boolean {
    return this.#complete;
  }

  /** What one event says to a reader. */
  read(event: ConverseStreamOutput): ChatModelEvent[] {
    if (event.contentBlockStart !== undefined) {
      const { contentBlockIndex = 0, start } = event.contentBlockStart;
      if (start !== undefined) this.#start(contentBlockIndex, start);
    } else if (event.contentBlockDelta !== undefined) {
      const { contentBlockIndex = 0, delta } = event.contentBlockDelta;
      if (delta !== undefined) return this.#delta(contentBlockIndex, delta);
    } else if (event.contentBlockStop !== undefined) {
      return this.#endText(event.contentBlockStop.contentBlockIndex ?? 0);
    } else if (event.messageStop !== undefined) {
      this.#stopReason = event.messageStop.stopReason ?? "end_turn";
    } else if (event.metadata !== undefined) {
      this.#usage = readUsage(event.metadata.usage);
      this.#complete = this.finished;
    }
    return [];
  }

  /** What there is to say at the end of the stream. `taken` are the call ids of the conversation so far. */
  end(taken: ReadonlySet<string>): ChatModelEvent[] {
    refuseMalformed(this.#stopReason);
    const events = [...this.#tags.keys()].flatMap((index) => this.#endText(index));
    const finish = turnFinish(this.#stopReason);
    const endsInCall = this.#blocks.at(-1)?.kind === "tool_use";
    const calls = this.#calls.finish({ finish, endsInCall, taken, label: LABEL });
    return [...events, ...endOfAnswer(this.#message(calls), finish, this.#usage)];
  }

  #message(calls: HistoryToolCall[]): AssistantMessage {
    const thinking: ThinkingBlock[] = [];
    const layout: Layout[number][] = [];
    let uses = 0;
    for (const block of this.#blocks) {
      if (block.kind === "text") layout.push([block.start, block.end]);
      else if (block.kind === "tool_use" && ++uses <= calls.length) layout.push("tool_use");
      const kept = block.kind === "thinking" ? thinkingBlock(block) : undefined;
      if (kept === undefined) continue;
      thinking.push(kept);
      layout.push("thinking");
    }
    return {
      ...(thinking.length === 0 ? {} : { thinking_blocks: thinking }),
      // As Claude's own API keeps it: the reasoning must go back where it was.
      ...(thinking.length === 0 || isPlain(layout) ? {} : { anthropic_layout: layout }),
      ...assistantMessage(this.#content.text, calls),
    };
  }

  #start(index: number, { toolUse }: ContentBlockStart): void {
    if (toolUse === undefined) return;
    if (toolUse.type === "server_tool_use") {
      this.#ignored.add(index);
      return;
    }
    this.#blocks.push({ kind: "tool_use" });
    this.#calls.add({ index, id: toolUse.toolUseId, function: { name: toolUse.name } });
  }

  #delta(index: number, delta: ContentBlockDelta): ChatModelEvent[] {
    if (delta.text !== undefined) return this.#text(index, delta.text);
    if (delta.toolUse !== undefined && !this.#ignored.has(index)) {
      this.#calls.add({ index, function: { arguments: delta.toolUse.input } });
    }
    return delta.reasoningContent === undefined ? [] : this.#think(index, delta.reasoningContent);
  }

  #text(index: number, piece: string): ChatModelEvent[] {
    const tags = this.#tags.get(index) ?? new ThinkTags(MODEL_TAGS);
    this.#tags.set(index, tags);
    return this.#told(index, tags.push(piece));
  }

  #endText(index: number): ChatModelEvent[] {
    const tags = this.#tags.get(index);
    this.#tags.delete(index);
    return tags === undefined ? [] : this.#told(index, tags.end());
  }

  #told(index: number, { thinking, text }: ThinkTagPiece): ChatModelEvent[] {
    return [...this.#show(index, thinking), ...this.#say(text)];
  }

  /** Texts that follow each other read as one; after another kind of block begins a new paragraph. */
  #say(said: string): ChatModelEvent[] {
    if (said === "") return [];
    const last = this.#blocks.at(-1);
    const gap = last?.kind === "text" || this.#content.length === 0 ? "" : "\n\n";
    const start = this.#content.length + gap.length;
    this.#content.add(gap + said);
    if (last?.kind === "text") last.end = this.#content.length;
    else this.#blocks.push({ kind: "text", start, end: this.#content.length });
    return [{ type: "text", delta: gap + said }];
  }

  #think(index: number, delta: ReasoningContentBlockDelta): ChatModelEvent[] {
    const block = this.#reasoning.get(index) ?? this.#startReasoning(index);
    block.signature += delta.signature ?? "";
    if (delta.redactedContent !== undefined) block.redacted.push(delta.redactedContent);
    block.text += delta.text ?? "";
    return this.#show(index, delta.text ?? "");
  }

  /** Thoughts of two blocks are two paragraphs. */
  #show(index: number, thought: string): ChatModelEvent[] {
    if (thought === "") return [];
    const gap = this.#thinker === undefined || this.#thinker === index ? "" : "\n\n";
    this.#thinker = index;
    return [{ type: "thinking", delta: gap + thought }];
  }

  #startReasoning(index: number): Reasoning {
    const block: Reasoning = { kind: "thinking", text: "", signature: "", redacted: [] };
    this.#reasoning.set(index, block);
    this.#blocks.push(block);
    return block;
  }
}

function refuseMalformed(reason: StopReason | undefined): void {
  if (reason !== "malformed_model_output" && reason !== "malformed_tool_use") return;
  const what = reason === "malformed_tool_use" ? "a tool call" : "an answer";
  throw new ProviderError("provider_error", `The model wrote ${what} that ${LABEL} could not read. Please try again.`);
}

function turnFinish(reason: StopReason | undefined): TurnFinish {
  switch (reason) {
    case "max_tokens":
    case "model_context_window_exceeded":
      return "length";
    case "guardrail_intervened":
    case "content_filtered":
      return "content_filter";
    default:
      return "stop";
  }
}

/** Bedrock counts what came from its cache, or went into it, apart from the input. */
function readUsage(usage: TokenUsage | undefined): Usage | undefined {
  if (usage?.inputTokens === undefined || usage.outputTokens === undefined) return undefined;
  const { inputTokens, outputTokens, cacheReadInputTokens = 0, cacheWriteInputTokens = 0 } = usage;
  return {
    input_tokens: inputTokens + cacheReadInputTokens + cacheWriteInputTokens,
    output_tokens: outputTokens,
  };
}
