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

/**
 * The JSON object that an event carries, which is to be read before the next one is asked for; `undefined` for `[DONE]`.
 * Throws `ProviderError` for an error object, which both APIs may send in the middle of a stream, and for what is no JSON
 * object.
 */
export function readMessage(
  { event, data }: SseMessage,
  { label, explain, parser }: MessageSource,
): Record<string, unknown> | undefined {
  if (data === "[DONE]") return undefined;
  const json = parse(data, label, parser);
  if (!isError(event, json)) return json;
  const failure = new UpstreamFailure(json);
  throw explain?.(failure) ?? toProviderError(label, failure);
}

/** The failure that an event reports, as `readMessage` would throw it; `undefined` when it reports none. */
export function reportedFailure({ event, data }: SseMessage, label: string): unknown {
  if (data === "[DONE]") return undefined;
  try {
    const json = parse(data, label, JSON);
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

function parse(
  data: string,
  label: string,
  parser: Pick<RepeatedJson, "parse">,
): Record<string, unknown> {
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
