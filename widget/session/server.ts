/** The address of a server, and its description of the agent. */

import type { AgentInfo } from "../../server/protocol/chat.ts";
import { isRecord } from "../../server/protocol/json.ts";
import { userHeader } from "../transport/fetch.ts";

const ANSWER_WITHIN_MS = 10_000;

/**
 * Parses the `server` attribute; `undefined` if the text is no HTTP address. The result ends with a slash, so that
 * paths can be resolved against it.
 */
export function parseServer(text: string, base: string): URL | undefined {
  const url = URL.canParse(text, base) ? new URL(text, base) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) return undefined;
  url.search = "";
  url.hash = "";
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return url;
}

/** A server has responded, but not a Parley server. The message is what `GET /api/info` gave: 0 for a redirect. */
export class NotParleyError extends Error {}

/** `GET /api/info`. Rejects when the server cannot be reached, is no Parley server, or the signal aborts. */
export async function fetchAgentInfo(server: URL, signal: AbortSignal, userToken?: string): Promise<AgentInfo> {
  const response = await fetch(new URL("api/info", server), {
    headers: userHeader(userToken),
    // The token must not go to another server.
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

/** Optional fields, kept only with a value of this type, or this value. The content of `chat` is checked where it is used. */
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
      // Used only for text files, if the server accepts any.
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
