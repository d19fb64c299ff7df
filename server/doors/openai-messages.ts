/**
 * The body of `POST /v1/chat/completions`. The conversation in it comes from the caller: the texts and files of `user`
 * and `assistant` are used. The names of ignored fields are listed, so that the answer can tell them.
 */

import { checkSize } from "../agent/check-history.ts";
import { digestOf } from "../agent/state.ts";
import type { ReceivedFile } from "../protocol/attachments.ts";
import type { HistoryMessage } from "../protocol/chat.ts";
import { invalidField, invalidRequest } from "../protocol/errors.ts";
import { isRecord } from "../protocol/json.ts";
import { userMessage } from "../providers/history.ts";
import type { MessageRules, ParsedChatRequest } from "../routes/message.ts";
import { fieldsOf, isGiven, parseMetadata, readFile, refuseLong, refuseMany } from "../routes/parse-message.ts";

/** @throws ApiError whose pointer names the field */
export function parseChatCompletion(body: unknown, rules: MessageRules): ParsedChatRequest {
  const { messages, model: _any, stream, stream_options: options, metadata, n, ...others } = fieldsOf(body);
  if (!Array.isArray(messages)) throw invalidRequest("/messages", "messages must be an array.");
  if (isGiven(stream) && typeof stream !== "boolean") throw invalidRequest("/stream", "stream must be true or false.");
  if (isGiven(n) && n !== 1) throw invalidRequest("/n", "n must be 1: there is one answer.");
  refuseSound(others);
  const ignored = new Set(Object.keys(others).filter((name) => name !== "modalities" && isGiven(others[name])));
  const { history, instructions, message, files } = readConversation(messages, rules, ignored);
  const request = { message, attachments: files, state: {}, history, instructions: instructions.join("\n\n") };
  const { name } = rules;
  return {
    request,
    stream: stream === true,
    name,
    digest: name === undefined ? "" : digestOf(request),
    metadata: parseMetadata(metadata),
    asked: { usage: isRecord(options) && options.include_usage === true, ignored: [...ignored] },
  };
}

/** @throws ApiError if the client asks for sound */
function refuseSound({ audio, modalities }: Record<string, unknown>): void {
  const isText = !isGiven(modalities) || (Array.isArray(modalities) && modalities.every((one) => one === "text"));
  if (!isText) throw invalidRequest("/modalities", 'modalities must be ["text"]: this agent answers in text.');
  if (isGiven(audio)) throw invalidRequest("/audio", "audio must be absent: this agent answers in text.");
}

interface Conversation extends Content {
  /** The messages before the last one of the user. */
  history: HistoryMessage[];
  instructions: string[];
}

/** The content of a message. */
interface Content {
  message: string;
  files: ReceivedFile[];
}

/** Roles whose messages are left out. `function` is the former name of `tool`. */
const LEFT_OUT = ["tool", "function"];

function readConversation(messages: readonly unknown[], rules: MessageRules, ignored: Set<string>): Conversation {
  const last = messages.findLastIndex((one) => isRecord(one) && (one.role === "user" || one.role === "assistant"));
  const asked = messages[last];
  if (!isRecord(asked) || asked.role !== "user") {
    throw invalidRequest("/messages", "The last of the messages must be the user's.");
  }
  checkSize([...messages.slice(0, last), ...messages.slice(last + 1)], rules.state.limits, "/messages");
  const conversation: Conversation = { history: [], instructions: [], message: "", files: [] };
  for (const [index, sent] of messages.entries()) {
    const at = `/messages/${index}`;
    if (!isRecord(sent)) throw invalidField(at, "must be an object");
    const { role, content, ...others } = sent;
    for (const name of Object.keys(others)) if (isUsed(others[name])) ignored.add(`messages.${name}`);
    if (role === "user") {
      const read = readContent(content, `${at}/content`, rules);
      if (index === last) Object.assign(conversation, read);
      else if (!isEmpty(read)) conversation.history.push(userMessage(read.message, read.files));
    } else if (role === "assistant") {
      const text = readAnswer(content, `${at}/content`, ignored);
      if (text.trim() !== "") conversation.history.push({ role, content: text });
    } else if (role === "system" || role === "developer") {
      const text = readContent(content, `${at}/content`, rules, false).message;
      if (rules.asksModel) conversation.instructions.push(text);
      else ignored.add(`messages.${role}`);
    } else if (typeof role === "string" && LEFT_OUT.includes(role)) {
      ignored.add(`messages.${role}`);
    } else throw invalidField(`${at}/role`, 'must be "system", "developer", "user", "assistant" or "tool"');
  }
  const at = `/messages/${last}/content`;
  if (isEmpty(conversation)) throw invalidField(at, "must not be empty");
  refuseLong(conversation.message, at, rules);
  return conversation;
}

