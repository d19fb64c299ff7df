/** Where a server is, and what it says of its agent. */

import type { AgentInfo } from "../../server/protocol/chat.ts";
import { isRecord } from "../../server/protocol/json.ts";
import { userHeader } from "../transport/fetch.ts";

const ANSWER_WITHIN_MS = 10_000;

/**
 * Reads the `server` attribute; `undefined` if the text is no address. The result ends with a slash, so that paths can
 * be resolved against it.
 */
export function parseServer(text: string, base: string): URL | undefined {
  const url = URL.canParse(text, base) ? new URL(text, base) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) return undefined;
  url.search = "";
  url.hash = "";
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return url;
}

/** Something answers, but it is no Parley server. The message is what `GET /api/info` gave: 0 for a redirect. */
export class NotParleyError extends Error {}

/** `GET /api/info`. Rejects when the server cannot be reached or does not answer like one of ours, and when the signal aborts. */
export async function fetchAgentInfo(server: URL, signal: AbortSignal, userToken?: string): Promise<AgentInfo> {
  const response = await fetch(new URL("api/info", server), {
    headers: userHeader(userToken),
    // The token is for this server.
    redirect: "manual",
    signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_WITHIN_MS)]),
  });
  const { ok, status, headers } = response;
  // A proxy may answer for a server that is down.
  if (status >= 500) throw new Error(`GET /api/info gave ${status}`);
  const text = await response.text();
  if (!ok) throw new NotParleyError(`${status}`);
  try {
    return parseAgentInfo(JSON.parse(text));
  } catch {
    throw new NotParleyError(`${headers.get("content-type")}`);
  }
}

/** Fields that are there only with a value of this type, or this value. What `chat` holds is checked where it is used. */
const OPTIONAL: Readonly<Record<string, unknown>> = {
  ...{ welcome: "string", disclaimer: "string", user: "string", user_name: "string", chat: "object" },
  ...{ login_required: true, user_pending: true, feedback: true, continue: true },
};

/** Only the specification's three fields are required: the others are our server's additions. */
export function parseAgentInfo(value: unknown): AgentInfo {
  const info = isRecord(value) ? value : {};
  const { name, agent, auth_required, suggestions, attachments } = info;
  if (typeof name !== "string" || typeof agent !== "string") {
    throw new TypeError("/api/info has no name or agent");
  }
  const limits = isRecord(attachments) ? attachments : {};
  return {
    ...Object.fromEntries(
      Object.entries(info).filter(([it, is]) => it in OPTIONAL && [is, typeof is].includes(OPTIONAL[it])),
    ),
    name,
    agent,
    auth_required: auth_required === true,
    suggestions: stringsOf(suggestions),
    attachments: {
      // Read where there is a text file, if the server takes any.
      ...(limits as Pick<AgentInfo["attachments"], "max_text_bytes">),
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
