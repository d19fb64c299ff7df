import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { StreamEvent } from "../protocol/events.ts";
import { encodeEvent, KEEP_ALIVE_FRAME } from "../protocol/sse.ts";

/**
 * Sends events as Server-Sent Events until they end or the client is gone. The next event is pulled only
 * when the socket took the last one, so a client that does not read holds the model back, not our memory.
 */
export async function sendEventStream(
  res: ServerResponse,
  events: AsyncIterable<StreamEvent>,
  keepAliveMs: number,
): Promise<void> {
  res.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    // Asks nginx and its kind not to hold tokens back.
    "x-accel-buffering": "no",
  });
  res.flushHeaders();
  const keepAlive = setInterval(() => {
    if (!res.writableNeedDrain) res.write(KEEP_ALIVE_FRAME);
  }, keepAliveMs);
  try {
    for await (const event of events) {
      if (res.destroyed) return;
      keepAlive.refresh();
      if (!res.write(encodeEvent(event))) await drained(res);
    }
  } finally {
    clearInterval(keepAlive);
    res.end();
  }
}

/** After `close` no `drain` ever comes, so both are awaited. */
async function drained(res: ServerResponse): Promise<void> {
  if (res.destroyed || !res.writableNeedDrain) return;
  const settled = new AbortController();
  const { signal } = settled;
  try {
    await Promise.race([once(res, "drain", { signal }), once(res, "close", { signal })]);
  } finally {
    settled.abort();
  }
}
