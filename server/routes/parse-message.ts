/** Turns unknown JSON into a checked message. Most 400 errors about a body or a socket message are made here. */

import { createHash } from "node:crypto";
import type { RunRequest } from "../agent/loop.ts";
import type { ServedAgent } from "../agent/served-agent.ts";
import { digestOfState, readState } from "../agent/state.ts";
import type { Caller } from "../auth/access.ts";
import type { Settings } from "../config/settings.ts";
import {
  ALL_MEDIA_TYPES,
  decodedBytes,
  type FileType,
  isMediaType,
  isStrictBase64,
  isTextType,
  labelOf,
  listMediaTypes,
  MAX_ATTACHMENT_BYTES,
  MAX_TEXT_BYTES,
  MEDIA_TYPES,
  type ReceivedFile,
  SNIFF_BYTES,
  sniffMediaType,
  TEXT_TYPES,
} from "../protocol/attachments.ts";
import type { ConversationState } from "../protocol/chat.ts";
import { ApiError, invalidField, invalidRequest } from "../protocol/errors.ts";
import { RUN_ID } from "../protocol/events.ts";
import { isRecord } from "../protocol/json.ts";
import type {
  AttachmentRules,
  MessageRules,
  ParsedChatRequest,
  ParsedMessage,
  Parsers,
  RememberedState,
  SocketCommand,
} from "./message.ts";
import { parseGoingOn } from "./parse-approvals.ts";

/** The rules for this caller as they are now: settings may change. */
export function messageRules(served: ServedAgent, settings: Settings, caller: Caller): MessageRules {
  return {
    state: served.stateBindingOf(caller),
    attachments: { maxCount: settings.maxAttachments, accepts: served.accepts },
    maxMessageChars: settings.maxMessageChars,
    maxJsonDepth: settings.maxJsonDepth,
    asksModel: served.agent.ownRun === undefined,
  };
}

/** The body of `POST /api/chat`. Unknown fields are ignored. @throws ApiError */
export function parseChatRequest(body: unknown, rules: MessageRules): ParsedChatRequest {
  const { stream, run, ...more } = fieldsOf(body);
  if (!isAnswerable(more)) throw invalidRequest("/message", "message must be a string.");
  if (typeof stream !== "boolean") throw invalidRequest("/stream", "stream must be true or false.");
  return { stream, ...parseMessage(more, parseRunName(run), rules, more.state) };
}

/**
 * One text frame. `state` takes precedence over `previous_response_id`; a message with neither continues from `remembered`.
 * @throws ApiError
 */
export function parseSocketMessage(body: unknown, rules: MessageRules, remembered: RememberedState): SocketCommand {
  const { type, run, after, state, previous_response_id: responseId, token, ...more } = fieldsOf(body);
  if (type === "clear" || type === "stop") return { type };
  if (type === "authenticate") return { type, token: parseToken(token) };
  const name = parseRunName(run);
  if (type === "resume") {
    if (name === undefined) throw invalidRequest("/run", "run must name the run to resume.");
    return { type, run: name, after: parseAfter(after) };
  }
  if (!isAnswerable(more)) {
    throw invalidRequest(
      "/message",
      'message must be a string, unless type is "clear", "stop", "resume" or "authenticate".',
    );
  }
  if (isGiven(responseId) && typeof responseId !== "string") {
    throw invalidRequest("/previous_response_id", "previous_response_id must be a string.");
  }
  const isRemembered = continuesRemembered(body);
  const continued = isRemembered ? refuseDropped(remembered) : (state ?? { previous_response_id: responseId });
  const named = isRemembered ? "remembered" : continued;
  return { type: "message", ...parseMessage({ ...more, state: continued }, name, rules, named) };
}

/** Whether there is anything to answer: a message, or what may take its place. */
function isAnswerable({ message, approvals, continue: goesOn }: Record<string, unknown>): boolean {
  return typeof message === "string" || (!isGiven(message) && (isGiven(approvals) || isGiven(goesOn)));
}

const MAX_TOKEN_BYTES = 16 * 1024;

/** "" means no token. @throws ApiError `invalid_request` */
function parseToken(value: unknown): string | undefined {
  if (typeof value !== "string") throw invalidRequest("/token", "token must be a string.");
  if (Buffer.byteLength(value) > MAX_TOKEN_BYTES) {
    throw invalidRequest("/token", `token must be at most ${MAX_TOKEN_BYTES} bytes.`);
  }
  return value === "" ? undefined : value;
}

/** The parsers of messages, by names that can be sent to a thread. Each open door has added its own. */
export const PARSERS = { chat: parseChatRequest, socket: parseSocketMessage } as Parsers;

/** Whether a socket message is to be answered and names no state. @throws ApiError */
export function continuesRemembered(body: unknown): boolean {
  const { message, approvals, continue: goesOn, state, previous_response_id: responseId } = fieldsOf(body);
  return [message, approvals, goesOn].some(isGiven) && !isGiven(state) && !isGiven(responseId);
}

