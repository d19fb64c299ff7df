import { runAgent } from "../agent/run.ts";
import { RunAbort } from "../agent/run-abort.ts";
import { withBody } from "../http/body.ts";
import type { Caller } from "../http/caller.ts";
import { sendEventStream } from "../http/event-stream.ts";
import type { Exchange } from "../http/exchange.ts";
import { sendJson } from "../http/respond.ts";
import { ApiError } from "../protocol/api-error.ts";
import type { ChatResponse } from "../protocol/chat.ts";
import type { DoneEvent, ErrorEvent, StreamEvent } from "../protocol/events.ts";
import type { RunHandle, Service } from "./service.ts";

/** `POST /api/chat`: one message, answered as JSON or as Server-Sent Events. */
export const chat =
  (service: Service) =>
  async ({ req, res, caller }: Exchange): Promise<void> => {
    service.admission.message(caller);
    const gone = new AbortController();
    res.once("close", () => gone.abort(new RunAbort("gone")));
    const rules = { ...service.bodies, address: caller.address };
    const { stream, request } = await withBody(req, res, rules, (body) =>
      service.parser.body(body),
    );
    const leave = await service.admission.enter(caller, gone.signal);
    const run = begin(service, caller, leave);
    // The request's own "close" comes as soon as its body is read; only the response's tells who left.
    const abort = () => run.controller.abort(gone.signal.reason);
    if (gone.signal.aborted) abort();
    else gone.signal.addEventListener("abort", abort, { once: true });
    try {
      const events = runAgent(service.runner, request, run.controller.signal);
      if (stream) await sendEventStream(res, events, service.keepAliveMs);
      else await answerWhole(res, events);
    } finally {
      // Not before the last byte has left: a shutdown that waits for runs would cut the rest off.
      if (res.closed) run.end();
      else res.once("close", () => run.end());
    }
  };

function begin(service: Service, caller: Caller, leave: () => void): RunHandle {
  try {
    const run = service.begin(caller);
    return {
      controller: run.controller,
      end() {
        run.end();
        leave();
      },
    };
  } catch (error) {
    leave();
    throw error;
  }
}

async function answerWhole(
  res: Exchange["res"],
  events: AsyncIterable<StreamEvent>,
): Promise<void> {
  const last = await lastEvent(events);
  if (last === undefined || res.destroyed) return;
  if (last.type === "error") {
    throw new ApiError(last.code, last.data, { retryAfter: last.retry_after });
  }
  const { data, state, usage, finish_reason } = last;
  const body: ChatResponse = { response: data, state, done: true, finish_reason };
  if (usage !== undefined) body.usage = usage;
  sendJson(res, 200, body);
}

async function lastEvent(
  events: AsyncIterable<StreamEvent>,
): Promise<DoneEvent | ErrorEvent | undefined> {
  for await (const event of events) {
    if (event.type === "done" || event.type === "error") return event;
  }
  return undefined;
}
