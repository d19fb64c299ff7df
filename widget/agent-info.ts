/** `GET /api/info`: who the agent is and what it takes. */

import type { AgentInfo } from "../server/protocol/chat.ts";
import { isObject } from "./transport/parse-event.ts";

const ANSWER_WITHIN_MS = 10_000;

/** Asks the server. Rejects when it cannot be reached or does not answer like one of ours. */
export async function fetchAgentInfo(server: URL): Promise<AgentInfo> {
  const response = await fetch(new URL("api/info", server), {
    credentials: "omit",
    signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
  });
  if (!response.ok) throw new Error(`GET /api/info answered ${response.status}`);
  return parseAgentInfo(await response.json());
}

/** Whether it can be reached, and answers like one of ours. */
export function answers(server: URL): Promise<boolean> {
  return fetchAgentInfo(server).then(
    () => true,
    () => false,
  );
}

/** Only the specification's three fields are required: the others are our server's additions. */
export function parseAgentInfo(value: unknown): AgentInfo {
  const info = isObject(value) ? value : {};
  const { name, agent, auth_required, welcome, suggestions, disclaimer, attachments } = info;
  if (typeof name !== "string" || typeof agent !== "string") {
    throw new TypeError("/api/info has no name or agent");
  }
  const limits = isObject(attachments) ? attachments : {};
  return {
    name,
    agent,
    auth_required: auth_required === true,
    ...(typeof welcome === "string" ? { welcome } : {}),
    suggestions: stringsOf(suggestions),
    ...(typeof disclaimer === "string" ? { disclaimer } : {}),
    attachments: {
      media_types: stringsOf(limits.media_types),
      max_bytes: numberOf(limits.max_bytes) ?? 0,
      max_count: numberOf(limits.max_count) ?? 0,
    },
    max_body_bytes: numberOf(info.max_body_bytes) ?? Infinity,
  };
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function stringsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}
