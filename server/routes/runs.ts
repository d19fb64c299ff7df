/** Runs by their id: to read on after a lost connection, and to end them from elsewhere. */

import type { IncomingMessage } from "node:http";
import type { Caller } from "../auth/access.ts";
import type { RequestContext } from "../http/request.ts";
import { sendJson } from "../http/respond.ts";
import type { CancelResponse } from "../protocol/chat.ts";
import { invalidRequest } from "../protocol/errors.ts";
import { streamRun } from "./chat.ts";
import { visitOf } from "./identity.ts";
import type { Service } from "./service.ts";

/** `GET /api/chat/runs/{id}`: the events after `Last-Event-ID`, as Server-Sent Events. */
export const resumeRun =
  (service: Service) =>
  async (context: RequestContext, caller: Caller): Promise<void> => {
    const { req, res, params, method } = context;
    const visitor = await admitted(service, context, caller);
    const run = await service.runs.find(visitor, params.id ?? "");
    const reader = await run.read(lastEventId(req));
    if (method === "HEAD") {
      reader.close();
      res.setHeader("x-run-id", run.id);
      res.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" }).end();
    } else if (reader.isAtEnd) {
      reader.close();
      // This status keeps an EventSource from coming back (WHATWG HTML, 9.2.2).
      res.writeHead(204, { "cache-control": "no-store" }).end();
    } else {
      await streamRun(service, context, { run, reader });
    }
  };

/** @throws ApiError `invalid_request` */
function lastEventId({ headers }: IncomingMessage): number {
  const value = headers["last-event-id"];
  if (value === undefined || value === "") return 0;
  if (typeof value === "string" && /^\d{1,15}$/.test(value)) return Number(value);
  throw invalidRequest("", "Last-Event-ID must be the id of an event, or 0.");
}

/** `POST /api/chat/runs/{id}/cancel`: ends the run with `done`, `finish_reason: "stopped"`. */
export const cancelRun =
  (service: Service) =>
  async (context: RequestContext, caller: Caller): Promise<void> => {
    const visitor = await admitted(service, context, caller);
    const isCancelled = await service.runs.cancel(visitor, context.params.id ?? "");
    const body: CancelResponse = { status: isCancelled ? "cancelled" : "finished" };
    sendJson(context.res, 200, body);
  };

function admitted({ runtime, identity }: Service, context: RequestContext, caller: Caller): Promise<Caller> {
  return runtime.use((served) => identity.admitReader(served, caller, visitOf(context)));
}
