/** `GET /openapi.json`: the HTTP interface of this server and its agent, as OpenAPI 3.1. */

import { UNKNOWN_HOST } from "../config/settings.ts";
import type { RequestContext } from "../http/request.ts";
import { sendJson } from "../http/respond.ts";
import { ApiError } from "../protocol/errors.ts";
import { openApi } from "../protocol/openapi.ts";
import type { Service } from "./service.ts";

export const describeApi =
  ({ runtime, settings, origins, version }: Service) =>
  ({ req, res }: RequestContext): void => {
    if (!settings.docs) throw new ApiError("not_found", "This document is switched off (PARLEY_DOCS).");
    origins.refuseRebound(req.headers);
    const { agent, accepts, authenticate } = runtime.current;
    const document = openApi({
      title: agent.agent,
      version: version(),
      basePath: settings.basePath,
      requiresKey: settings.requiresKey,
      hasUsers: authenticate !== undefined,
      open: {
        openai: settings.openaiApi,
        mcp: settings.mcp,
        feedback: agent.hooks.onFeedback !== undefined,
        metrics: settings.metrics && settings.host !== UNKNOWN_HOST,
      },
      limits: {
        bodyBytes: settings.maxBodyBytes,
        messageChars: settings.maxMessageChars,
        attachments: accepts.length === 0 ? 0 : settings.maxAttachments,
        fileTypes: accepts,
      },
    });
    sendJson(res, 200, document);
  };
