import { isRecord } from "../../protocol/is-record.ts";
import type { SseMessage } from "../../protocol/sse.ts";
import { toProviderError, UpstreamGarbage } from "../failures/failures.ts";
import type { ExplainFailure } from "../failures/provider-error.ts";
import { UpstreamFailure } from "./refusal.ts";

/**
 * The JSON object that an event carries; `undefined` for `[DONE]`. Throws `ProviderError` for an error
 * object, which both APIs may send in the middle of a stream, and for what is no JSON object.
 */
export function readMessage(
  { event, data }: SseMessage,
  label: string,
  explain?: ExplainFailure,
): Record<string, unknown> | undefined {
  if (data === "[DONE]") return undefined;
  const json = parse(data, label);
  if (!isError(event, json)) return json;
  const failure = new UpstreamFailure(json);
  throw explain?.(failure) ?? toProviderError(label, failure);
}

/** The failure that an event reports, as `readMessage` would throw it; `undefined` when it reports none. */
export function reportedFailure({ event, data }: SseMessage, label: string): unknown {
  if (data === "[DONE]") return undefined;
  try {
    const json = parse(data, label);
    return isError(event, json) ? new UpstreamFailure(json) : undefined;
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

function parse(data: string, label: string): Record<string, unknown> {
  let json: unknown;
  try {
    json = JSON.parse(data);
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
