/**
 * The states of a conversation whose messages are a tree: one for each answer. Branches share what they have in common:
 * a state has only the history entries that it adds to the one before it in its branch.
 */

import type { ConversationState, FilePart, HistoryMessage, OmittedPart } from "../../server/protocol/chat.ts";
import { toJson } from "../../server/protocol/json.ts";

/** `null`: it is not known any more. */
export type StoredState = AddedState | null;

interface AddedState {
  readonly rest: Omit<ConversationState, "conversation_history">;
  /** The number of history entries that are those of the state before. */
  readonly from?: number;
  /** The entries after those; absent in a state without a history. */
  readonly added?: readonly HistoryMessage[];
}

/** `base` is the state before it in the branch, if that is known. */
export function storedState(state: ConversationState, base: ConversationState | undefined): AddedState {
  const { conversation_history: history, ...rest } = state;
  if (!history) return { rest };
  const known = base?.conversation_history ?? [];
  let from = history.findIndex((entry, index) => !isSame(entry, known[index]));
  if (from < 0) from = history.length;
  return { rest, from, added: history.slice(from) };
}

/** `base` is only called if the history continues that of the state before. */
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

/** A file in a state, which the server identifies by its digest, with or without its data. */
export type NamedFile = OmittedPart | (FilePart & Pick<OmittedPart, "omitted">);

/** A copy with changed file parts. Whatever has none, or keeps them as they are, stays the same object. */
export function withParts<Value>(value: Value, change: (part: NamedFile) => NamedFile): Value {
  if (!isObject(value)) return value;
  if (isObject((value as Partial<NamedFile>).omitted)) return change(value as unknown as NamedFile) as Value;
  const changes = Object.entries(value).flatMap(([name, it]) => {
    const changed = withParts(it, change);
    return changed === it ? [] : [[name, changed]];
  });
  if (changes.length === 0) return value;
  return Object.assign(Array.isArray(value) ? [...value] : { ...value }, Object.fromEntries(changes));
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

/** The part without its data, which is stored apart. */
export function withoutData(part: NamedFile): NamedFile {
  return part.type === "omitted" ? part : { type: "omitted", omitted: part.omitted };
}

function isSame(a: HistoryMessage, b: HistoryMessage | undefined): boolean {
  return b !== undefined && (a === b || toJson(a) === toJson(b));
}
