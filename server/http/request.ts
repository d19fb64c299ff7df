import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { TraceHeaders } from "../observe/run-observer.ts";
import { ApiError, errorBody } from "../protocol/errors.ts";

/** One request on its way through the server. */
export interface RequestContext {
  req: IncomingMessage;
  res: ServerResponse;
  /** `x-request-id` of the request, or a new one. */
  id: string;
  method: string;
  /** Below the base path, as received: nothing is decoded. Not for logs, since it may contain a run's id. */
  path: string;
  query: URLSearchParams;
  /** Where the bare base path redirects to. */
  redirect: string | undefined;
  /** Whether the path is one of `AT_ROOT`, outside the base path, where probes and Prometheus ask the process. */
  isAtRoot: boolean;
  /** The path as in the table of routes, for logs and metrics. */
  route: string;
  /** Segments of the path, by their names in the route's pattern. */
  params: Record<string, string>;
  /** Encodes an error in the format of the route's protocol. */
  errorBody(error: ApiError): object;
}

/** Logged in place of the route if none matched. */
const UNMATCHED = "unmatched";

export function createContext(req: IncomingMessage, res: ServerResponse, basePath = ""): RequestContext {
  const target = readTarget(req, basePath);
  return { req, res, id: requestId(req), method: req.method ?? "", ...target, route: UNMATCHED, params: {}, errorBody };
}

/** A request for a WebSocket. */
export interface UpgradeContext {
  id: string;
  trace: TraceHeaders;
  /** Takes as much memory as an idle socket: keep it only if it is needed later. */
  req: IncomingMessage;
}

export function traceHeaders({ headers }: IncomingMessage): TraceHeaders {
  const { traceparent, tracestate } = headers;
  if (typeof traceparent !== "string") return {};
  return typeof tracestate === "string" ? { traceparent, tracestate } : { traceparent };
}

/** Shared by all requests without a query, since queries are never modified. */
const NO_QUERY = new URLSearchParams();

/** Paths that are answered at the root even if there is a base path. */
const AT_ROOT = new Set(["/health", "/health/ready", "/metrics"]);

/** Strips the base path. Outside it, `path` is empty, which matches no route. */
export function readTarget(
  req: IncomingMessage & { originalUrl?: string },
  basePath: string,
): Pick<RequestContext, "path" | "query" | "redirect" | "isAtRoot"> {
  // Express removes a handler's mount path from `url`.
  const { path, query } = splitTarget(req.originalUrl ?? req.url ?? "/");
  const isAtRoot = basePath !== "" && AT_ROOT.has(path);
  if (basePath === "" || isAtRoot) return { path, query, redirect: undefined, isAtRoot };
  // Relative, because a proxy may serve the path below another one.
  const name = basePath.slice(basePath.lastIndexOf("/") + 1);
  const redirect = path === basePath ? `./${name}/${query.size === 0 ? "" : `?${query}`}` : undefined;
  const below = path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : "";
  // Metrics are served at the root only, so that a proxy that forwards only the base path does not expose them.
  return { path: below === "/metrics" ? "" : below, query, redirect, isAtRoot };
}

/** Accepts a whole URL, as sent to a proxy (RFC 9112, 3.2.2). Nothing is decoded or normalized. */
function splitTarget(target: string): { path: string; query: URLSearchParams } {
  const local = target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/?]*/i, "");
  const mark = local.indexOf("?");
  if (mark < 0) return { path: local || "/", query: NO_QUERY };
  return { path: local.slice(0, mark) || "/", query: new URLSearchParams(local.slice(mark + 1)) };
}

/** Longest `x-request-id` that is kept. */
const MAX_REQUEST_ID = 128;

/** The client's own id if it is visible ASCII, which is safe in headers and logs; otherwise a new one. */
export function requestId({ headers }: IncomingMessage): string {
  const given = headers["x-request-id"];
  return typeof given === "string" && /^[!-~]+$/.test(given) ? given.slice(0, MAX_REQUEST_ID) : newRequestId();
}

export function newRequestId(): string {
  return randomUUID().replaceAll("-", "");
}

/** Refuses what Node's parser lets pass. @throws ApiError */
export function refuseFaultyRequest({ httpVersion, headers, rawHeaders }: IncomingMessage): void {
  if (httpVersion !== "1.1" && httpVersion !== "1.0") {
    throw new ApiError("invalid_request", "This server supports HTTP/1.1 only.");
  }
  // RFC 9112, 3.2. Of two, a proxy may have checked one while Node shows the other.
  const hosts = rawHeaders.filter((text, index) => index % 2 === 0 && text.length === 4 && /^host$/i.test(text));
  if (hosts.length > 1 || (headers.host === undefined && httpVersion === "1.1")) {
    throw new ApiError("invalid_request", "The request must have one Host header.");
  }
}
