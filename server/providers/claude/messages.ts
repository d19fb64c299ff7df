/** The form of a history, and of the thoughts in it, that the Messages API and Bedrock's Converse share. */

import type { AssistantMessage, HistoryMessage } from "../../protocol/chat.ts";
import { asString, records } from "../../protocol/json.ts";
import { plainParts, readParts } from "../answer-parts.ts";
import type { UpstreamRefusal } from "../failures.ts";
import { callsOf } from "../history.ts";
import type { ToolSpec } from "../provider.ts";

/** Both APIs refuse a blank text, and a message without a block. */
export const NO_TEXT = "(no text)";

export interface AlternatingMessage<Block> {
  role: "user" | "assistant";
  content: Block[];
}

/** The blocks of a history as messages: user and assistant take turns, and the user begins. */
export function alternating<Block>(
  history: readonly HistoryMessage[],
  blocksOf: (message: HistoryMessage) => Block[],
  firstText: Block,
): AlternatingMessage<Block>[] {
  const messages: AlternatingMessage<Block>[] = [];
  for (const message of history) {
    const role = message.role === "assistant" ? "assistant" : "user";
    const content = blocksOf(message);
    const before = messages.at(-1);
    if (before?.role === role) before.content.push(...content);
    else if (content.length > 0) messages.push({ role, content });
  }
  if (messages[0]?.role === "assistant") messages.unshift({ role: "user", content: [firstText] });
  return messages;
}

/** Renames the calls of a history, and their results, to unique ids in the form that the API accepts. */
export class ToolUseIds {
  readonly #form: RegExp;
  readonly #used = new Set<string>();
  /** New ids by the id in the history, which an earlier call may have had too. */
  readonly #latest = new Map<string, string>();

  constructor(form = /^[\w-]{1,64}$/) {
    this.#form = form;
  }

  /** The id for a call. */
  begin(id: string): string {
    const own = this.#form.test(id) && !this.#used.has(id) ? id : this.#mint();
    this.#used.add(own);
    this.#latest.set(id, own);
    return own;
  }

  /** The id for the result of the latest call that had this id. */
  answer(id: string): string {
    return this.#latest.get(id) ?? id;
  }

  /** Counted, not random: a model's thinking may be bound to the history that it was given. */
  #mint(): string {
    for (let count = this.#used.size; ; count++) {
      const id = `call${String(count).padStart(5, "0")}`;
      if (!this.#used.has(id)) return id;
    }
  }
}

/** A tool's name in the form that these APIs accept: a name that another model made up must not break the request. */
export function toolUseName(name: string): string {
  return name.replace(/[^\w-]/g, "_").slice(0, 64) || "_";
}

/** The APIs refuse a history with calls if no tool is declared: tools that the agent no longer has are declared. */
export function lostTools(history: readonly HistoryMessage[]): ToolSpec[] {
  const names = new Set(callsOf(history).map((call) => toolUseName(call.function.name)));
  const description = "No longer available: do not call it.";
  return [...names].map((name) => ({ name, description, parameters: { type: "object" } }));
}

/**
 * A thought of Claude, which must be sent back. The assistant's message keeps it in `thinking_blocks`, in LiteLLM's
 * form, and its place in `answer_parts` if Chat Completions cannot express that. Clients send both back, so they are
 * checked.
 */
export type ThinkingBlock =
  | { type: "thinking"; thinking: string; signature: string }
  /** `data` is opaque; on Bedrock, the base64 of the encrypted bytes. */
  | { type: "redacted_thinking"; data: string };

/** The blocks that the API can take back: it refuses a request with a block that has no signature. */
export function thinkingBlocks(message: AssistantMessage): ThinkingBlock[] {
  return records(message.thinking_blocks).flatMap(readBlock);
}

function readBlock(block: Record<string, unknown>): ThinkingBlock[] {
  const [signature, data] = [asString(block.signature), asString(block.data)];
  if (block.type === "thinking" && signature !== "") {
    return [{ type: "thinking", thinking: asString(block.thinking), signature }];
  }
  return block.type === "redacted_thinking" && data !== "" ? [{ type: "redacted_thinking", data }] : [];
}

/** An answer of the history as blocks of an API, in the order in which the model made them. */
export function inOrder<Block>(
  message: AssistantMessage,
  parts: { thinking: Block[]; uses: Block[]; text(text: string): Block[] },
): Block[] {
  const [thinking, uses, known] = [[...parts.thinking], [...parts.uses], readParts(message, "claude")];
  const fits = known.filter(({ own }) => own.type === "reasoning").length === thinking.length;
  const placed = (fits ? known : plainParts(message)).flatMap(({ own, said }) => {
    if (said !== undefined) return parts.text(said);
    return (own.type === "reasoning" ? thinking : uses).splice(0, 1);
  });
  return [...thinking, ...placed];
}

/** Messages whose thinking the API has refused to take back. */
export class ForgottenThinking {
  readonly #messages = new WeakSet<HistoryMessage>();

  has(message: HistoryMessage): boolean {
    return this.#messages.has(message);
  }

  /**
   * Leaves out what a refusal blames: the thinking of these messages or, through `shape.thinks`, the request to think.
   * Returns `false` if it blames neither, or both were left out before.
   */
  adapt(
    { detail: { text } }: UpstreamRefusal,
    messages: readonly HistoryMessage[],
    shape: { thinks: boolean },
  ): boolean {
    const known = refusesThinking(text) ? messages.filter((message) => !this.has(message)) : [];
    for (const message of known) this.#messages.add(message);
    if (known.length > 0) return true;
    if (!wantsThinking(text) || !shape.thinks) return false;
    shape.thinks = false;
    return true;
  }
}

/** Whether a refusal blames a thinking block that was sent back: changed, moved, foreign, or out of its order. */
function refusesThinking(sentence: string): boolean {
  return /signature|invalid .?data|cannot be modified|bound to/i.test(sentence) && /thinking/i.test(sentence);
}

/** Whether a refusal blames an earlier answer that lacks the thinking it must begin with. */
function wantsThinking(sentence: string): boolean {
  return /expected `?thinking`?|must (?:start|begin) with a `?thinking`? block/i.test(sentence);
}
