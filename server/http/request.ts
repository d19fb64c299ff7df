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
  /** Below the base path, as it came: nothing is decoded. Not for logs, since it may hold the id of a run. */
  path: string;
  query: URLSearchParams;
  /** Where the bare base path leads. */
  redirect: string | undefined;
  /** The address stands outside the base path, where probes and Prometheus ask the process itself. */
  isAtRoot: boolean;
  /** The path as in the table of routes, for logs and metrics. */
  route: string;
  /** The segments of the path that the route has names for. */
  params: Record<string, string>;
  /** The body of an error, in the words of the route's protocol. */
  errorBody(error: ApiError): object;
}

/** Stands in logs for the path of a request that no route was found for. */
const UNMATCHED = "unmatched";

export function createContext(req: IncomingMessage, res: ServerResponse, basePath = ""): RequestContext {
  const target = readTarget(req, basePath);
  return { req, res, id: requestId(req), method: req.method ?? "", ...target, route: UNMATCHED, params: {}, errorBody };
}

/** A request for a WebSocket. */
export interface UpgradeContext {
  id: string;
  trace: TraceHeaders;
  /** It weighs as much as an idle socket: kept only where it is needed later. */
  req: IncomingMessage;
}

export function traceHeaders({ headers }: IncomingMessage): TraceHeaders {
  const { traceparent, tracestate } = headers;
  if (typeof traceparent !== "string") return {};
  return typeof tracestate === "string" ? { traceparent, tracestate } : { traceparent };
}

/** Most requests have no query, and none is ever changed. */
const NO_QUERY = new URLSearchParams();

/** These paths are answered at the root, too. */
const AT_ROOT = new Set(["/health", "/health/ready", "/metrics"]);

/** Takes the base path off. Outside it, `path` is empty, which no route is. */
export function readTarget(
  req: IncomingMessage & { originalUrl?: string },
  basePath: string,
): Pick<RequestContext, "path" | "query" | "redirect" | "isAtRoot"> {
  // Express takes the path that a handler is mounted at out of `url`.
  const { path, query } = splitTarget(req.originalUrl ?? req.url ?? "/");
  const isAtRoot = basePath !== "" && AT_ROOT.has(path);
  if (basePath === "" || isAtRoot) return { path, query, redirect: undefined, isAtRoot };
  // Relative, because a proxy may show the path below another one.
  const name = basePath.slice(basePath.lastIndexOf("/") + 1);
  const redirect = path === basePath ? `./${name}/${query.size === 0 ? "" : `?${query}`}` : undefined;
  const below = path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : "";
  // The metrics are at the root alone: a proxy that passes only the base path on does not show them.
  return { path: below === "/metrics" ? "" : below, query, redirect, isAtRoot };
}

/** A client may name the whole address, as it does to a proxy (RFC 9112, 3.2.2). Nothing is decoded or joined. */
function splitTarget(target: string): { path: string; query: URLSearchParams } {
  const local = target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/?]*/i, "");
  const mark = local.indexOf("?");
  if (mark < 0) return { path: local || "/", query: NO_QUERY };
  return { path: local.slice(0, mark) || "/", query: new URLSearchParams(local.slice(mark + 1)) };
}

/** Longest `x-request-id` that is kept. */
const MAX_REQUEST_ID = 128;

/** The client's own id where it is visible ASCII, which can stand in a header and in a log. */
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
  // RFC 9112, 3.2. If there are two, a proxy may have judged one of them, and Node shows us the other.
  const hosts = rawHeaders.filter((text, index) => index % 2 === 0 && text.length === 4 && /^host$/i.test(text));
  if (hosts.length > 1 || (headers.host === undefined && httpVersion === "1.1")) {
    throw new ApiError("invalid_request", "The request must have one Host header.");
  }
}
