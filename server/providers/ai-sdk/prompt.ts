/**
 * The history as a prompt of the AI SDK, and what a model of it needs back of its answers beside text and calls: `ai_sdk` on the
 * message of the assistant. Clients send it back, so it is checked.
 */

import type { MediaType } from "../../protocol/attachments.ts";
import type { AssistantMessage, HistoryMessage, HistoryToolCall, UserMessage } from "../../protocol/chat.ts";
import { asString, isRecord, type Json, records } from "../../protocol/json.ts";
import { NO_TEXT, ToolUseIds, toolUseName } from "../claude/messages.ts";
import { argumentsOf, fileOf, isWhole, partsOf, resultText, unreadable } from "../history.ts";
import type { AiSdkLanguageModel } from "./language-model.ts";

/** A message without its system message, which is a string. */
interface PromptMessage {
  role: "user" | "assistant" | "tool";
  content: Json[];
}

/** What stands for an answer that never came: some APIs demand one between the results of tools and the user. */
const INTERRUPTED = "The answer was interrupted here.";

/** What makes a prompt of a history. */
interface PromptRules {
  model: AiSdkLanguageModel;
  /** What the model takes: a history may hold files that another model took. */
  mediaTypes: readonly MediaType[];
  /** Whether the reasoning of this message does not go back. */
  isForgotten(message: HistoryMessage): boolean;
}

export function promptOf(
  instructions: string,
  history: readonly HistoryMessage[],
  { model: { provider, specificationVersion }, mediaTypes, isForgotten }: PromptRules,
): unknown[] {
  const isMistral = provider.startsWith("mistral");
  const ids = new ToolUseIds(isMistral ? /^[a-zA-Z0-9]{9}$/ : undefined);
  // That package would put it into the text.
  const forgetsAll = isMistral && specificationVersion === "v2";
  const names = new Map<string, string>();
  const messages: PromptMessage[] = [];
  const add = (role: PromptMessage["role"], content: Json[]) => {
    const before = messages.at(-1);
    if (before?.role === role) before.content.push(...content);
    else if (content.length > 0) messages.push({ role, content });
  };

  const callPart = (call: HistoryToolCall): Json => {
    const name = toolUseName(call.function.name);
    const toolCallId = ids.begin(call.id);
    names.set(toolCallId, name);
    return { type: "tool-call", toolCallId, toolName: name, input: argumentsOf(call) };
  };

  for (const message of history) {
    if (message.role === "user") {
      if (messages.at(-1)?.role === "tool") add("assistant", [textPart(INTERRUPTED)]);
      add("user", userContent(message, specificationVersion, mediaTypes));
    } else if (message.role === "assistant") {
      if (messages.length === 0) add("user", [textPart(NO_TEXT)]);
      const calls = (message.tool_calls ?? []).map(callPart);
      add(
        "assistant",
        assistantContent(message, calls, keptParts(message, provider), forgetsAll || isForgotten(message)),
      );
    } else {
      const toolCallId = ids.answer(message.tool_call_id);
      const toolName = names.get(toolCallId) ?? "_";
      // Not every API has a flag for a failure.
      const output = { type: message.is_error ? "error-text" : "text", value: resultText(message) || "(no output)" };
      add("tool", [{ type: "tool-result", toolCallId, toolName, output }]);
    }
  }
  const system = instructions.trim() === "" ? [] : [{ role: "system", content: instructions }];
  return [...system, ...messages];
}

export function hasReasoning(message: HistoryMessage): boolean {
  if (message.role !== "assistant" || !isRecord(message.ai_sdk)) return false;
  return records(message.ai_sdk.parts).some(({ type }) => type === "reasoning");
}

function userContent(
  message: UserMessage,
  version: AiSdkLanguageModel["specificationVersion"],
  mediaTypes: readonly MediaType[],
): Json[] {
  const content = partsOf(message).flatMap((part): Json[] => {
    if (part.type === "text") return part.text.trim() === "" ? [] : [textPart(part.text)];
    const { name, mediaType, base64 } = fileOf(part);
    if (!mediaTypes.includes(mediaType)) return [textPart(unreadable(name, mediaType))];
    const data = version === "v4" ? { type: "data", data: base64 } : base64;
    const filename = part.type === "file" && name.trim() !== "" ? { filename: name.trim() } : {};
    return [{ type: "file", mediaType, data, ...filename }];
  });
  return content.length === 0 ? [textPart(NO_TEXT)] : content;
}

/** The parts in the order in which the model made them, with its notes. */
function assistantContent(
  message: AssistantMessage,
  calls: Json[],
  kept: readonly KeptPart[] | undefined,
  isForgotten: boolean,
): Json[] {
  const text = message.content ?? "";
  if (kept === undefined) return [...(text.trim() === "" ? [] : [textPart(text)]), ...calls];
  return kept.flatMap((part): Json[] => {
    const notes = part.notes === undefined ? {} : { providerOptions: part.notes };
    if (part.type === "call") return calls.splice(0, 1).map((call) => ({ ...call, ...notes }));
    if (part.type === "reasoning") return isForgotten ? [] : [{ type: "reasoning", text: part.text, ...notes }];
    const said = text.slice(...part.span);
    return said.trim() === "" && part.notes === undefined ? [] : [{ ...textPart(said), ...notes }];
  });
}

function textPart(text: string): { type: string; text: string } {
  return { type: "text", text };
}

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
function keptParts(message: AssistantMessage, provider: string): KeptPart[] | undefined {
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