const isUsed = (value: unknown): boolean => isGiven(value) && !(Array.isArray(value) && value.length === 0);

const isEmpty = ({ message, files }: Content): boolean => message.trim() === "" && files.length === 0;

/** A text, or parts: texts and, where `takesFiles`, files. */
function readContent(content: unknown, at: string, rules: MessageRules, takesFiles = true): Content {
  if (typeof content === "string") return { message: content.toWellFormed(), files: [] };
  if (!Array.isArray(content)) throw invalidField(at, "must be a string or an array of parts");
  const texts: string[] = [];
  const files: ReceivedFile[] = [];
  for (const [index, part] of content.entries()) {
    const text = textIn(part);
    if (text !== undefined) texts.push(text);
    else if (takesFiles) files.push(readFilePart(part, `${at}/${index}`, rules));
    else throw invalidField(`${at}/${index}`, "must be a text");
  }
  refuseMany(files.length, at, rules.attachments);
  return { message: texts.join("\n"), files };
}

/** The text of an assistant's message. Pictures and sound of other agents are left out. */
function readAnswer(content: unknown, at: string, ignored: Set<string>): string {
  if (!isGiven(content)) return "";
  if (typeof content === "string") return content.toWellFormed();
  if (!Array.isArray(content)) throw invalidField(at, "must be a string, an array of parts, or null");
  const texts = content.map((part) => textIn(part) ?? refusalIn(part));
  if (texts.includes(undefined)) ignored.add("messages.content");
  return texts.filter((text) => text !== undefined).join("\n");
}

function textIn(part: unknown): string | undefined {
  if (!isRecord(part) || part.type !== "text" || typeof part.text !== "string") return undefined;
  return part.text.toWellFormed();
}

function refusalIn(part: unknown): string | undefined {
  if (!isRecord(part) || part.type !== "refusal" || typeof part.refusal !== "string") return undefined;
  return part.refusal.toWellFormed();
}

function readFilePart(part: unknown, at: string, { attachments }: MessageRules): ReceivedFile {
  const { type, image_url: image, file } = isRecord(part) ? part : {};
  if (type === "image_url" && isRecord(image)) return readDataUrl(image.url, "image", `${at}/image_url/url`);
  if (type === "file" && isRecord(file)) {
    const { filename } = file;
    return readDataUrl(file.file_data, typeof filename === "string" ? filename : "", `${at}/file/file_data`);
  }
  throw invalidField(at, "must be a text, an image_url or a file");

  function readDataUrl(url: unknown, name: string, place: string): ReceivedFile {
    const text = typeof url === "string" ? url : "";
    const [prefix, mediaType = ""] =
      /^data:([\w.+-]+\/[\w.+-]+)(?:;[\w.+-]+=[\w.+-]+)*;base64,/i.exec(text.slice(0, 200)) ?? [];
    if (prefix === undefined) {
      throw invalidField(place, "must be a data: URL with base64, because this server fetches no addresses");
    }
    const kind = /^image\//i.test(mediaType) ? "image" : "file";
    return readFile({ type: kind, name, mediaType, data: text.slice(prefix.length) }, () => place, attachments);
  }
}
