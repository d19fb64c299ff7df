import { isRecord } from "../../protocol/is-record.ts";
import type { SseMessage } from "../../protocol/sse.ts";
import { toProviderError, UpstreamGarbage } from "../failures/failures.ts";
import type { ExplainFailure } from "../failures/provider-error.ts";
import { UpstreamFailure } from "./refusal.ts";
import type { RepeatedJson } from "./repeated-json.ts";

/** Where messages come from. */
export interface MessageSource {
  readonly label: string;
  readonly explain?: ExplainFailure | undefined;
  /** Of one stream alone. */
  readonly parser: RepeatedJson;
}

/** An event of a stream. */
interface UpstreamMessage extends SseMessage {
  /** What it carries, from `reportedFailure` until it is read. */
  json?: Record<string, unknown> | undefined;
}

/**
 * The JSON object that an event carries, which is to be read before the next one is asked for; `undefined` for `[DONE]`.
 * Throws `ProviderError` for an error object, which both APIs may send in the middle of a stream, and for what is no JSON
 * object.
 */
export function readMessage(
  message: UpstreamMessage,
  { label, explain, parser }: MessageSource,
): Record<string, unknown> | undefined {
  const { event, data } = message;
  if (data === "[DONE]") return undefined;
  const json = message.json ?? parse(data, label, parser);
  // The message is kept for longer than what it carries.
  message.json = undefined;
  if (!isError(event, json)) return json;
  const failure = new UpstreamFailure(json);
  throw explain?.(failure) ?? toProviderError(label, failure);
}

/**
 * The failure that an event reports, as `readMessage` would throw it; `undefined` when it reports none. What it carries is
 * kept with it for `readMessage`, so that it is parsed once.
 */
export function reportedFailure(message: UpstreamMessage, label: string): unknown {
  if (message.data === "[DONE]") return undefined;
  try {
    message.json = parse(message.data, label, JSON);
    return isError(message.event, message.json) ? new UpstreamFailure(message.json) : undefined;
  } catch (error) {
    return error;
  }
}

function isError(event: string, json: Record<string, unknown>): boolean {
  return (
    (json.error !== undefined && json.error !== null) ||
    event === "error" ||
    json.type === "error" ||
    json.object === "error"
  );
}

function parse(data: string, label: string, parser: Pick<RepeatedJson, "parse">): Record<string, unknown> {
  let json: unknown;
  try {
    json = parser.parse(data);
  } catch (cause) {
    throw toProviderError(label, new UpstreamGarbage("an event is not JSON", { cause }));
  }
  // Google wraps its errors in a list.
  const event: unknown = Array.isArray(json) && json.length === 1 ? json[0] : json;
  if (!isRecord(event)) {
    throw toProviderError(label, new UpstreamGarbage("an event is not a JSON object"));
  }
  return event;
}
