/** One request to an agent behind HTTP: sent once, and read as Server-Sent Events. */

import type { Readable } from "node:stream";
import { isRecord, tryParse } from "../protocol/json.ts";
import { UpstreamGarbage, UpstreamTruncation } from "../providers/failures.ts";
import { EVENT_STREAM, requestStream } from "../providers/transport/fetch.ts";
import { sseDecoder } from "../providers/transport/request.ts";
import { MAX_STREAM_BYTES } from "../providers/transport/upstream-response.ts";

/** How long a stream may take to end after the last event: then the agent is done and its connection can be reused. */
const LINGER_MS = 1000;

/**
 * Yields the JSON objects of events, `{ type: "[DONE]" }` for several servers' end mark, and `undefined` for a packet without
 * events: the agent is alive. Refuses redirects, so that headers reach only this address. Abort the signal to stop early.
 */
export async function* postForEvents(
  url: string,
  body: object,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): AsyncGenerator<Record<string, unknown> | undefined> {
  // The request has a signal of its own, because `signal` is also aborted when the run is over.
  const request = new AbortController();
  const abort = () => request.abort(signal.reason);
  signal.addEventListener("abort", abort);
  if (signal.aborted) abort();
  const sent = {
    method: "POST",
    headers: { ...headers, "content-type": "application/json", accept: EVENT_STREAM },
    body: JSON.stringify(body),
    signal: request.signal,
  };
  let stream: Readable | undefined;
  try {
    ({ stream } = await requestStream(url, sent, EVENT_STREAM));
    yield* eventsOf(stream.iterator({ destroyOnReturn: false }));
  } finally {
    signal.removeEventListener("abort", abort);
    if (stream !== undefined) linger(stream);
  }
}

function linger(stream: Readable): void {
  if (stream.closed) return;
  const timer = setTimeout(() => stream.destroy(), LINGER_MS).unref();
  stream.once("close", () => clearTimeout(timer)).resume();
}

async function* eventsOf(stream: AsyncIterable<Buffer>): AsyncGenerator<Record<string, unknown> | undefined> {
  const decode = sseDecoder();
  let bytes = 0;
  for await (const packet of untilBroken(stream)) {
    bytes += packet.byteLength;
    if (bytes > MAX_STREAM_BYTES) throw new UpstreamGarbage(`the stream is longer than ${MAX_STREAM_BYTES} bytes`);
    const events = decode(packet);
    if (events.length === 0) yield undefined;
    for (const { event: name, data } of events) {
      const event = data.trim() === "[DONE]" ? { type: "[DONE]" } : tryParse(data);
      // Some servers name the type only in the `event` field, not in the data.
      if (isRecord(event)) yield "type" in event || name === "message" ? event : { type: name, ...event };
      else if (data.trim() !== "") throw new UpstreamGarbage("an event is not a JSON object");
    }
  }
}

async function* untilBroken(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* stream;
  } catch (cause) {
    throw new UpstreamTruncation("its connection ended with an error", { cause });
  }
}
