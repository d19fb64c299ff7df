/** Runs by their id: to read on after a lost line, and to end them from elsewhere. */

import type { ServerResponse } from "node:http";
import { EventStream } from "../http/event-stream.ts";
import { type Exchange, header } from "../http/exchange.ts";
import { sendJson } from "../http/respond.ts";
import type { CancelResponse } from "../protocol/chat.ts";
import type { RunAccess } from "../runs/run-access.ts";
import { parseLastEventId } from "./parse-run.ts";
import { streamRun } from "./send-run.ts";
import type { Service } from "./service.ts";

/** `GET /api/chat/runs/{id}`: the events after `Last-Event-ID`, as Server-Sent Events. */
export const runEvents =
  (service: Service) =>
  async ({ req, res, caller, params }: Exchange): Promise<void> => {
    const run = await service.runs.find(caller, params.id ?? "");
    const after = parseLastEventId(header(req, "last-event-id"));
    if (req.method === "HEAD") {
      openOnly(res, run, service);
      return;
    }
    if (run.hasEndedWith(after)) {
      // WHATWG HTML, 9.2.2: what tells an EventSource not to come back.
      res.writeHead(204, { "cache-control": "no-store" }).end();
      return;
    }
    await streamRun(res, run, after, service);
  };

function openOnly(res: ServerResponse, run: RunAccess, service: Service): void {
  const stream = new EventStream(res, service, () => {});
  stream.open({ "x-run-id": run.id });
  stream.end();
}

/** `POST /api/chat/runs/{id}/cancel`: ends the run with `done`, `finish_reason: "stopped"`. */
export const cancelRun =
  (service: Service) =>
  async ({ res, caller, params }: Exchange): Promise<void> => {
    const cancelled = await service.runs.cancel(caller, params.id ?? "");
    const body: CancelResponse = { status: cancelled ? "cancelled" : "finished" };
    sendJson(res, 200, body);
  };