function refuseDropped(remembered: RememberedState): ConversationState {
  if (remembered !== "dropped") return remembered;
  throw new ApiError(
    "conversation_expired",
    "This connection no longer remembers the conversation. Send the state that came with the last answer, or start a new conversation.",
  );
}

/** `named` is the state as the client sent it, or "remembered" if its socket has remembered it. */
function parseMessage(
  body: Record<string, unknown>,
  name: string | undefined,
  rules: MessageRules,
  named: unknown,
): ParsedMessage {
  const { message = "" } = body as { message?: string | null };
  refuseLong(message ?? "", "/message", rules);
  const attachments = parseAttachments(body.attachments, rules.attachments);
  const isEmpty = (message ?? "").trim() === "" && attachments.length === 0;
  const isInPlace = isGiven(body.approvals) || isGiven(body.continue);
  if (isEmpty && !isInPlace) throw invalidRequest("/message", "message must not be empty, unless a file is attached.");
  const hidden = new Set<string>();
  const state = readState(body.state, rules.state, hidden);
  const request: RunRequest = {
    // A lone surrogate cannot be sent on as UTF-8.
    message: isEmpty ? "" : (message ?? "").toWellFormed(),
    attachments,
    state,
    hidden,
    ...(isInPlace ? parseGoingOn(body, { ...rules, state, isEmpty }) : {}),
  };
  const metadata = parseMetadata(body.metadata);
  return { request, name, digest: name === undefined ? "" : digestOfMessage(request, named), metadata };
}

/** @throws ApiError `request_too_large` */
export function refuseLong(message: string, at: string, { maxMessageChars: max }: MessageRules): void {
  if (message.length <= max) return;
  throw invalidField(at, `is longer than the ${max} characters that are allowed`, "request_too_large");
}

const MAX_METADATA = { entries: 16, chars: 512 };

/** @throws ApiError `invalid_request` */
export function parseMetadata(value: unknown): Readonly<Record<string, string>> {
  if (!isGiven(value)) return {};
  if (!isRecord(value)) throw invalidRequest("/metadata", "metadata must be an object of strings.");
  const { entries: most, chars } = MAX_METADATA;
  const entries = Object.entries(value);
  if (entries.length > most) throw invalidRequest("/metadata", `metadata must hold at most ${most} strings.`);
  return Object.fromEntries(
    entries.map(([name, text]) => {
      if (!/^[A-Za-z0-9_.-]{1,64}$/.test(name)) {
        throw invalidRequest("/metadata", "Names in metadata must be 1 to 64 characters of A-Z, a-z, 0-9, _, . and -.");
      }
      if (typeof text === "string" && text.length <= chars) return [name, text.toWellFormed()];
      throw invalidRequest(`/metadata/${name}`, `metadata.${name} must be a string of at most ${chars} characters.`);
    }),
  );
}

/**
 * Hash of a message, without its metadata. That of a state which the client sent follows after a dot, because a message that is
 * repeated on another socket has to send the state that the first socket remembered.
 */
function digestOfMessage({ message, attachments, state, approvals, goesOn }: RunRequest, named: unknown): string {
  const about = [message, attachments.map(({ name }) => name), ...(goesOn ? [approvals ?? null] : [])];
  const hash = createHash("sha256").update(JSON.stringify(about));
  for (const file of attachments) {
    const content = file.url ?? file.text;
    hash.update(`\n${content.length}\n`).update(content);
  }
  const digest = hash.digest("base64url");
  return named === "remembered" ? digest : `${digest}.${digestOfState(named ?? {}, state)}`;
}

/** The optional `run` of a message. @throws ApiError `invalid_request` */
function parseRunName(value: unknown): string | undefined {
  if (!isGiven(value)) return undefined;
  if (typeof value === "string" && RUN_ID.test(value)) return value;
  throw invalidRequest("/run", "run must be 16 to 64 characters of A-Z, a-z, 0-9, _ and -.");
}

/** The number of the last event that a client has; absent: none yet. */
function parseAfter(value: unknown): number {
  if (!isGiven(value)) return 0;
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw invalidRequest("/after", "after must be the id of an event, or 0.");
}

/** @throws ApiError `invalid_request` */
export function fieldsOf(body: unknown): Record<string, unknown> {
  if (isRecord(body)) return body;
  throw invalidRequest("", "The message must be a JSON object.");
}

/** `null` for an optional field means absent. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** A longer file name is cut. */
const MAX_NAME = 200;

/** How much of a file name is read, including the characters that are removed. */
const MAX_READ_NAME = 1000;

