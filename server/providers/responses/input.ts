/** The history as the Responses API takes it. What the client holds stays as it is. */

import type { OpenAI } from "openai";
import { crypto } from "../../node/crypto.ts";
import type { AssistantMessage, ContentPart, HistoryMessage } from "../../protocol/chat.ts";
import { isRecord } from "../../protocol/is-record.ts";
import { textOfResult } from "../history/tool-output.ts";
import { text } from "../text.ts";
import { OUTPUT_FIELD } from "./output.ts";

export type InputItem = OpenAI.Responses.ResponseInputItem;

type InputContent = OpenAI.Responses.ResponseInputContent;

/** Every message as the items that mean it, whichever provider it came from. */
export function toInput(history: readonly HistoryMessage[]): InputItem[] {
  return history.flatMap(messageItems);
}

function messageItems(message: HistoryMessage): InputItem[] {
  switch (message.role) {
    case "user":
      return userItems(message.content);
    case "assistant":
      return assistantItems(message);
    case "tool":
      return [callOutput(message.tool_call_id, textOfResult(message))];
  }
}

function userItems(content: string | readonly ContentPart[]): InputItem[] {
  const parts: readonly ContentPart[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const sent = parts.flatMap(inputContent);
  return sent.length === 0 ? [] : [{ role: "user", content: sent }];
}

function inputContent(part: ContentPart): InputContent[] {
  switch (part.type) {
    case "text":
      return part.text === "" ? [] : [{ type: "input_text", text: part.text }];
    case "image_url":
      return [{ type: "input_image", image_url: part.image_url.url, detail: "auto" }];
    case "file":
      return [{ type: "input_file", ...part.file }];
  }
}

/**
 * What the assistant said and did, in the order in which it did, where `OUTPUT_FIELD` tells it. That field
 * comes from the client: of each part only what can be sent safely is taken, and what it does not name of
 * the message comes after it.
 */
function assistantItems(message: AssistantMessage): InputItem[] {
  const content = message.content ?? "";
  const calls = new Map((message.tool_calls ?? []).map((call) => [call.id, call]));
  const items: InputItem[] = [];
  const kept: unknown = message[OUTPUT_FIELD];
  const parts: unknown[] = Array.isArray(kept) ? kept : [];
  const hasText = parts.some((part) => isRecord(part) && part.type === "message");
  if (!hasText) items.push(...said(content));
  for (const part of parts) {
    if (!isRecord(part)) continue;
    if (part.type === "message") {
      const range = content.slice(...[part.start, part.end].map(offset));
      items.push(...said(range, part.phase));
    } else if (part.type === "function_call") {
      const call = calls.get(text(part.call_id));
      if (call !== undefined) items.push(functionCall(call.id, call.function));
      calls.delete(text(part.call_id));
    } else if (isRecord(part.item)) {
      items.push(...ownItem(part.item));
    }
  }
  for (const { id, function: called } of calls.values()) items.push(functionCall(id, called));
  // Reasoning is refused without the item that it led to, which an answer cut short does not have.
  while (items.at(-1)?.type === "reasoning") items.pop();
  return items;
}

function offset(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

function callOutput(id: string, output: string): InputItem {
  return { type: "function_call_output", call_id: callId(id), output };
}

function said(content: string, phase?: unknown): InputItem[] {
  if (content === "") return [];
  const message: OpenAI.Responses.EasyInputMessage = { role: "assistant", content };
  if (phase === "commentary" || phase === "final_answer") message.phase = phase;
  return [message];
}

function functionCall(id: string, { name, arguments: written }: { name: string; arguments: string }): InputItem {
  // A call of another provider's model may have a name that this API refuses.
  const safe = name.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64) || "unnamed";
  return { type: "function_call", call_id: callId(id), name: safe, arguments: written };
}

/** The API takes ids of up to 64 characters; other providers give longer ones. */
function callId(id: string): string {
  if (id.length <= 64) return id;
  return crypto().createHash("sha256").update(id).digest("hex");
}

/**
 * A reasoning item or a hosted call, as it came from the API. Reasoning goes without its id: the API would
 * look for the item, which it has not stored, where the encrypted content says everything.
 */
function ownItem(item: Readonly<Record<string, unknown>>): InputItem[] {
  const { type, id, summary, encrypted_content, status, action, queries, results } = item;
  const { code, container_id, outputs } = item;
  const fields = { type, id, status };
  // The types of the package demand what only a check of each field could prove.
  const sent = (own: object) => [own as unknown as InputItem];
  switch (type) {
    case "reasoning":
      if (text(encrypted_content) === "") return [];
      return sent({ type, summary: Array.isArray(summary) ? summary : [], encrypted_content });
    case "web_search_call":
      return isRecord(action) && text(id) !== "" ? sent({ ...fields, action }) : [];
    case "file_search_call":
      return text(id) === "" ? [] : sent({ ...fields, queries, results });
    case "code_interpreter_call":
      return text(id) === "" ? [] : sent({ ...fields, code, container_id, outputs });
    default:
      return [];
  }
}
