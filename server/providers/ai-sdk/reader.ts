/** Reads the parts of one answer of a model of the AI SDK. */

import { asString, isRecord, type Json } from "../../protocol/json.ts";
import { type AnswerPart, partsField } from "../answer-parts.ts";
import { plainSource } from "../citations.ts";
import { MalformedOutput, UpstreamGarbage, UpstreamTruncation } from "../failures.ts";
import { assistantMessage, StringBuilder, textContent } from "../history.ts";
import type { ModelEvent, ModelRequest, TurnFinish } from "../provider.ts";
import { endOfTurn, MALFORMED_CALL, ToolCallAssembler, turnFinish } from "../stream-pieces.ts";
import type { MessageReader } from "../transport/request.ts";
import { areNotes, type Notes } from "./prompt.ts";
import { sdkUsage } from "./usage.ts";

/** Every other reason means that the answer is incomplete, or that the package does not know why it ended. */
const FINISHES: ReadonlyMap<unknown, TurnFinish> = new Map([
  ["stop", "stop"],
  ["tool-calls", "stop"],
  ["length", "length"],
  ["content-filter", "content_filter"],
]);

type Block = AnswerPart & { notes?: Notes; said?: StringBuilder };

export class PartReader implements MessageReader<ModelEvent> {
  readonly #provider: string;
  readonly #request: ModelRequest;
  readonly #calls = new ToolCallAssembler();
  readonly #text = new StringBuilder();
  readonly #blocks: Block[] = [];
  /** The latest block of each kind and id: a later block may use the same id again. */
  readonly #open = new Map<string, Block>();
  /** Notes of calls whose input has begun, and whether any text of the input has arrived. */
  readonly #inputs = new Map<unknown, { notes: Notes | undefined; hasText: boolean }>();
  readonly #hosted = new Map<unknown, { name: string; startedAt: number }>();
  #callCount = 0;
  #endsInCall = false;
  #hasThought = false;
  /** Whether a part could not be read. Mostly it is a new kind of event, without which the answer is complete. */
  #isDamaged = false;
  #finish: Json | undefined;

  constructor(provider: string, request: ModelRequest) {
    this.#provider = provider;
    this.#request = request;
  }

  get isComplete(): boolean {
    return this.#finish !== undefined;
  }

  read(type: string, part: Json, said: ModelEvent[]): void {
    switch (type) {
      case "text-start":
      case "reasoning-start":
        this.#begin(type === "text-start" ? "text" : "reasoning", part);
        break;
      case "text-delta":
        this.#addText(part, said);
        break;
      case "reasoning-delta":
        this.#think(part, said);
        break;
      case "text-end":
      case "reasoning-end":
        this.#note(type === "text-end" ? "text" : "reasoning", part);
        break;
      case "tool-input-start":
        this.#inputs.set(part.id, { notes: notesOf(part), hasText: false });
        this.#endsInCall = false;
        break;
      case "tool-input-delta": {
        const input = this.#inputs.get(part.id);
        if (input !== undefined && asString(part.delta) !== "") input.hasText = true;
        break;
      }
      case "tool-call":
        if (part.providerExecuted === true) this.#hostedCall(part, said);
        else this.#call(part);
        break;
      case "tool-result":
        if (part.preliminary !== true) this.#hostedResult(part, said);
        break;
      case "error":
        this.#isDamaged = true;
        break;
      case "finish":
        this.#finish = part;
        break;
      case "source":
        said.push({ type: "source", source: plainSource(part) });
        break;
      // Ignored: files, the end of an input, and parts that later versions add.
    }
  }

  end(said: ModelEvent[]): void {
    const { finishReason, usage, providerMetadata } = this.#finish ?? {};
    // In the second version of the specification, `finishReason` is only the reason.
    const reason = isRecord(finishReason) ? finishReason.unified : finishReason;
    const raw = isRecord(finishReason) ? asString(finishReason.raw) : "";
    // Without a reason of the server's own, the stream just ended.
    const isOther = reason === "other" && raw !== "" && !MALFORMED_CALL.test(raw);
    const finish = FINISHES.get(reason) ?? (isOther ? turnFinish(raw) : undefined);
    if (finish === undefined) throw endedOddly(asString(reason), raw);
    const calls = this.#calls.finish({ finish, endsInCall: this.#endsInCall, request: this.#request });
    const text = this.#text.toString();
    if (this.#isDamaged && calls.length === 0 && (reason === "tool-calls" || text.trim() === "")) {
      throw new UpstreamGarbage("a part of the answer is missing");
    }
    const message = { ...assistantMessage(text, calls), ...partsField(this.#provider, this.#kept(), calls.length) };
    this.#request.keep(message);
    said.push(...endOfTurn(message, finish, sdkUsage(usage, providerMetadata)));
  }

  #begin(kind: "text" | "reasoning", part: Json): Block {
    const { length } = this.#text;
    const block: Block =
      kind === "text"
        ? { type: "text", span: [length, length] }
        : { type: "reasoning", text: "", said: new StringBuilder() };
    this.#blocks.push(block);
    this.#open.set(`${kind} ${part.id}`, block);
    addNotes(block, part);
    return block;
  }

  /** The block that a part belongs to. */
  #note(kind: "text" | "reasoning", part: Json): Block {
    const block = this.#open.get(`${kind} ${part.id}`) ?? this.#begin(kind, part);
    addNotes(block, part);
    return block;
  }

