import type { Exchange } from "../http/exchange.ts";
import { sendJson } from "../http/respond.ts";
import { MAX_ATTACHMENT_BYTES } from "../protocol/attachments.ts";
import type { AgentInfo } from "../protocol/chat.ts";
import type { Service } from "./service.ts";

/** `GET /api/info`: what a chat user interface needs before the first message. */
export function info(service: Service): (exchange: Exchange) => void {
  const { agent, provider } = service.runner;
  const body = (): AgentInfo => ({
    name: agent.name,
    agent: agent.agent,
    auth_required: service.authRequired(),
    ...(agent.welcome === undefined ? {} : { welcome: agent.welcome }),
    suggestions: [...agent.suggestions],
    ...(agent.disclaimer === undefined ? {} : { disclaimer: agent.disclaimer }),
    ...(provider.models === undefined ? {} : { models: [...provider.models] }),
    attachments: {
      media_types: [...provider.mediaTypes],
      max_bytes: MAX_ATTACHMENT_BYTES,
      max_count: service.rules().attachments.maxCount,
    },
    max_body_bytes: service.bodies.limit,
  });
  return ({ res }) => sendJson(res, 200, body());
}
