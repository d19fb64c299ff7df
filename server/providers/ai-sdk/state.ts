/**
 * What a model of the AI SDK needs back of its answers beside text and calls: `ai_sdk` on the message of the assistant. Clients
 * send it back, so it is checked.
 */

import type { AssistantMessage } from "../../protocol/chat.ts";
import { asString, isRecord, type Json, records } from "../../protocol/json.ts";
import { isWhole } from "../history.ts";

/** `providerMetadata` of a part, which goes back as its `providerOptions`: signatures, ids, encrypted thoughts. */
export type Notes = Record<string, Json>;

/** A part of an answer, in its order. `span` is the start and the end of a text in the content of the message. */
export type KeptPart =
  | { type: "reasoning"; text: string; notes?: Notes }
  | { type: "text"; span: [start: number, end: number]; notes?: Notes }
  | { type: "call"; notes?: Notes };

/** The field for a message, where text and calls alone do not say all. */
export function keptFields(provider: string, parts: readonly KeptPart[]): { ai_sdk?: Json } {
  const order = parts.map(({ type }) => (type === "text" ? 0 : 1));
  const isPlain =
    parts.every(({ type, notes }) => type !== "reasoning" && notes === undefined) &&
    order.every((kind, index) => kind === 1 || index === 0);
  return isPlain ? {} : { ai_sdk: { provider, parts } };
}

/**
 * The parts of a message, if a model of this provider has made them and they fit what the message holds. What another provider
 * has thought or signed is of no use to this one.
 */
export function keptParts(message: AssistantMessage, provider: string): KeptPart[] | undefined {
  const { ai_sdk: kept, content, tool_calls: calls = [] } = message;
  if (!isRecord(kept) || kept.provider !== provider) return undefined;
  const parts = records(kept.parts).flatMap((part): KeptPart[] => {
    const notes = readNotes(part.notes);
    if (part.type === "reasoning") return [{ type: "reasoning", text: asString(part.text), ...notes }];
    if (part.type === "call") return [{ type: "call", ...notes }];
    return part.type === "text" ? [{ type: "text", span: part.span as [number, number], ...notes }] : [];
  });
  const spans = parts.flatMap((part) => (part.type === "text" ? [part.span] : []));
  const fits = isWhole(spans, content ?? "") && parts.filter(({ type }) => type === "call").length === calls.length;
  return fits ? parts : undefined;
}

function readNotes(notes: unknown): { notes?: Notes } {
  return isRecord(notes) && Object.values(notes).every(isRecord) ? { notes: notes as Notes } : {};
}
