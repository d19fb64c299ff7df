/** The history as an API takes it. What the client holds stays as it is. */

import { createHash } from "node:crypto";
import { isMediaType, MEDIA_TYPES, type MediaType } from "../../protocol/attachments.ts";
import type {
  AssistantMessage,
  ContentPart,
  HistoryMessage,
  HistoryToolCall,
  ToolMessage,
  UserMessage,
} from "../../protocol/chat.ts";
import { isRecord } from "../../protocol/is-record.ts";
import { textOfResult } from "../history/tool-output.ts";
import type { ChatDialect, HistoryQuirks } from "./dialect.ts";

export interface SendRules {
  dialect: ChatDialect;
  /** What the model takes: a history may hold attachments that another model took. */
  mediaTypes: readonly MediaType[];
  quirks: HistoryQuirks;
}

/** A message in an API's own form. */
export type SentMessage = Record<string, unknown> & { role: string };

/**
 * Thinking of earlier answers that matters only while the turn that it belongs to uses tools. DeepSeek
 * demands it there in every later request, and its older models refuse it elsewhere.
 */
const OF_TOOL_TURNS = new Set(["reasoning_content", "reasoning", "thinking_parts"]);

/** Thinking whose signature another model may not know. */
const SIGNED = new Set(["thinking_blocks", "provider_specific_fields", "reasoning_details"]);

/** Fields of our own, for providers with APIs of their own: no server of this one has a use for them. */
const OF_OTHER_APIS = new Set(["openai_output", "anthropic_layout"]);

/** The messages to send for a history. */
export function sentMessages(history: readonly HistoryMessage[], rules: SendRules): SentMessage[] {
  const messages: SentMessage[] = [];
  const turns = turnsOf(history);
  for (const { users, rest } of turns) {
    if (users.length > 0) {
      if (rules.quirks.closesTools && messages.at(-1)?.role === "tool") {
        messages.push({ role: "assistant", content: INTERRUPTED });
      }
      messages.push(sentUser(users, rules));
    }
    const usesTools = rest.some(({ role }) => role === "tool");
    const place = { usesTools, isCurrent: rest === turns.at(-1)?.rest };
    for (const message of rest) {
      messages.push(message.role === "assistant" ? sentAssistant(message, rules, place) : sentResult(message, rules));
    }
  }
  return messages;
}

/** What stands for the answer that never came, where an API demands one between tools and user. */
const INTERRUPTED = "The answer was interrupted here.";

/** What a user said, perhaps in several messages, and what came of it. */
interface HistoryTurn {
  users: UserMessage[];
  rest: (AssistantMessage | ToolMessage)[];
}

function turnsOf(history: readonly HistoryMessage[]): HistoryTurn[] {
  const turns: HistoryTurn[] = [];
  let turn: HistoryTurn | undefined;
  for (const message of history) {
    if (turn === undefined || (message.role === "user" && turn.rest.length > 0)) {
      turn = { users: [], rest: [] };
      turns.push(turn);
    }
    if (message.role === "user") turn.users.push(message);
    else turn.rest.push(message);
  }
  return turns;
}

/** One message: strict chat templates demand that user and assistant take turns. */
function sentUser(users: readonly UserMessage[], rules: SendRules): SentMessage {
  const contents = users.map(({ content }) => content);
  if (contents.every((content) => typeof content === "string")) {
    return { role: "user", content: contents.filter((text) => text !== "").join("\n\n") };
  }
  const content = contents.flatMap(parts).map((part) => sentPart(part, rules));
  return { role: "user", content };
}

function parts(content: UserMessage["content"]): ContentPart[] {
  if (typeof content !== "string") return content;
  return content === "" ? [] : [{ type: "text", text: content }];
}

