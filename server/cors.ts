/** Cross-Origin Resource Sharing, driven by the one origin policy. Never with credentials. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { originRefused, type Visitor } from "./access.ts";
import { judgeOrigin, type OriginPolicy } from "./origins.ts";

/** How long a browser may remember a preflight, in seconds: the most that Chromium keeps. */
const MAX_AGE_SECONDS = 7200;

/** Lets the pages of an allowed origin read the answer; a refused or absent origin gets nothing. */
export function corsHeaders(policy: OriginPolicy, { origin, host }: Visitor): Readonly<Record<string, string>> {
  if (policy.kind === "any") return FOR_ANY;
  if (origin === undefined || judgeOrigin(policy, origin, host) === "refused") return FOR_NOBODY;
  return { "access-control-allow-origin": origin, ...FOR_NOBODY, ...EXPOSED };
}

const EXPOSED = { "access-control-expose-headers": "x-request-id, x-run-id, retry-after" };

const FOR_ANY = { "access-control-allow-origin": "*", ...EXPOSED };

const FOR_NOBODY = { vary: "origin" };

export function isPreflight(req: IncomingMessage): boolean {
  return req.headers.origin !== undefined && req.headers["access-control-request-method"] !== undefined;
}

/** Answers `OPTIONS`. @throws ApiError `forbidden` for a preflight from an origin that is not allowed. */
export function sendPreflight(
  res: ServerResponse,
  policy: OriginPolicy,
  visitor: Visitor,
  methods: readonly string[],
  preflight: boolean,
): void {
  if (preflight && judgeOrigin(policy, visitor.origin, visitor.host) === "refused") {
    throw originRefused(visitor.origin);
  }
  res.writeHead(204, {
    "access-control-allow-methods": methods.join(", "),
    "access-control-allow-headers": "authorization, content-type, last-event-id, x-request-id",
    "access-control-max-age": String(MAX_AGE_SECONDS),
  });
  res.end();
}
