/**
 * `answer_parts` of an assistant message: the order of its text, calls and thoughts, and the data that the provider
 * needs back with each. Absent if text and calls alone say all of it. Clients send it back, so it is checked.
 */

import type { AssistantMessage, HistoryToolCall } from "../protocol/chat.ts";
import { isRecord, type Json, records } from "../protocol/json.ts";

/** A `text` is a range of the message's content, a `call` the next of `tool_calls`. `notes` and `item` are the provider's. */
export type AnswerPart =
  | { type: "text"; span: [start: number, end: number]; notes?: Json }
  | { type: "call"; notes?: Json }
  | { type: "reasoning"; text?: string; notes?: Json }
  | { type: "item"; item: Json };

/** The field for a message with `calls` calls: parts of later, cut-off ones are dropped. Only `provider` reads it. */
export function partsField(provider: string, parts: readonly AnswerPart[], calls: number): { answer_parts?: Json } {
  let left = calls;
  const made = parts.filter(({ type }) => type !== "call" || left-- > 0);
  const saysMore = made.some((part) => Object.keys(part).some((key) => key !== "type" && key !== "span"));
  const isUsual = /^(?:reasoning )*(?:text )?(?:call )*$/.test(made.map(({ type }) => `${type} `).join(""));
  return isUsual && !saysMore ? {} : { answer_parts: { provider, parts: made } };
}

/** A part with its text (`said`) or its call. `own` is the part as the client sent it. */
export interface ResolvedPart {
  own: Json;
  said?: string;
  call?: HistoryToolCall | undefined;
}

/** The text and the calls of a message, in the usual order. */
export function plainParts({ content, tool_calls: calls = [] }: AssistantMessage): ResolvedPart[] {
  return [{ own: {}, said: content ?? "" }, ...calls.map((call) => ({ own: {}, call }))];
}

/**
 * The parts of a message, if they are from this provider and complete: every call, no text twice, and none missing
 * unless `mayLeaveOut`. For any other message, its text and its calls.
 */
export function readParts(message: AssistantMessage, provider: string, mayLeaveOut = false): ResolvedPart[] {
  const { answer_parts: kept = formerParts(message), tool_calls: calls = [] } = message;
  if (!isRecord(kept) || kept.provider !== provider) return plainParts(message);
  const [given, rest, text] = [records(kept.parts), [...calls], message.content ?? ""];
  // An answer that was cut off may have no part for its text.
  const whole =
    mayLeaveOut && !given.some(({ type }) => type === "text") ? [{ type: "text", span: [0, text.length] }] : [];
  let [sent, missing] = [0, ""];
  const parts = [...whole, ...given].map((own: Json): ResolvedPart => {
    if (own.type === "call") return { own, call: rest.shift() };
    if (own.type !== "text") return { own };
    const span: unknown[] = Array.isArray(own.span) ? own.span : [];
    const [start = sent, end = start] = span.map((at) => (Number.isInteger(at) ? Math.max(sent, Number(at)) : sent));
    missing += text.slice(sent, start);
    sent = end;
    return { own, said: text.slice(start, end) };
  });
  const fits = parts.filter(({ own }) => own.type === "call").length === calls.length;
  return fits && (mayLeaveOut || (missing + text.slice(sent)).trim() === "") ? parts : plainParts(message);
}

/** The parts in three forms of earlier builds, which clients may still send. To be removed after the next release. */
function formerParts({ ai_sdk, anthropic_layout: layout, openai_output: output }: AssistantMessage): unknown {
  if (Array.isArray(layout)) {
    const parts = layout.map((block) => {
      return Array.isArray(block)
        ? { type: "text", span: block }
        : { type: block === "tool_use" ? "call" : "reasoning" };
    });
    return { provider: "claude", parts };
  }
  if (!Array.isArray(output)) return ai_sdk;
  const parts = records(output).map(({ type, start, end, phase, item }) => {
    if (type === "message") return { type: "text", span: [start, end], notes: { phase } };
    return type === "function_call" ? { type: "call" } : { type: "item", item };
  });
  return { provider: "openai", parts };
}
