/** One request to an agent behind HTTP: sent once, and read as Server-Sent Events. */

import { StringDecoder } from "node:string_decoder";
import { isRecord, tryParse } from "../protocol/json.ts";
import { SseDecoder } from "../protocol/sse.ts";
import { UpstreamGarbage, UpstreamTruncation } from "../providers/failures.ts";
import { EVENT_STREAM, requestStream } from "../providers/transport/fetch.ts";

/** A bound against an endless answer, as for models. */
const MAX_STREAM_BYTES = 64 * 1024 * 1024;

/** Yields the JSON objects of the events. A redirect is refused, so that headers go where they were meant to go. */
export async function* postForEvents(
  url: string,
  body: object,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): AsyncGenerator<Record<string, unknown>> {
  const sent = {
    method: "POST",
    headers: { ...headers, "content-type": "application/json", accept: EVENT_STREAM },
    body: JSON.stringify(body),
    signal,
  };
  const { stream } = await requestStream(url, sent, EVENT_STREAM);
  yield* eventsOf(stream as AsyncIterable<Buffer>);
}

async function* eventsOf(stream: AsyncIterable<Buffer>): AsyncGenerator<Record<string, unknown>> {
  const sse = new SseDecoder();
  const utf8 = new StringDecoder("utf8");
  let bytes = 0;
  for await (const packet of untilBroken(stream)) {
    bytes += packet.byteLength;
    if (bytes > MAX_STREAM_BYTES) throw new UpstreamGarbage(`the stream is longer than ${MAX_STREAM_BYTES} bytes`);
    for (const { data } of sse.feed(utf8.write(packet))) {
      const event = tryParse(data);
      if (isRecord(event)) yield event;
      else if (data.trim() !== "" && data !== "[DONE]") throw new UpstreamGarbage("an event is not a JSON object");
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