function sentPart(part: ContentPart, { dialect, mediaTypes }: SendRules): object {
  if (part.type === "text") return part;
  const url = part.type === "file" ? part.file.file_data : part.image_url.url;
  const mediaType = /^data:([^;,]*)/.exec(url)?.[1] ?? "";
  if (mediaTypes.some((type) => type === mediaType)) return dialect.part(part);
  const name = part.type === "file" ? part.file.filename : "an image";
  const label = isMediaType(mediaType) ? MEDIA_TYPES[mediaType].label : "a file";
  const text = `[${name} (${label}) was attached here, which this model cannot read]`;
  return { type: "text", text };
}

function sentResult(result: ToolMessage, rules: SendRules): SentMessage {
  const { role, tool_call_id: id } = result;
  return { role, tool_call_id: sentId(id, rules.quirks), content: textOfResult(result) };
}

interface TurnPlace {
  usesTools: boolean;
  /** Belongs to the answer that is being made. */
  isCurrent: boolean;
}

function sentAssistant(
  { role, content, tool_calls, thinking_parts, ...extra }: AssistantMessage,
  rules: SendRules,
  place: TurnPlace,
): SentMessage {
  const goesBack = (name: string) =>
    !OF_OTHER_APIS.has(name) &&
    (rules.dialect.takesBack?.message.has(name) ?? true) &&
    !rules.quirks.refused.has(name) &&
    (place.usesTools || rules.quirks.wantsReasoning || !OF_TOOL_TURNS.has(name)) &&
    (place.isCurrent || !rules.quirks.dropsSigned || !SIGNED.has(name));
  const thoughts = goesBack("thinking_parts") ? thinkingParts(thinking_parts) : [];
  const said = content === null || content === "" ? [] : [{ type: "text", text: content }];
  return {
    ...(rules.quirks.wantsReasoning ? { reasoning_content: "" } : {}),
    ...only(extra, goesBack),
    role,
    content: thoughts.length === 0 ? content : [...thoughts, ...said],
    ...(tool_calls === undefined ? {} : { tool_calls: sentCalls(tool_calls, rules) }),
  };
}

/** A client's history may hold anything here: only what is thinking goes on. */
function thinkingParts(value: unknown): object[] {
  if (!Array.isArray(value)) return [];
  return value.filter((part: unknown) => isRecord(part) && part.type === "thinking");
}

function sentCalls(calls: readonly HistoryToolCall[], rules: SendRules): SentMessage["tool_calls"] {
  const { takesBack, unsignedCall } = rules.dialect;
  const goesBack = (name: string) => (takesBack?.call.has(name) ?? true) && !rules.quirks.refused.has(name);
  const sent = calls.map(({ id, type, function: { name, arguments: written, ...inner }, ...extra }) => ({
    ...only(extra, goesBack),
    id: sentId(id, rules.quirks),
    type,
    function: { ...only(inner, goesBack), name, arguments: readableArguments(written) },
  }));
  if (unsignedCall === undefined || calls.some((call) => isSigned(call, unsignedCall))) return sent;
  // The first of parallel calls carries the signature for all of them.
  return sent.map((call, index) => (index === 0 ? { ...unsignedCall, ...call } : call));
}

function isSigned(call: HistoryToolCall, fields: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(fields).some((name) => call[name] !== undefined);
}

function only(fields: Readonly<Record<string, unknown>>, goesBack: (name: string) => boolean): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => goesBack(name)));
}

/** Servers parse the arguments of earlier calls: broken ones would make each later request fail. */
function readableArguments(written: string): string {
  try {
    if (isRecord(JSON.parse(written))) return written;
  } catch {
    // Not JSON: wrapped below, as what is JSON but no object.
  }
  return JSON.stringify({ unparsed_arguments: written });
}

/** An id of nine letters and digits that depends on the whole of the given one. */
function sentId(id: string, { shortIds }: HistoryQuirks): string {
  if (!shortIds || /^[a-zA-Z0-9]{9}$/.test(id)) return id;
  return createHash("sha256").update(id).digest("hex").slice(0, 9);
}
