/**
 * `answer_parts` of the model's message: in which order its text, its calls and its thoughts came, and what its provider needs
 * back of each, where text and calls alone do not say that. Clients send it back, so it is checked.
 */

import type { AssistantMessage, HistoryToolCall } from "../protocol/chat.ts";
import { isRecord, type Json, records } from "../protocol/json.ts";

/** A text stands for a range of the message's content, a call for the next of `tool_calls`. `notes` and `item` are the provider's. */
export type AnswerPart =
  | { type: "text"; span: [start: number, end: number]; notes?: Json }
  | { type: "call"; notes?: Json }
  | { type: "reasoning"; text?: string; notes?: Json }
  | { type: "item"; item: Json };

/** The field for a message of so many calls: those that were cut are the last ones. `provider` can read the parts. */
export function partsField(provider: string, parts: readonly AnswerPart[], calls: number): { answer_parts?: Json } {
  let left = calls;
  const made = parts.filter(({ type }) => type !== "call" || left-- > 0);
  const saysMore = made.some((part) => Object.keys(part).some((key) => key !== "type" && key !== "span"));
  const isUsual = /^(?:reasoning )*(?:text )?(?:call )*$/.test(made.map(({ type }) => `${type} `).join(""));
  return isUsual && !saysMore ? {} : { answer_parts: { provider, parts: made } };
}

/** A part with what it stands for. `own` is as the client sent it. */
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
 * The parts of a message, if this provider has made them: they have each call, no piece of the text twice, and none is missing
 * unless `mayLeaveOut`. Of every other message, the text and the calls.
 */
export function readParts(message: AssistantMessage, provider: string, mayLeaveOut = false): ResolvedPart[] {
  const { answer_parts: kept = formerParts(message), tool_calls: calls = [] } = message;
  if (!isRecord(kept) || kept.provider !== provider) return plainParts(message);
  const [given, rest, text] = [records(kept.parts), [...calls], message.content ?? ""];
  // If an answer was cut, no part may refer to its text.
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

/** The parts in the three forms of earlier builds, whose states clients still hold. It goes after the next release. */
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
