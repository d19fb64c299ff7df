/** Reads the events of one ConverseStream answer. */

import type { Usage } from "../../protocol/chat.ts";
import { asString, isRecord, type Json } from "../../protocol/json.ts";
import { ClaudeAnswer } from "../claude/answer.ts";
import { MalformedOutput, UpstreamTruncation } from "../failures.ts";
import type { ModelEvent, ModelRequest } from "../provider.ts";
import { MODEL_TAGS, type ThinkTagPiece, type ThinkTagRule, ThinkTags } from "../think-tags.ts";
import type { MessageReader } from "../transport/request.ts";
import { fieldsIn, usageOf } from "../usage.ts";
import { makerOf } from "./models.ts";

export class BedrockReader implements MessageReader<ModelEvent> {
  readonly #request: ModelRequest;
  readonly #answer = new ClaudeAnswer();
  /** The indexes of calls that the provider runs by itself. */
  readonly #hostedCalls = new Set<unknown>();
  /**
   * The tag reader of each text block, by its index. Nova writes its thinking in tags before each call; so do models
   * whose server does not remove the tags: https://docs.aws.amazon.com/nova/latest/userguide/tool-use-invocation.html
   */
  readonly #tags = new Map<unknown, ThinkTags>();
  readonly #rule: ThinkTagRule;
  #stopReason = "";
  #usage: Usage | undefined;
  isComplete = false;

  constructor(request: ModelRequest, model: string) {
    this.#request = request;
    // The models of these two makers always write the opening tag.
    const mayLackOpening = !["claude", "nova"].includes(makerOf(model));
    this.#rule = { ...MODEL_TAGS, mayLackOpening };
  }

  read(event: string, json: Json, said: ModelEvent[]): void {
    const index = json.contentBlockIndex ?? 0;
    switch (event) {
      case "contentBlockStart":
        if (isRecord(json.start) && isRecord(json.start.toolUse)) this.#startCall(index, json.start.toolUse);
        break;
      case "contentBlockDelta":
        if (isRecord(json.delta)) this.#delta(index, json.delta, said);
        break;
      case "contentBlockStop":
        this.#endText(index, said);
        break;
      case "messageStop":
        this.#stopReason = asString(json.stopReason) || "end_turn";
        break;
      case "metadata":
        this.#usage = converseUsage(json.usage);
        // The last event.
        this.isComplete = this.#stopReason !== "";
        break;
    }
  }

  /** Only the usage follows a stop reason. */
  get isFinished(): boolean {
    return this.#stopReason !== "";
  }

  end(said: ModelEvent[]): void {
    if (this.#stopReason === "") throw new UpstreamTruncation("its stream ended without messageStop");
    refuseMalformed(this.#stopReason);
    for (const index of [...this.#tags.keys()]) this.#endText(index, said);
    this.#answer.finish(this.#stopReason, this.#usage, this.#request, said);
  }

  #startCall(index: unknown, toolUse: Json): void {
    if (toolUse.type === "server_tool_use") this.#hostedCalls.add(index);
    else this.#answer.startCall(index, toolUse.toolUseId, toolUse.name);
  }

  #delta(index: unknown, { text, toolUse, reasoningContent }: Json, said: ModelEvent[]): void {
    if (typeof text === "string") {
      const tags = this.#tags.get(index) ?? new ThinkTags(this.#rule, () => this.#answer.text);
      this.#tags.set(index, tags);
      this.#say(index, tags.push(text), said);
    } else if (isRecord(toolUse)) {
      if (!this.#hostedCalls.has(index)) this.#answer.addArguments(index, asString(toolUse.input));
    } else if (isRecord(reasoningContent)) this.#think(index, reasoningContent, said);
  }

  #think(index: unknown, { text, signature, redactedContent }: Json, said: ModelEvent[]): void {
    const block = this.#answer.thinkingAt(index);
    block.signature += asString(signature);
    block.data = joinedBase64(block.data, asString(redactedContent));
    this.#answer.addThinking(index, asString(text), said);
  }

  #endText(index: unknown, said: ModelEvent[]): void {
    const tags = this.#tags.get(index);
    this.#tags.delete(index);
    if (tags !== undefined) this.#say(index, tags.end(), said);
  }

  #say(index: unknown, { thinking, text, wasThinking }: ThinkTagPiece, said: ModelEvent[]): void {
    if (wasThinking) this.#answer.withdrawText(said);
    this.#answer.showThinking(index, thinking, said);
    this.#answer.addText(text, said);
  }
}

function joinedBase64(before: string, more: string): string {
  if (before === "" || more === "") return before + more;
  return Buffer.concat([Buffer.from(before, "base64"), Buffer.from(more, "base64")]).toString("base64");
}

function refuseMalformed(reason: string): void {
  if (reason === "malformed_tool_use") throw new MalformedOutput("a tool call");
  if (reason === "malformed_model_output") throw new MalformedOutput("an answer");
}

function converseUsage(usage: unknown): Usage | undefined {
  const { inputTokens: input, outputTokens: output, ...cache } = fieldsIn(usage);
  const { cacheReadInputTokens: cached, cacheWriteInputTokens: written } = cache;
  return usageOf({ input, output, cached, written, isApart: true });
}