/** @throws ApiError that says which attachment is wrong, and why */
function parseAttachments(value: unknown, rules: AttachmentRules): ReceivedFile[] {
  if (!isGiven(value)) return [];
  if (!Array.isArray(value)) throw invalidRequest("/attachments", "attachments must be an array.");
  refuseMany(value.length, "/attachments", rules);
  return value.map((item, index) => parseAttachment(item, `/attachments/${index}`, rules));
}

/** @throws ApiError for more files than a message may have */
export function refuseMany(count: number, at: string, { maxCount }: AttachmentRules): void {
  if (count <= maxCount) return;
  throw invalidField(at, `holds ${count} files; at most ${maxCount} are allowed`, "invalid_attachment");
}

function parseAttachment(item: unknown, at: string, rules: AttachmentRules): ReceivedFile {
  if (!isRecord(item)) throw invalidField(at, "must be an object");
  const text = (field: string): string => {
    const value = item[field];
    if (typeof value === "string") return value;
    throw invalidField(`${at}/${field}`, "must be a string");
  };
  const file = { type: text("type"), name: text("name"), mediaType: text("mime_type"), data: text("data") };
  return readFile(file, (field) => `${at}/${field}`, rules);
}

/** A file as the client sent it. */
interface SentFile {
  type: string;
  name: string;
  mediaType: string;
  data: string;
}

/** `at` returns the JSON pointer to a field of the file. @throws ApiError that says what is wrong with it */
export function readFile(
  { type, data, ...sent }: SentFile,
  at: (field: "type" | "mime_type" | "data") => string,
  rules: AttachmentRules,
): ReceivedFile {
  const name = displayName(sent.name);
  const mediaType = sent.mediaType.toLowerCase();
  if (type !== "image" && type !== "file") {
    throw invalidField(at("type"), 'must be "image" or "file"', "invalid_attachment");
  }
  const isText = isTextType(mediaType);
  if (!isText && !isMediaType(mediaType)) {
    const known = [...ALL_MEDIA_TYPES, ...Object.keys(TEXT_TYPES)].join(", ");
    throw invalidField(at("mime_type"), `must be one of ${known}`, "unsupported_attachment");
  }
  const right = isText ? "file" : MEDIA_TYPES[mediaType].type;
  if (right !== type) {
    throw invalidField(at("type"), `must be "${right}" for ${mediaType}`, "invalid_attachment");
  }
  if (!rules.accepts.includes(mediaType)) {
    const taken = listMediaTypes(rules.accepts);
    const others = rules.accepts.filter((one) => !one.startsWith("image/"));
    const kind = rules.accepts.length > 0 && others.length === 0 ? "images" : "files";
    const problem = `is ${labelOf(mediaType)}; this assistant takes ${taken} ${kind}`;
    throw invalidField(at("mime_type"), problem, "unsupported_attachment");
  }
  checkData(data, mediaType, at("data"));
  if (isText) return { type, name, mime_type: mediaType, text: readText(data, at("data")) };
  return { type, name, mime_type: mediaType, url: `data:${mediaType};base64,${data}` };
}

/** The text, without a byte order mark at its beginning. */
function readText(data: string, at: string): string {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(data, "base64"));
    if (text === "") throw invalidField(at, "is empty", "invalid_attachment");
    if (!text.includes("\0")) return text;
  } catch (error) {
    if (error instanceof ApiError) throw error;
  }
  throw invalidField(at, "is not text in UTF-8", "unsupported_attachment");
}

function checkData(data: string, mediaType: FileType, at: string): void {
  if (data.startsWith("data:")) {
    throw invalidField(at, "must be bare base64, not a data: URL", "invalid_attachment");
  }
  // Before the characters are checked, because the size follows from the length alone.
  const max = isTextType(mediaType) ? MAX_TEXT_BYTES : MAX_ATTACHMENT_BYTES;
  if (decodedBytes(data) > max) {
    throw invalidField(at, `is larger than ${max} bytes (${max / 1024 / 1024} MiB)`, "attachment_too_large");
  }
  if (data === "") throw invalidField(at, "is empty", "invalid_attachment");
  if (!isStrictBase64(data)) throw invalidField(at, "is not base64", "invalid_attachment");
  if (isTextType(mediaType)) return;
  const head = Buffer.from(data.slice(0, Math.ceil(SNIFF_BYTES / 3) * 4), "base64");
  if (sniffMediaType(head) !== mediaType) {
    throw invalidField(at, `is not a file of type ${mediaType}`, "unsupported_attachment");
  }
}

/**
 * The last part of a path, without characters that could deceive a reader, such as those that control the direction, and
 * without leading characters that open a Markdown code block: the name is written above the code block of a text file.
 */
function displayName(name: string): string {
  const start = Math.max(name.lastIndexOf("/"), name.lastIndexOf("\\")) + 1;
  const clean = name
    .slice(start, start + MAX_READ_NAME)
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "")
    .replace(/^[`~\s]+|\s+$/g, "");
  return [...clean].slice(0, MAX_NAME).join("") || "attachment";
}
