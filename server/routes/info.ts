/** What the server says about itself. */

import { requiresKey } from "../config/settings.ts";
import type { RequestContext } from "../http/request.ts";
import { sendJson } from "../http/respond.ts";
import { MAX_ATTACHMENT_BYTES } from "../protocol/attachments.ts";
import type { AgentInfo } from "../protocol/chat.ts";
import { ApiError } from "../protocol/errors.ts";
import type { Service } from "./service.ts";

/** `GET /api/info`: what a user interface needs to know before the first message. */
export const info =
  ({ runtime, settings }: Service) =>
  ({ res }: RequestContext): void => {
    const { agent, provider } = runtime.current;
    const { welcome, disclaimer } = agent;
    const body: AgentInfo = {
      name: agent.name,
      agent: agent.agent,
      auth_required: requiresKey(settings),
      ...(welcome === undefined ? {} : { welcome }),
      suggestions: [...agent.suggestions],
      ...(disclaimer === undefined ? {} : { disclaimer }),
      ...(provider.models === undefined ? {} : { models: [...provider.models] }),
      attachments: {
        media_types: [...provider.mediaTypes],
        max_bytes: MAX_ATTACHMENT_BYTES,
        max_count: settings.maxAttachments,
      },
      max_body_bytes: settings.maxBodyBytes,
    };
    sendJson(res, 200, body);
  };

/** `GET /health`: the process serves. It stays 200 while the server drains, or an orchestrator would kill it early. */
export function health({ res }: RequestContext): void {
  sendJson(res, 200, { status: "ok" });
}

/** `GET /health/ready`: whether the server takes new messages. */
export const ready =
  ({ runs }: Service) =>
  ({ res }: RequestContext): void => {
    runs.refuseWhenDraining();
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
