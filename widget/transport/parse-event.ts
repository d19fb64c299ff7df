/** Unknown JSON to an event. The server is ours, but a proxy's page or a newer version may speak instead. */

import type { ConversationState, FinishReason } from "../../server/protocol/chat.ts";
import type { ErrorCode } from "../../server/protocol/errors.ts";
import type { SocketEvent } from "../../server/protocol/events.ts";
import { TransportError } from "./transport.ts";

type Fields = Record<string, unknown>;

/**
 * Reads one event. An unknown type gives `undefined`, so that a newer server can add kinds;
 * anything else that does not fit throws.
 */
export function parseEvent(text: string): (SocketEvent & { id?: number }) | undefined {
  const fields = parseObject(text);
  const event = readEvent(fields);
  return event && typeof fields.id === "number" ? { ...event, id: fields.id } : event;
}

function readEvent(event: Fields): SocketEvent | undefined {
  const { data } = event;
  const type = event.type as SocketEvent["type"];
  switch (type) {
    case "token":
    case "thinking":
      return { type, data: string(data) };
    case "tool_call": {
      const call = object(data);
      const [id, tool, args] = [string(call.id), string(call.tool), string(call.arguments)];
      return { type, data: { id, tool, arguments: args, status: "running" } };
    }
    case "tool_result":
      return { type, data: toolResult(object(data)) };
    case "done": {
      const finish_reason = finishReason(event.finish_reason);
      return { type, data: string(data), state: state(event.state), finish_reason };
    }
    case "error":
      return {
        type,
        data: string(data),
        code: errorCode(event.code),
        retryable: event.retryable === true,
        ...(event.state === undefined ? {} : { state: state(event.state) }),
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

/** A newer server's codes are passed on: a table of ours would cost more than it tells. */
export function errorCode(value: unknown): ErrorCode {
  return typeof value === "string" ? (value as ErrorCode) : "internal";
}

export function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parseObject(text: string): Fields {
  try {
    return object(JSON.parse(text));
  } catch (cause) {
    throw new TransportError("unreadable", { cause });
  }
}

function object(value: unknown): Fields {
  if (!isObject(value)) throw new TransportError("unreadable");
  return value;
}

function string(value: unknown): string {
  if (typeof value !== "string") throw new TransportError("unreadable");
  return value;
}

function state(value: unknown): ConversationState {
  // Opaque to a client: it goes back as it came.
  return object(value) as unknown as ConversationState;
}

function toolResult(data: Fields) {
  const status = data.status === "failed" ? "failed" : "completed";
  const duration = data.duration_ms;
  return {
    id: string(data.id),
    tool: string(data.tool),
    output: string(data.output),
    status,
    duration_ms: typeof duration === "number" ? duration : 0,
  } as const;
}

function finishReason(value: unknown): FinishReason {
  const known = /^(length|content_filter|max_turns|stopped)$/.test(String(value));
  return known ? (value as FinishReason) : "stop";
}
