/** Unknown JSON to an event. A proxy's error page or a newer server may be at the other end. */

import { type ConversationState, FINISH_REASONS, type FinishReason } from "../../server/protocol/chat.ts";
import type { ErrorCode } from "../../server/protocol/errors.ts";
import type { ClearedEvent } from "../../server/protocol/events.ts";
import { isRecord } from "../../server/protocol/json.ts";
import { type RunEvent, TransportError } from "./transport.ts";

type Fields = Record<string, unknown>;

/** Everything that the server says on a socket. */
export type SocketMessage = RunEvent | (ClearedEvent & { readonly id?: number });

/**
 * Reads one event. Unknown types give `undefined`, so that a newer server can add some; anything else that does not fit
 * throws a `TransportError`.
 */
export function parseEvent(json: string): SocketMessage | undefined {
  try {
    const fields = object(JSON.parse(json));
    const event = eventOf(fields);
    return event && typeof fields.id === "number" ? { ...event, id: fields.id } : event;
  } catch (cause) {
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
    case "tool_approval": {
      const call = object(data);
      const { text, expires_at, danger, editable, question } = call;
      const flags = {
        ...(danger === true && { danger }),
        ...(editable === true && { editable }),
        ...(question === true && { question }),
      };
      return {
        type,
        data: { ...toolCall(call), text: string(text), expires_at: string(expires_at), ...flags },
      };
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
        data: string(data),
        code: errorCodeOf(fields.code),
        retryable: fields.retryable === true,
        ...(fields.state === undefined ? {} : { state: stateOf(fields.state) }),
        ...(fields.continue === true && { continue: true }),
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

function toolResult({ output, status, declined, duration_ms, ...call }: Fields) {
  return {
    ...named(call),
    output: string(output),
    status: status === "failed" ? "failed" : "completed",
    ...(declined === true && ({ declined } as const)),
    duration_ms: typeof duration_ms === "number" ? duration_ms : 0,
  } as const;
}

function named({ id, tool, title }: Fields) {
  return { id: string(id), tool: string(tool), ...(isTitle(title) && { title }) };
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
