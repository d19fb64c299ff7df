/** Which sites' pages may use the server: one rule for CORS, the socket and `frame-ancestors`. */

import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { originOf } from "../config/kinds.ts";
import { isLoopbackHost, type Settings, UNKNOWN_HOST } from "../config/settings.ts";
import { ApiError } from "../protocol/errors.ts";

/** The page that a request comes from. `none`: the request has no Origin. */
export type OriginVerdict = "none" | "own" | "allowed" | "refused";

export type OriginHeaders = Pick<IncomingHttpHeaders, "origin" | "host">;

const LOOPBACK_SOURCES = ["http://localhost:*", "http://127.0.0.1:*", "https://localhost:*", "https://127.0.0.1:*"];

/**
 * Without `allowedOrigins`, every site may use a server that has keys or listens publicly. A server without keys on a
 * loopback address accepts only pages of this machine, or any web site could use the agent of its visitor. If it is not
 * known on which address the server listens, its own pages are those of this machine and those that come over https: a
 * site can make its name resolve to 127.0.0.1, but has no certificate there.
 */
export class Origins {
  readonly #settings: Settings;
  /** Whether the server may be reachable only from its own machine. Its host never changes. */
  readonly #mayBeLocal: boolean;

  constructor(settings: Settings) {
    this.#settings = settings;
    this.#mayBeLocal = settings.host === UNKNOWN_HOST || isLoopbackHost(settings.host);
  }

  judge(headers: OriginHeaders): OriginVerdict {
    const { origin } = headers;
    if (origin === undefined) return "none";
    if (this.areAllAllowed) return isOwnOrigin(headers) ? "own" : "allowed";
    const isLoopbackPage = URL.canParse(origin) && isLoopbackHost(new URL(origin).hostname);
    if (isOwnOrigin(headers) && (this.#isHostTrusted || isLoopbackPage || this.#isCertified(origin))) return "own";
    const { allowedOrigins } = this.#settings;
    const isAllowed = allowedOrigins.length === 0 ? isLoopbackPage : allowedOrigins.includes(originOf(origin) ?? "");
    return isAllowed ? "allowed" : "refused";
  }

  /** Whether pages of every site may use the server. */
  get areAllAllowed(): boolean {
    const { allowedOrigins } = this.#settings;
    return allowedOrigins.length === 0 ? this.#isOpenByDefault : allowedOrigins.includes("*");
  }

  /**
   * Whether cookies and other things that a browser adds by itself may identify the user: a page of another site must not act
   * as its visitor. If the server is reached over TLS, neither may a page over http, which could be forged. `*` names no site.
   */
  isTrusted(req: IncomingMessage): boolean {
    const { origin, "sec-fetch-site": site } = req.headers;
    const isOwnSite = site === undefined || site === "none" || site === "same-origin";
    // A page sends no Origin with a GET to its own server, and a program never sends one.
    if (origin === undefined) return isOwnSite;
    if (this.#settings.allowedOrigins.includes(originOf(origin) ?? "")) return true;
    return this.judge(req.headers) === "own" && isOwnSite && !(/^http:/i.test(origin) && isOverTls(req));
  }

  /** The sites that the operator has named. */
  get named(): readonly string[] {
    return this.#settings.allowedOrigins.filter((origin) => origin !== "*");
  }

  /**
   * The sites that may show the chat in a frame, for the directive `frame-ancestors`, whose `*` covers only http and
   * https. If visitors may be signed in, these are only named sites: others could trick them into a click.
   */
  frameAncestors(hasUsers: boolean): string {
    const { allowedOrigins } = this.#settings;
    if (hasUsers) return ["'self'", ...this.named].join(" ");
    if (this.areAllAllowed) return allowedOrigins.join(" ") || "*";
    return ["'self'", ...(allowedOrigins.length === 0 ? LOOPBACK_SOURCES : allowedOrigins)].join(" ");
  }

  /**
   * Refuses what a page of another site may have sent to a server that only its own machine should reach: the site
   * makes its name resolve to 127.0.0.1 (DNS rebinding), and its page sends no `Origin` with a GET. Names in
   * `allowedOrigins` are trusted. A host's server is not checked, since it may be public. @throws ApiError
   */
  refuseRebound(headers: OriginHeaders): void {
    const { host } = headers;
    const { allowedOrigins, host: listensOn } = this.#settings;
    if (this.#isHostTrusted || this.areAllAllowed || listensOn === UNKNOWN_HOST || host === undefined) return;
    const name = URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : "";
    const isOwnName = isLoopbackHost(name) || allowedOrigins.some((origin) => new URL(origin).hostname === name);
    if (!isOwnName && this.judge(headers) !== "allowed") throw hostRefused();
  }

  /** Whether `Host` is trusted: otherwise a site whose name resolves to 127.0.0.1 would count as the server's own. */
  get #isHostTrusted(): boolean {
    return this.#isOpenByDefault || this.#settings.trustedProxies.rules.length > 0;
  }

  #isCertified(origin: string): boolean {
    return this.#settings.host === UNKNOWN_HOST && /^https:/i.test(origin);
  }

  get #isOpenByDefault(): boolean {
    return this.#settings.requiresKey || !this.#mayBeLocal;
  }
}

/** Any of these headers counts, since it only restricts access: a page of another site cannot set them. */
function isOverTls({ socket, headers }: IncomingMessage): boolean {
  const { "x-forwarded-proto": proto = "", forwarded = "" } = headers;
  return "encrypted" in socket || /^ *https/i.test(String(proto)) || /\bproto="?https/i.test(forwarded);
}

/** http and https count as the same: a proxy may terminate TLS without saying so. A proxy has to forward `Host`. */
function isOwnOrigin({ origin, host }: OriginHeaders): boolean {
  if (origin === undefined || host === undefined || !/^https?:/i.test(origin) || !URL.canParse(origin)) return false;
  const page = new URL(origin);
  const own = `${page.protocol}//${host}`;
  return URL.canParse(own) && new URL(own).host === page.host;
}

function hostRefused(): ApiError {
  return new ApiError(
    "forbidden",
    "Without a key, this address answers only as localhost or 127.0.0.1. To use it by another name, set PARLEY_API_KEY or another key, name your proxy in PARLEY_TRUSTED_PROXIES, or name the site in PARLEY_ALLOWED_ORIGINS.",
    { detail: "the Host is not of this machine" },
  );
}

/** Names the setting that would allow the site. */
export function originRefused(origin = "null"): ApiError {
  const sentence =
    originOf(origin) === undefined
      ? "Pages from a file or a sandbox may not use this server. Serve the page from a web server, and allow that with PARLEY_ALLOWED_ORIGINS."
      : `Pages of ${origin} may not use this server. Its operator can allow them with PARLEY_ALLOWED_ORIGINS.`;
  return new ApiError("forbidden", sentence, { detail: "the page's origin is not allowed" });
}
