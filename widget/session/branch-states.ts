/**
 * The states of a conversation whose messages are a tree: one for each answer. What a branch has in common is kept
 * once: of a history, each state has what it adds to the one before it in its branch.
 */

import type { ConversationState, HistoryMessage } from "../../server/protocol/chat.ts";
import { toJson } from "../../server/protocol/json.ts";

/** `null`: it is not known any more. */
export type StoredState = AddedState | null;

interface AddedState {
  readonly rest: Omit<ConversationState, "conversation_history">;
  /** How many entries of the history are those of the state before. */
  readonly from?: number;
  /** The entries after those; absent in a state without a history. */
  readonly added?: readonly HistoryMessage[];
}

/** `base` is the state before in the branch, as far as it is known. */
export function storedState(state: ConversationState, base: ConversationState | undefined): AddedState {
  const { conversation_history: history, ...rest } = state;
  if (!history) return { rest };
  // An open exchange with files is not stored, nor is the history before it: this one stands by itself.
  const { messages, sealed } = base?.open ?? {};
  const known = (sealed === undefined && !messages?.some(hasFiles) && base?.conversation_history) || [];
  let from = history.findIndex((entry, index) => !isSame(entry, known[index]));
  if (from < 0) from = history.length;
  return { rest, from, added: history.slice(from) };
}

/** `base` is asked for only where the history goes on from it. */
export function fullState(
  stored: StoredState,
  base: () => ConversationState | undefined,
): ConversationState | undefined {
  if (!stored) return undefined;
  const { rest, from = 0, added } = stored;
  if (!added) return rest;
  const before = from > 0 ? (base()?.conversation_history ?? []) : [];
  return before.length < from ? undefined : { ...rest, conversation_history: [...before.slice(0, from), ...added] };
}

export function hasFiles({ role, content }: HistoryMessage): boolean {
  return role === "user" && typeof content !== "string" && content.some(({ type }) => type !== "text");
}

function isSame(a: HistoryMessage, b: HistoryMessage | undefined): boolean {
  return b !== undefined && (a === b || toJson(a) === toJson(b));
}
