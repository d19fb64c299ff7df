/** Routes that tell about the server itself. */

import type { RequestContext } from "../http/request.ts";
import { sendJson } from "../http/respond.ts";
import { ApiError } from "../protocol/errors.ts";
import type { Service } from "./service.ts";
import { visitOf } from "./start-message.ts";

/** `GET /api/info` */
export const info =
  (service: Service) =>
  async (context: RequestContext): Promise<void> => {
    const { runtime, identity, access, origins } = service;
    origins.refuseRebound(context.req.headers);
    const { address } = access.credentials(context.req, context.query, "message");
    const visitor = await runtime.use(async ({ authenticate, agent }) => {
      if (authenticate === undefined) return {};
      return (await identity()).describe(authenticate, agent.id, address, visitOf(context));
    });
    if (!context.res.destroyed) sendJson(context.res, 200, { ...runtime.current.info, ...visitor });
  };

/** `GET /health`: the process serves. It stays 200 while the server drains, or an orchestrator would kill it early. */
export function health({ res }: RequestContext): void {
  sendJson(res, 200, { status: "ok" });
}

/** `GET /health/ready`: whether the server accepts new messages. */
export const ready =
  ({ runs, runtime }: Service) =>
  ({ res }: RequestContext): void => {
    runs.refuseWhenDraining();
    runtime.current.refuseUnready();
    sendJson(res, 200, { status: "ready" });
  };

/** `GET /metrics`: for Prometheus. */
export const metrics =
  ({ metricsPage }: Service) =>
  async ({ res }: RequestContext): Promise<void> => {
    if (metricsPage === undefined) throw new ApiError("not_found", "Metrics are switched off (PARLEY_METRICS).");
    const body = Buffer.from(await metricsPage());
    res.writeHead(200, {
      "content-type": "text/plain; version=0.0.4; charset=utf-8",
      "content-length": body.length,
      "cache-control": "no-store",
    });
    res.end(body);
  };
