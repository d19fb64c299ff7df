/** What the Messages API and Bedrock's Converse have in common in how they take a history. */

import type { HistoryMessage } from "../../protocol/chat.ts";
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

/** Renames the calls of a history, and their results, to ids that the API takes and that are used once. */
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

/** A tool's name as these APIs take it: one that a model of another provider made up must not break the request. */
export function toolUseName(name: string): string {
  return name.replace(/[^\w-]/g, "_").slice(0, 64) || "_";
}

/** The APIs refuse calls in the history without any tool: the tools that an agent has lost are still declared. */
export function lostTools(history: readonly HistoryMessage[]): ToolSpec[] {
  const names = new Set(callsOf(history).map((call) => toolUseName(call.function.name)));
  const description = "No longer available: do not call it.";
  return [...names].map((name) => ({ name, description, parameters: { type: "object" } }));
}
