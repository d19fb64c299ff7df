/** A run as an HTTP answer: streamed, or collected. */

import type { ServerResponse } from "node:http";
import { EventStream } from "../http/event-stream.ts";
import { sendJson } from "../http/respond.ts";
import { cutConnection, SendClock } from "../http/send-clock.ts";
import { ApiError } from "../protocol/api-error.ts";
import type { ChatResponse } from "../protocol/chat.ts";
import type { DoneEvent, ErrorEvent } from "../protocol/events.ts";
import type { EventSink, ReadingAccess, RunAccess } from "../runs/run-access.ts";
import type { Service } from "./service.ts";

/**
 * Streams what follows the event `after`. Resolves when the head is sent; the events follow as they come.
 * @throws ApiError when they are not there, or when the run may not begin.
 */
export async function streamRun(res: ServerResponse, run: RunAccess, after: number, service: Service): Promise<void> {
  const stream = new EventStream(res, service, () => reading.resume());
  const reading = read(res, run, after, stream);
  await run.admitted;
  if (res.destroyed) return;
  stream.open({ "x-run-id": run.id });
  reading.resume();
}

/** Answers with the end of the run as one JSON object. @throws ApiError when the run failed. */
export async function answerRun(res: ServerResponse, run: RunAccess, service: Service): Promise<void> {
  const last = await lastEvent(res, run);
  if (res.destroyed) return;
  if (last === undefined) throw new ApiError("run_expired", "This run was ended without an answer.");
  watchTheRest(res, service.sendMs);
  if (last.type === "error") {
    throw new ApiError(last.code, last.data, { retryAfter: last.retry_after });
  }
  const { data, state, usage, finish_reason, model } = last;
  const body: ChatResponse = { response: data, state, done: true, finish_reason };
  if (usage !== undefined) body.usage = usage;
  if (model !== undefined) body.model = model;
  sendJson(res, 200, body, { "x-run-id": run.id });
}

/** `undefined` when the run, or the client, was gone before its end. */
async function lastEvent(res: ServerResponse, run: RunAccess): Promise<DoneEvent | ErrorEvent | undefined> {
  let last: DoneEvent | ErrorEvent | undefined;
  const over = new Promise<void>((resolve) => {
    const reading = read(res, run, run.nearEnd, {
      write(events) {
        last = events.at(-1)?.last;
        return true;
      },
      end: resolve,
      cut: resolve,
    });
    res.once("close", resolve);
    reading.resume();
  });
  await run.admitted;
  await over;
  return last;
}

/**
 * Attaches a response. It counts as a reader until its last byte has left: a shutdown that waits for runs
 * would cut the rest off. The request's own "close" comes as soon as its body is read; only the response's
 * tells who left.
 */
function read(res: ServerResponse, run: RunAccess, after: number, sink: EventSink): ReadingAccess {
  const reading = run.attach(after, sink);
  if (res.destroyed) reading.detach();
  else res.once("close", () => reading.detach());
  return reading;
}

function watchTheRest(res: ServerResponse, sendMs: number): void {
  const clock = new SendClock(sendMs, () => cutConnection(res.socket));
  res.once("close", () => clock.stop());
  setImmediate(() => {
    if (!res.destroyed) clock.start(res.writableLength);
  });
}
