/** Which web sites may use the server: one policy for CORS, the socket's check and `frame-ancestors`. */

import { SetupError } from "./providers/failures/provider-error.ts";

/**
 * `any`: every site. `listed`: these origins and our own. `loopback`: only pages of this machine, so that
 * no web site which somebody visits can drive the agent that runs without a key on his machine.
 */
export type OriginPolicy =
  | { kind: "any" }
  | { kind: "listed"; origins: ReadonlySet<string>; ownMustBeLoopback: boolean }
  | { kind: "loopback" };

/** @throws SetupError when an entry is no origin. */
export function parseOrigins(entries: readonly string[], openByDefault: boolean): OriginPolicy {
  if (entries.length === 0) return openByDefault ? { kind: "any" } : { kind: "loopback" };
  if (entries.includes("*")) return { kind: "any" };
  return {
    kind: "listed",
    origins: new Set(entries.map(parseOrigin)),
    ownMustBeLoopback: !openByDefault,
  };
}

function parseOrigin(entry: string): string {
  const url = URL.canParse(entry) ? new URL(entry) : undefined;
  const isOrigin = url !== undefined && /^https?:$/.test(url.protocol) && url.pathname === "/";
  if (isOrigin && url.search === "" && url.hash === "" && url.username === "") return url.origin;
  throw new SetupError(`PARLEY_ALLOWED_ORIGINS must list origins such as https://www.example.com, but has "${entry}".`);
}

/** "own": the page that this server serves; "allowed": another site that may use it. */
export type OriginVerdict = "none" | "own" | "allowed" | "refused";

/** Judges the `Origin` header; `host` is the request's `Host`. */
export function judgeOrigin(policy: OriginPolicy, origin: string | undefined, host: string | undefined): OriginVerdict {
  if (origin === undefined) return "none";
  if (isOwnOrigin(policy, origin, host)) return "own";
  switch (policy.kind) {
    case "any":
      return "allowed";
    case "listed":
      return policy.origins.has(normalized(origin)) ? "allowed" : "refused";
    case "loopback":
      return isLoopbackOrigin(origin) ? "allowed" : "refused";
  }
}

/**
 * The scheme is not compared: behind a proxy that ends TLS we cannot know it. Without a key on a loopback
 * address, `Host` is not trusted either: a site can make its name resolve to 127.0.0.1 (DNS rebinding).
 */
function isOwnOrigin(policy: OriginPolicy, origin: string, host: string | undefined): boolean {
  if (host === undefined || !URL.canParse(origin)) return false;
  const url = new URL(origin);
  const own = `${url.protocol}//${host}`;
  if (!URL.canParse(own) || new URL(own).host !== url.host) return false;
  const mustBeLoopback = policy.kind === "loopback" || (policy.kind === "listed" && policy.ownMustBeLoopback);
  return !mustBeLoopback || isLoopbackHost(url.hostname);
}

function isLoopbackOrigin(origin: string): boolean {
  return URL.canParse(origin) && isLoopbackHost(new URL(origin).hostname);
}

/** RFC 6761, 6.3 and RFC 1122, 3.2.1.3: names and addresses that never leave the machine. */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[|\]$/g, "");
  return /^(?:.+\.)?localhost$|^127(?:\.\d{1,3}){3}$|^::1$/.test(name);
}

function normalized(origin: string): string {
  return URL.canParse(origin) ? new URL(origin).origin : origin;
}

/** Sources for the CSP directive `frame-ancestors`: the sites that may show `/?embed=1` in a frame. */
export function frameAncestors(policy: OriginPolicy): string {
  switch (policy.kind) {
    case "any":
      return "*";
    case "listed":
      return ["'self'", ...policy.origins].join(" ");
    case "loopback":
      return "'self' http://localhost:* http://127.0.0.1:* https://localhost:* https://127.0.0.1:*";
  }
}
