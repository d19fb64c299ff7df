/**
 * The history as input items of the Responses API, and the parts of a response that the history keeps for it: with
 * `store: false` OpenAI stores nothing of a conversation, so encrypted reasoning and hosted calls must be sent back.
 */

import { createHash } from "node:crypto";
import type { OpenAI } from "openai";
import type {
  AssistantMessage,
  HistoryMessage,
  HistoryToolCall,
  ToolMessage,
  UserMessage,
} from "../../protocol/chat.ts";
import { asString, isRecord, type Json, records } from "../../protocol/json.ts";
import { type AnswerPart, readParts } from "../answer-parts.ts";
import { partsOf, picturesIn, type ReadPart, resultText, sentArguments } from "../history.ts";

export type InputItem = OpenAI.Responses.ResponseInputItem;
type InputContent = OpenAI.Responses.ResponseInputContent;

/** Reasoning or a hosted call as the history keeps it; empty if nothing of it has to be sent back. */
export function keptItem(item: Json): AnswerPart[] {
  switch (item.type) {
    case "reasoning":
      return asString(item.encrypted_content) === "" ? [] : [{ type: "item", item }];
    case "web_search_call": {
      if (!isRecord(item.action)) return [];
      // Without the long list of all visited pages, which the API does not need.
      const { sources: _shown, ...action } = item.action;
      return [{ type: "item", item: { ...item, action } }];
    }
    case "code_interpreter_call": {
      // Without images, which would be transferred with each later message, in both directions.
      const outputs = records(item.outputs).filter(({ type }) => type === "logs");
      return [{ type: "item", item: { ...item, outputs } }];
    }
    default:
      return [{ type: "item", item }];
  }
}

/** Every message as input items, whichever provider it came from. */
export function toInput(history: readonly HistoryMessage[]): InputItem[] {
  return history.flatMap((message) => {
    if (message.role === "user") return userItems(message);
    return message.role === "assistant" ? assistantItems(message) : [callOutput(message)];
  });
}

function userItems(message: UserMessage): InputItem[] {
  const sent = partsOf(message).flatMap(inputContent);
  return sent.length === 0 ? [] : [{ role: "user", content: sent }];
}

function inputContent(part: ReadPart): InputContent[] {
  switch (part.type) {
    case "text":
      return part.text === "" ? [] : [{ type: "input_text", text: part.text }];
    case "image_url":
      return [{ type: "input_image", image_url: part.image_url.url, detail: "auto" }];
    case "file":
      return [{ type: "input_file", ...part.file }];
  }
}

function callOutput(message: ToolMessage): InputItem {
  const text = resultText(message);
  const pictures = picturesIn(message).flatMap(inputContent);
  const output =
    pictures.length === 0 ? text : [...(text === "" ? [] : [{ type: "input_text" as const, text }]), ...pictures];
  return { type: "function_call_output", call_id: callId(message.tool_call_id), output };
}

/** The parts from the client in order, as far as they are safe to send. Sources that were put after a text are left out. */
function assistantItems(message: AssistantMessage): InputItem[] {
  const items = readParts(message, "openai", true).flatMap(({ own: { notes, item }, said, call }) => {
    if (call !== undefined) return [functionCall(call)];
    if (said !== undefined) return textItem(said, isRecord(notes) ? notes.phase : undefined);
    return isRecord(item) ? ownItem(item) : [];
  });
  // The API refuses reasoning without the item that it led to, which an answer that was cut short does not have.
  while (items.at(-1)?.type === "reasoning") items.pop();
  return items;
}

function textItem(content: string, phase?: unknown): InputItem[] {
  if (content === "") return [];
  const message: OpenAI.Responses.EasyInputMessage = { role: "assistant", content };
  if (phase === "commentary" || phase === "final_answer") message.phase = phase;
  return [message];
}

function functionCall(call: HistoryToolCall): InputItem {
  const { id, function: called } = call;
  // A call of another provider's model may have a name that this API refuses.
  const name = called.name.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64) || "unnamed";
  return { type: "function_call", call_id: callId(id), name, arguments: sentArguments(call) };
}

/** The API takes ids of up to 64 characters; other providers give longer ones. */
function callId(id: string): string {
  return id.length <= 64 ? id : createHash("sha256").update(id).digest("hex");
}

/**
 * A reasoning item or a hosted call, field by field. Reasoning is sent without its id: the API would look for the item,
 * which it has not stored, and needs only the encrypted content.
 */
function ownItem(item: Json): InputItem[] {
  const { type, id, status, summary, encrypted_content, action, queries, results, code, container_id, outputs } = item;
  // Only a check of each field could prove the types of the package.
  const sent = (fields: object) => [fields as InputItem];
  if (type === "reasoning") {
    if (asString(encrypted_content) === "") return [];
    return sent({ type, summary: Array.isArray(summary) ? summary : [], encrypted_content });
  }
  if (asString(id) === "") return [];
  switch (type) {
    case "web_search_call":
      return isRecord(action) ? sent({ type, id, status, action }) : [];
    case "file_search_call":
      return sent({ type, id, status, queries, results });
    case "code_interpreter_call":
      return sent({ type, id, status, code, container_id, outputs });
    default:
      return [];
  }
}

/** The input without reasoning; `undefined` if there is none in it. */
export function withoutReasoning(input: readonly InputItem[]): InputItem[] | undefined {
  const rest = input.filter((item) => item.type !== "reasoning");
  return rest.length < input.length ? rest : undefined;
}