  /** Consecutive texts read as one; text after another kind of block begins a new paragraph. */
  #addText(part: Json, said: ModelEvent[]): void {
    let block = this.#note("text", part);
    const delta = asString(part.delta);
    if (delta === "") return;
    // Another block has begun in between.
    if (block !== this.#blocks.at(-1)) block = this.#begin("text", { id: part.id });
    if (block.type !== "text") return;
    const isFirst = block.span[0] === block.span[1];
    const before = this.#blocks.at(-2);
    const gap = isFirst && this.#text.length > 0 && before?.type !== "text" ? "\n\n" : "";
    this.#text.append(gap + delta);
    if (isFirst) block.span[0] += gap.length;
    block.span[1] = this.#text.length;
    this.#endsInCall = false;
    said.push({ type: "text", delta: gap + delta });
  }

  /** The thoughts of two blocks are two paragraphs. */
  #think(part: Json, said: ModelEvent[]): void {
    const { said: thoughts } = this.#note("reasoning", part);
    const delta = asString(part.delta);
    if (delta === "" || thoughts === undefined) return;
    const gap = thoughts.length === 0 && this.#hasThought ? "\n\n" : "";
    this.#hasThought = true;
    thoughts.append(delta);
    said.push({ type: "thinking", delta: gap + delta });
  }

  #call(part: Json): void {
    const begun = this.#inputs.get(part.toolCallId);
    // Packages write "{}" for a call that was cut before its arguments.
    const isEmpty = begun?.hasText === false && part.input === "{}";
    const called = { name: asString(part.toolName), arguments: isEmpty ? "" : part.input };
    this.#calls.add({ index: this.#callCount++, id: part.toolCallId, function: called });
    const block: Block = { type: "call" };
    addNotes(block, { providerMetadata: begun?.notes });
    addNotes(block, part);
    this.#blocks.push(block);
    this.#endsInCall = true;
  }

  #hostedCall({ toolCallId, toolName, input }: Json, said: ModelEvent[]): void {
    const call = { id: asString(toolCallId), name: asString(toolName), arguments: asString(input) || "{}" };
    this.#hosted.set(toolCallId, { name: call.name, startedAt: performance.now() });
    said.push({ type: "hosted_call", call });
  }

  #hostedResult({ toolCallId, result, isError }: Json, said: ModelEvent[]): void {
    const begun = this.#hosted.get(toolCallId);
    if (begun === undefined) return;
    this.#hosted.delete(toolCallId);
    const content = textContent(typeof result === "string" ? result : JSON.stringify(result ?? null));
    const answer = { id: asString(toolCallId), name: begun.name, content, failed: isError === true };
    said.push({ type: "hosted_result", answer, durationMs: Math.round(performance.now() - begun.startedAt) });
  }

  /** The parts to keep: all blocks but empty ones. */
  #kept(): AnswerPart[] {
    return this.#blocks.flatMap(({ said, ...block }): AnswerPart[] => {
      const part = block.type === "reasoning" ? { ...block, text: said?.toString() ?? "" } : block;
      const isEmpty =
        part.type === "text" ? part.span[0] === part.span[1] : part.type === "reasoning" && part.text === "";
      return isEmpty && part.notes === undefined ? [] : [part];
    });
  }
}

function endedOddly(reason: string, raw: string): Error {
  if (MALFORMED_CALL.test(raw)) return new MalformedOutput("a tool call");
  const how = reason === "" ? "without an end" : `as "${[reason, raw].filter(Boolean).join(": ")}"`;
  return new UpstreamTruncation(`its stream ended ${how}`);
}

function notesOf({ providerMetadata: notes }: Json): Notes | undefined {
  return areNotes(notes) ? notes : undefined;
}

/** Merges notes into the block, since the notes of one block arrive in several parts. */
function addNotes(block: Block, part: Json): void {
  for (const [name, fields] of Object.entries(notesOf(part) ?? {})) {
    const given = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
    if (given.length === 0) continue;
    block.notes = { ...block.notes, [name]: { ...block.notes?.[name], ...Object.fromEntries(given) } };
  }
}
