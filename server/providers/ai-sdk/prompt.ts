/** The history as a prompt of the AI SDK. */

import { ALL_MEDIA_TYPES, type MediaType } from "../../protocol/attachments.ts";
import type { AssistantMessage, HistoryMessage, HistoryToolCall, ImagePart, UserMessage } from "../../protocol/chat.ts";
import { asString, isRecord, type Json } from "../../protocol/json.ts";
import { type ResolvedPart, readParts } from "../answer-parts.ts";
import { NO_TEXT, ToolUseIds, toolUseName } from "../claude/messages.ts";
import { argumentsOf, fileOf, partsOf, picturesIn, resultText, unreadable } from "../history.ts";
import { INTERRUPTED, PICTURES_FOLLOW, textBeforePictures, withPicturesAfter } from "../result-pictures.ts";
import type { AiSdkLanguageModel } from "./language-model.ts";

/** A message of the prompt other than the system message, whose content is a string. */
interface PromptMessage {
  role: "user" | "assistant" | "tool";
  content: Json[];
}

/** The provider names of packages that accept pictures in results. Others would turn pictures into text. */
const TAKES_PICTURES = /anthropic|^google|vertex|bedrock|\.responses$/;

interface PromptRules {
  model: AiSdkLanguageModel;
  /** File types that the model accepts: the history may contain files that only an earlier model accepted. */
  mediaTypes: readonly MediaType[];
  /** Whether the reasoning of this message is not sent back. */
  isForgotten(message: HistoryMessage): boolean;
}

export function promptOf(
  instructions: string,
  history: readonly HistoryMessage[],
  { model: { provider, specificationVersion }, mediaTypes, isForgotten }: PromptRules,
): unknown[] {
  const isMistral = provider.startsWith("mistral");
  const ids = new ToolUseIds(isMistral ? /^[a-zA-Z0-9]{9}$/ : undefined);
  // Mistral's package of that version would put reasoning into the text.
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

  /** A part of an answer with its notes, which are sent back unchanged: signatures, ids, encrypted thoughts. */
  const contentOf = ({ own: { type, text, notes }, said, call }: ResolvedPart): Json[] => {
    const options = areNotes(notes) ? { providerOptions: notes } : {};
    if (call !== undefined) return [{ ...callPart(call), ...options }];
    if (type === "reasoning") return [{ type, text: asString(text), ...options }];
    return said === undefined || (said.trim() === "" && !areNotes(notes)) ? [] : [{ ...textPart(said), ...options }];
  };

  const takesPictures = TAKES_PICTURES.test(provider);
  for (const message of takesPictures ? history : withPicturesAfter(history)) {
    if (message.role === "user") {
      const isNext = history.includes(message);
      if (messages.at(-1)?.role === "tool") add("assistant", [textPart(isNext ? INTERRUPTED : PICTURES_FOLLOW)]);
      // The file types that users may send do not limit what tools return.
      add("user", userContent(message, specificationVersion, isNext ? mediaTypes : ALL_MEDIA_TYPES));
    } else if (message.role === "assistant") {
      if (messages.length === 0) add("user", [textPart(NO_TEXT)]);
      const forgets = forgetsAll || isForgotten(message);
      const parts = readParts(message, provider).filter(({ own }) => !forgets || own.type !== "reasoning");
      add("assistant", parts.flatMap(contentOf));
    } else {
      const toolCallId = ids.answer(message.tool_call_id);
      const toolName = names.get(toolCallId) ?? "_";
      const pictures = takesPictures ? picturesIn(message).map((part) => picturePart(part, specificationVersion)) : [];
      // Not every API has a flag for a failure.
      const text = takesPictures ? resultText(message) : textBeforePictures(message);
      const output =
        pictures.length === 0
          ? { type: message.is_error ? "error-text" : "text", value: text || "(no output)" }
          : { type: "content", value: [...(text === "" ? [] : [textPart(text)]), ...pictures] };
      add("tool", [{ type: "tool-result", toolCallId, toolName, output }]);
    }
  }
  const system = instructions.trim() === "" ? [] : [{ role: "system", content: instructions }];
  return [...system, ...messages];
}

/** The messages whose reasoning is sent back to this provider. */
export function withReasoning(history: readonly HistoryMessage[], provider: string): HistoryMessage[] {
  const hasReasoning = (message: AssistantMessage) =>
    readParts(message, provider).some(({ own }) => own.type === "reasoning");
  return history.filter((message) => message.role === "assistant" && hasReasoning(message));
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

/** A picture in a result, in the form of the specification's version. */
function picturePart(part: ImagePart, version: AiSdkLanguageModel["specificationVersion"]): Json {
  const { mediaType, base64: data } = fileOf(part);
  if (version === "v4") return { type: "file", mediaType, data: { type: "data", data } };
  return { type: version === "v2" ? "media" : "image-data", mediaType, data };
}

function textPart(text: string): { type: string; text: string } {
  return { type: "text", text };
}

/** `providerMetadata` of a part, which is sent back as its `providerOptions`. */
export type Notes = Record<string, Json>;

export function areNotes(notes: unknown): notes is Notes {
  return isRecord(notes) && Object.values(notes).every(isRecord);
}
