/** Reads the events of one stream of the Messages API. */

import type { Usage } from "../../protocol/chat.ts";
import { asString, isRecord, type Json, records } from "../../protocol/json.ts";
import { claudeSource, type GivenSource, givenSources } from "../citations.ts";
import { ClaudeAnswer } from "../claude/answer.ts";
import { UpstreamTruncation } from "../failures.ts";
import type { FoundSource, ModelEvent, ModelRequest } from "../provider.ts";
import type { MessageReader } from "../transport/request.ts";
import { fieldsIn, usageOf } from "../usage.ts";

export class AnthropicReader implements MessageReader<ModelEvent> {
  readonly #request: ModelRequest;
  readonly #answer = new ClaudeAnswer();
  /** The indexes of blocks that are calls of the agent's tools. Tools that run at Anthropic have inputs, too. */
  readonly #callBlocks = new Set<unknown>();
  readonly #usage = new UsageCounter();
  #stopReason = "";
  #hasReported = false;
  readonly #given: readonly GivenSource[];
  /** The sources of blocks that have not ended, by the block's index. */
  readonly #citations = new Map<unknown, FoundSource[]>();
  isComplete = false;

  constructor(request: ModelRequest) {
    this.#request = request;
    this.#given = givenSources(request.messages);
  }

  read(_event: string, json: Json, said: ModelEvent[]): void {
    switch (json.type) {
      case "message_start":
        this.#usage.add(isRecord(json.message) ? json.message.usage : undefined);
        break;
      case "content_block_start":
        if (isRecord(json.content_block)) this.#start(json.index, json.content_block, said);
        break;
      case "content_block_delta":
        if (isRecord(json.delta)) this.#delta(json.index, json.delta, said);
        break;
      case "content_block_stop":
        this.#endBlock(json.index, said);
        break;
      case "message_delta":
        this.#usage.add(json.usage);
        this.#stopReason = (isRecord(json.delta) && asString(json.delta.stop_reason)) || this.#stopReason;
        break;
      case "message_stop":
        this.isComplete = true;
        break;
      // Ignored: `ping`, and what later versions of the API add.
    }
    // The input count comes first. Reported alone, it would count as the start of an answer and prevent retries.
    const usage = this.#hasReported || said.length === 0 ? undefined : this.#usage.total();
    if (usage === undefined) return;
    this.#hasReported = true;
    said.push({ type: "usage", usage });
  }

  /** After a stop reason, only `message_stop` follows. */
  get isFinished(): boolean {
    return this.#stopReason !== "";
  }

  knows(event: string, { type }: Json): boolean {
    return OWN_EVENT.test(event) || OWN_EVENT.test(asString(type));
  }

  end(said: ModelEvent[]): void {
    if (this.#stopReason === "") throw new UpstreamTruncation("its stream ended without a stop_reason");
    for (const index of this.#citations.keys()) this.#endBlock(index, said);
    this.#answer.finish(this.#stopReason, this.#usage.total(), this.#request, said);
  }

  #start(index: unknown, block: Json, said: ModelEvent[]): void {
    switch (block.type) {
      case "text":
        this.#answer.addText(asString(block.text), said);
        for (const citation of records(block.citations)) this.#cite(index, citation);
        break;
      case "thinking":
        this.#answer.thinkingAt(index).signature = asString(block.signature);
        this.#answer.addThinking(index, asString(block.thinking), said);
        break;
      case "redacted_thinking":
        this.#answer.thinkingAt(index).data = asString(block.data);
        break;
      case "tool_use":
        this.#answer.startCall(index, block.id, block.name);
        this.#callBlocks.add(index);
        // Empty if the input follows in pieces; some gateways send the whole input here.
        if (isRecord(block.input) && Object.keys(block.input).length > 0) {
          this.#answer.addArguments(index, JSON.stringify(block.input));
        }
        break;
      // Ignored: blocks of tools that run at Anthropic; their results are in the text.
    }
  }

  #delta(index: unknown, delta: Json, said: ModelEvent[]): void {
    switch (delta.type) {
      case "text_delta":
        this.#answer.addText(asString(delta.text), said);
        break;
      case "citations_delta":
        if (isRecord(delta.citation)) this.#cite(index, delta.citation);
        break;
      case "thinking_delta":
        this.#answer.addThinking(index, asString(delta.thinking), said);
        break;
      case "signature_delta":
        this.#answer.thinkingAt(index).signature = asString(delta.signature);
        break;
      case "input_json_delta":
        if (this.#callBlocks.has(index)) this.#answer.addArguments(index, asString(delta.partial_json));
        break;
    }
  }

  #cite(index: unknown, citation: Json): void {
    const others = this.#citations.get(index) ?? [];
    this.#citations.set(index, [...others, claudeSource(citation, this.#given)]);
  }

  /** Citations belong to the whole block, and may arrive before its text. */
  #endBlock(index: unknown, said: ModelEvent[]): void {
    for (const source of this.#citations.get(index) ?? [])
      said.push({ type: "source", source: { ...source, back: 0 } });
    this.#citations.delete(index);
  }
}

const OWN_EVENT = /^(?:message|content_block)_/;

/** The counts are cumulative, and gateways leave some of them out of the first or the last report. */
class UsageCounter {
  readonly #counts = new Map<string, number>();

  add(usage: unknown): void {
    const fields = fieldsIn(usage);
    for (const [field, count] of Object.entries({ ...fields, ...fieldsIn(fields.output_tokens_details) })) {
      if (typeof count === "number") this.#counts.set(field, Math.max(count, this.#counts.get(field) ?? 0));
    }
  }

  total(): Usage | undefined {
    return usageOf({
      input: this.#counts.get("input_tokens"),
      output: this.#counts.get("output_tokens"),
      cached: this.#counts.get("cache_read_input_tokens"),
      written: this.#counts.get("cache_creation_input_tokens"),
      reasoning: this.#counts.get("thinking_tokens"),
      isApart: true,
    });
  }
}
