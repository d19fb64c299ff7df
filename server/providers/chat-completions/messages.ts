/** The history in the form that an API accepts. The client's copy stays unchanged. */

import { createHash } from "node:crypto";
import type { MediaType } from "../../protocol/attachments.ts";
import type {
  AssistantMessage,
  HistoryMessage,
  HistoryToolCall,
  ToolMessage,
  UserMessage,
} from "../../protocol/chat.ts";
import { records } from "../../protocol/json.ts";
import { fileOf, partsOf, type ReadPart, sentArguments, unreadable } from "../history.ts";
import { INTERRUPTED, PICTURES_FOLLOW, picturesAfter, textBeforePictures } from "../result-pictures.ts";
import type { ChatDialect, Quirks, SentMessage } from "./dialect.ts";

export interface SendRules {
  dialect: ChatDialect;
  /** File types that the model accepts: the history may contain files that only an earlier model accepted. */
  mediaTypes: readonly MediaType[];
  quirks: Quirks;
}

/**
 * Fields with thinking that is needed only while its turn uses tools. DeepSeek demands it there in every later request,
 * and its older models refuse it elsewhere.
 */
const OF_TOOL_TURNS = new Set(["reasoning_content", "reasoning", "thinking_parts"]);

/** Fields with thinking whose signature another model may refuse. */
const SIGNED = new Set(["thinking_blocks", "provider_specific_fields", "reasoning_details"]);

/** Parley's own fields, for other APIs: Chat Completions servers have no use for them. The last three are of earlier builds. */
const OF_OTHER_APIS = new Set(["answer_parts", "openai_output", "anthropic_layout", "ai_sdk"]);

export function sentMessages(history: readonly HistoryMessage[], rules: SendRules): SentMessage[] {
  const messages: SentMessage[] = [];
  const exchanges = exchangesOf(history);
  let results: ToolMessage[] = [];
  const addUsers = (users: readonly UserMessage[]) => {
    const pictures = results.length === 0 ? undefined : picturesAfter(results, history);
    const all = pictures === undefined ? users : [pictures, ...users];
    if (all.length === 0) return;
    if (rules.quirks.closesTools && messages.at(-1)?.role === "tool") {
      messages.push({ role: "assistant", content: pictures === undefined ? INTERRUPTED : PICTURES_FOLLOW });
    }
    messages.push(sentUser(all, rules));
    results = [];
  };
  for (const { users, rest } of exchanges) {
    addUsers(users);
    const usesTools = rest.some(({ role }) => role === "tool");
    const position = { usesTools, isCurrent: rest === exchanges.at(-1)?.rest };
    for (const message of rest) {
      if (message.role === "tool") {
        results.push(message);
        messages.push(sentResult(message, rules));
      } else {
        addUsers([]);
        messages.push(sentAssistant(message, rules, position));
      }
    }
  }
  addUsers([]);
  return messages;
}

/** What a user said, perhaps in several messages, and the answer with its tool calls. */
interface Exchange {
  users: UserMessage[];
  rest: (AssistantMessage | ToolMessage)[];
}

function exchangesOf(history: readonly HistoryMessage[]): Exchange[] {
  const exchanges: Exchange[] = [];
  let exchange: Exchange | undefined;
  for (const message of history) {
    if (exchange === undefined || (message.role === "user" && exchange.rest.length > 0)) {
      exchange = { users: [], rest: [] };
      exchanges.push(exchange);
    }
    if (message.role === "user") exchange.users.push(message);
    else exchange.rest.push(message);
  }
  return exchanges;
}

/** Joins the messages into one: strict chat templates demand that user and assistant take turns. */
function sentUser(users: readonly UserMessage[], rules: SendRules): SentMessage {
  const parts = users.filter(({ content }) => content !== "").flatMap(partsOf);
  const sent = parts.map((part) => sentPart(part, rules));
  // Some servers accept a list of parts only if their model can see.
  const texts = sent.flatMap((part) => ("text" in part ? [part.text] : []));
  return { role: "user", content: texts.length === sent.length ? texts.join("\n\n") : sent };
}

function sentPart(part: ReadPart, { dialect, mediaTypes }: SendRules): object {
  if (part.type === "text") return part;
  const { name, mediaType } = fileOf(part);
  const { omitted: _kept, ...file } = part;
  if (mediaTypes.includes(mediaType)) return dialect.part(file);
  return { type: "text", text: unreadable(name, mediaType) };
}

function sentResult(result: ToolMessage, rules: SendRules): SentMessage {
  return { role: "tool", tool_call_id: sentId(result.tool_call_id, rules.quirks), content: textBeforePictures(result) };
}

interface Position {
  usesTools: boolean;
  /** Whether the message belongs to the answer that is being made. */
  isCurrent: boolean;
}

function sentAssistant(
  { role, content, tool_calls, thinking_parts, ...extra }: AssistantMessage,
  rules: SendRules,
  position: Position,
): SentMessage {
  const goesBack = (name: string) =>
    !OF_OTHER_APIS.has(name) &&
    (rules.dialect.takesBack?.has(name) ?? true) &&
    !rules.quirks.refused.has(name) &&
    (position.usesTools || rules.quirks.wantsReasoning || !OF_TOOL_TURNS.has(name)) &&
    (position.isCurrent || !rules.quirks.dropsSigned || !SIGNED.has(name));
  // A client's history may have anything here: only parts of the type `thinking` are sent.
  const thoughts = goesBack("thinking_parts") ? records(thinking_parts).filter(({ type }) => type === "thinking") : [];
  const said = content === null || content === "" ? [] : [{ type: "text", text: content }];
  return {
    ...(rules.quirks.wantsReasoning ? { reasoning_content: "" } : {}),
    ...only(extra, goesBack),
    role,
    content: thoughts.length === 0 ? content : [...thoughts, ...said],
    ...(tool_calls === undefined ? {} : { tool_calls: sentCalls(tool_calls, rules) }),
  };
}

function sentCalls(calls: readonly HistoryToolCall[], rules: SendRules): SentMessage["tool_calls"] {
  const { takesBack, unsignedCall } = rules.dialect;
  const goesBack = (name: string) => (takesBack?.has(name) ?? true) && !rules.quirks.refused.has(name);
  const sent = calls.map((call) => {
    const { id, type, function: called, ...extra } = call;
    const { name, arguments: _written, ...inner } = called;
    const fn = { ...only(inner, goesBack), name, arguments: sentArguments(call) };
    return { ...only(extra, goesBack), id: sentId(id, rules.quirks), type, function: fn };
  });
  const isSigned = calls.some((call) => Object.keys(unsignedCall ?? {}).some((name) => call[name] !== undefined));
  // The first of parallel calls carries the signature for all of them.
  return isSigned ? sent : sent.map((call, index) => (index === 0 ? { ...unsignedCall, ...call } : call));
}

function only(fields: Readonly<Record<string, unknown>>, goesBack: (name: string) => boolean): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => goesBack(name)));
}

/** An id of nine letters and digits that depends on the whole of the given one. */
function sentId(id: string, { shortIds }: Quirks): string {
  if (!shortIds || /^[a-zA-Z0-9]{9}$/.test(id)) return id;
  return createHash("sha256").update(id).digest("hex").slice(0, 9);
}
