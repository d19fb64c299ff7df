/** Parses unknown JSON into an event. A proxy's error page or a newer server may be at the other end. */

import {
  type ConversationState,
  FINISH_REASONS,
  type FinishReason,
  type ResultImage,
} from "../../server/protocol/chat.ts";
import type { ErrorCode } from "../../server/protocol/errors.ts";
import type { ClearedEvent } from "../../server/protocol/events.ts";
import { isRecord } from "../../server/protocol/json.ts";
import type { SourceEvent } from "../../server/protocol/sources.ts";
import { type RunEvent, type ToolImage, TransportError } from "./transport.ts";

type Fields = Record<string, unknown>;

/** Everything that the server sends over a WebSocket. */
export type SocketMessage = RunEvent | (ClearedEvent & { readonly id?: number });

/** Event types that an answer can do without. */
const OPTIONAL = /^(thinking|source|tool_(call|progress|result))$/;

/**
 * Parses one event. Unknown types give `undefined`, so that a newer server can add some, and so do malformed events of
 * an `OPTIONAL` type. Any other malformed event throws a `TransportError`.
 */
export function parseEvent(json: string): SocketMessage | undefined {
  let fields: Fields = {};
  try {
    fields = object(JSON.parse(json));
    const event = eventOf(fields);
    return event && typeof fields.id === "number" ? { ...event, id: fields.id } : event;
  } catch (cause) {
    if (OPTIONAL.test(`${fields.type}`)) return undefined;
    throw new TransportError("unreadable", { cause });
  }
}

function eventOf(fields: Fields): SocketMessage | undefined {
  const { data } = fields;
  const type = fields.type as SocketMessage["type"];
  switch (type) {
    case "token":
    case "thinking":
      return { type, data: string(data) };
    case "tool_call":
      return { type, data: { ...toolCall(object(data)), status: "running" } };
    case "source":
      // Validated where it is shown.
      return { type, data: object(data) as unknown as SourceEvent["data"] };
    case "tool_approval": {
      const call = object(data);
      const { text, expires_at, danger, editable, schema, question } = call;
      const flags = {
        ...(danger === true && { danger }),
        ...(editable === true && { editable }),
        ...(isRecord(schema) && { schema }),
        ...(question === true && { question }),
      };
      return {
        type,
        data: { ...toolCall(call), text: string(text), expires_at: string(expires_at), ...flags },
      };
    }
    case "tool_progress": {
      const { id, text } = object(data);
      return { type, data: { id: string(id), text: string(text) } };
    }
    case "tool_result":
      return { type, data: toolResult(object(data)) };
    case "done":
      return {
        type,
        data: string(data),
        state: stateOf(fields.state),
        finish_reason: finishReasonOf(fields),
        ...proposed(fields),
      };
    case "error":
      return {
        type,
        data: typeof data === "string" ? data : "",
        code: errorCodeOf(fields.code),
        retryable: fields.retryable === true,
        ...(isRecord(fields.state) && { state: stateOf(fields.state) }),
        ...(fields.continue === true && { continue: true }),
        // Validated where they are shown.
        ...(Array.isArray(fields.problems) && { param: fields.param as string, problems: fields.problems }),
        ...retryAfter(fields.retry_after),
      };
    case "cleared":
      return { type, data: "" };
    default:
      return unknownType(type);
  }
}

/** A newer server may send such an event. A type of ours that the `switch` forgets no longer compiles. */
function unknownType(_type: never): undefined {
  return undefined;
}

/** Seconds to wait before a retry, where they are known. */
export function retryAfter(value: unknown): { readonly retry_after?: number } {
  const seconds = Number(value);
  return seconds > 0 ? { retry_after: seconds } : {};
}

/** A newer server may use codes that are not in our table. */
export function errorCodeOf(value: unknown): ErrorCode {
  return typeof value === "string" ? (value as ErrorCode) : "internal";
}

function isTitle(value: unknown): value is string | Record<string, string> {
  return typeof value === "string" || (isRecord(value) && Object.values(value).every((it) => typeof it === "string"));
}

function toolCall(call: Fields) {
  return { ...named(call), arguments: string(call.arguments) };
}

function toolResult({ output, images, images_omitted, status, declined, duration_ms, ...call }: Fields) {
  return {
    ...named(call),
    output: string(output),
    ...(Array.isArray(images) && { images: images.flatMap(toolImage) }),
    ...(typeof images_omitted === "number" && { imagesOmitted: images_omitted }),
    status: status === "failed" ? "failed" : "completed",
    ...(declined === true && ({ declined } as const)),
    duration_ms: typeof duration_ms === "number" ? duration_ms : 0,
  } as const;
}

/**
 * A picture in the form of a file in a state, so that its data is stored in the same way. `sha256` is only a name here,
 * made of the length and the end of the data, which has the checksums of a picture. Anything but a picture is left out.
 */
function toolImage(image: unknown): ToolImage[] {
  const { mime_type, data } = Object(image) as ResultImage;
  if (!/^image\/(png|jpeg|gif|webp)$/.test(mime_type) || !data) return [];
  try {
    const omitted = { sha256: data.length + data.slice(-48), mime_type, bytes: atob(data).length };
    return [{ type: "image_url", image_url: { url: `data:${mime_type};base64,${data}` }, omitted }];
  } catch {
    return [];
  }
}

function named({ id, tool, title, parent }: Fields) {
  const within = typeof parent === "string" && { parent };
  return { id: string(id), tool: string(tool), ...(isTitle(title) && { title }), ...within };
}

/** A newer server may know other reasons. */
function finishReasonOf({ finish_reason: reason }: Fields): FinishReason {
  return Object.hasOwn(FINISH_REASONS, `${reason}`) ? (reason as FinishReason) : "stop";
}

function proposed({ suggestions, title }: Fields): { suggestions?: string[]; title?: string } {
  const areTexts = Array.isArray(suggestions) && suggestions.every((text) => typeof text === "string");
  return { ...(areTexts && { suggestions }), ...(typeof title === "string" && { title }) };
}

/** Opaque to clients: it is sent back as it came. */
function stateOf(value: unknown): ConversationState {
  return object(value) as unknown as ConversationState;
}

function object(value: unknown): Fields {
  if (!isRecord(value)) throw new TypeError("an object was expected");
  return value;
}

function string(value: unknown): string {
  if (typeof value !== "string") throw new TypeError("a string was expected");
  return value;
}
