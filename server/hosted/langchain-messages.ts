/** Messages of LangChain, which LangGraph streams, too: instances of classes of any version, or their JSON. */

import { asString, isRecord, records } from "../protocol/json.ts";
import type { Answer } from "./answer.ts";

type Message = Record<string, unknown>;

/** A call as its pieces have come so far. */
interface Pieces {
  id: string;
  name: string;
  args: string;
}

/** Reads the messages of one answer. The same one may come several times: in pieces, whole, and within an update. */
export class MessagesReader {
  readonly #answer: Answer;
  /** Ids of messages whose text was said. */
  readonly #said = new Set<string>();
  /** Id of the message that spoke last. */
  #speaker: string | undefined;
  /** Calls that a model has asked for, by message and index, or by id where they came whole. */
  readonly #pieces = new Map<string, Pieces>();
  /** Ids of calls whose tools have begun. */
  readonly #begun = new Set<string>();
  /** What an agent within this one said last, or a message that was not streamed. */
  #unsaid: { id: string; text: string } = { id: "", text: "" };

  constructor(answer: Answer) {
    this.#answer = answer;
  }

  /** `isNested`: an agent or a tool within this agent says it, which is no answer. */
  read(message: Message, isNested: boolean): void {
    const kind = kindOf(message);
    if (kind === "tool") this.#readResult(message);
    else if (kind === "ai") this.#readSpoken(message, isNested);
  }

  /** A message that may have come in pieces. Its calls begin now. */
  readWhole(message: Message): void {
    const kind = kindOf(message);
    if (kind === "tool") this.#readResult(message);
    if (kind !== "ai") return;
    for (const { id, name, args } of records(message.tool_calls)) {
      const call = this.#answer.call(id, name, args);
      if (this.#askedFor(call) === undefined) this.#pieces.set(call, { id: call, name: asString(name), args: "" });
    }
    this.#expect();
    const text = textOf(message);
    if (text !== "") this.#unsaid = { id: asString(message.id), text };
  }

  /** A tool begins. Its call may have no id: then it is the first one of this name that has not begun. */
  begin(id: unknown, name: unknown, input: unknown): void {
    const isIt = (one: Pieces) =>
      typeof id === "string" ? one.id === id : one.name === name && !this.#begun.has(one.id);
    const asked = [...this.#pieces.values()].find(isIt);
    this.#begun.add(this.#answer.call(id ?? asked?.id, name, input ?? asked?.args));
    this.#expect();
  }

  /** What a tool has returned: a message, or anything. */
  end(id: unknown, output: unknown): void {
    if (!isRecord(output) || kindOf(output) !== "tool") this.#answer.result(id, output);
    else if (output.status === "error") this.#answer.thrown(id, new Error(textOf(output)));
    else this.#answer.result(id, textOf(output));
  }

  /** Where the agent itself has said nothing, the last word within it is the answer. */
  sayUnsaid(): void {
    if (!this.#answer.hasText) this.#answer.text(this.#unsaid.text);
  }

  #readSpoken(message: Message, isNested: boolean): void {
    const id = asString(message.id);
    const isPiece = typeof message.concat === "function" || asString(message.type).endsWith("Chunk");
    if (!isPiece && this.#said.has(id)) return;
    const { usage_metadata: usage } = message;
    if (isRecord(usage)) this.#answer.addUsage(usage.input_tokens, usage.output_tokens);
    for (const piece of records(message.tool_call_chunks)) this.#addPiece(id, piece);
    if (!isPiece) for (const call of records(message.tool_calls)) this.#answer.call(call.id, call.name, call.args);
    const text = textOf(message);
    if (!isNested) this.#answer.thinking(thoughtOf(message));
    if (text === "") return;
    if (isNested) {
      const isMore = isPiece && this.#unsaid.id === id;
      this.#unsaid = { id, text: isMore ? this.#unsaid.text + text : text };
      return;
    }
    this.#said.add(id);
    if (this.#speaker !== undefined && this.#speaker !== id) this.#answer.beginAnew();
    this.#speaker = id;
    this.#answer.text(text);
  }

  #addPiece(message: string, { index, id, name, args }: Record<string, unknown>): void {
    const key = `${message}:${index}`;
    const pieces = this.#pieces.get(key) ?? { id: "", name: "", args: "" };
    this.#pieces.set(key, {
      id: pieces.id || asString(id),
      name: pieces.name || asString(name),
      args: pieces.args + asString(args),
    });
    this.#expect();
  }

  #readResult(message: Message): void {
    const id = asString(message.tool_call_id);
    if (!this.#answer.hasCalled(id)) this.begin(id, this.#askedFor(id)?.name ?? message.name, undefined);
    this.end(id, message);
  }

  #askedFor(id: string): Pieces | undefined {
    return [...this.#pieces.values()].find((one) => one.id === id);
  }

  /** Until their tools begin, calls that were asked for are why nothing is said. */
  #expect(): void {
    this.#answer.expect([...this.#pieces.values()].filter(({ id }) => !this.#answer.hasCalled(id)).length);
  }
}

export function isMessage(value: unknown): value is Message {
  return isRecord(value) && "content" in value && kindOf(value) !== undefined;
}

const KINDS: Readonly<Record<string, "ai" | "tool" | "other">> = {
  ai: "ai",
  AIMessageChunk: "ai",
  tool: "tool",
  ToolMessageChunk: "tool",
  human: "other",
  HumanMessageChunk: "other",
  system: "other",
  SystemMessageChunk: "other",
  developer: "other",
  remove: "other",
  function: "other",
};

/** `undefined` if it is no message. A "generic" one has a role, as servers name it. */
function kindOf(message: Message): "ai" | "tool" | "other" | undefined {
  const named = typeof message._getType === "function" ? message._getType() : message.type;
  const type = asString(named);
  if (type === "generic" || type === "ChatMessageChunk") {
    return ["user", "human", "system", "developer"].includes(asString(message.role)) ? "other" : "ai";
  }
  return Object.hasOwn(KINDS, type) ? KINDS[type] : undefined;
}

function textOf({ content }: Message): string {
  if (typeof content === "string") return content;
  const texts = records(content).filter(({ type }) => type === "text" || type === "text_delta");
  return texts.map(({ text }) => asString(text)).join("");
}

/** Thinking, in the forms of several providers. */
function thoughtOf({ content, additional_kwargs: more }: Message): string {
  const blocks = records(content).map(({ thinking, reasoning }) => asString(thinking) || asString(reasoning));
  const beside = isRecord(more) ? asString(more.reasoning_content) : "";
  return blocks.join("") || beside;
}
