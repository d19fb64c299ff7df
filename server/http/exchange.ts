import type { IncomingMessage, ServerResponse } from "node:http";
import type { Caller } from "./caller.ts";
import { newRequestId } from "./new-id.ts";
import type { PathParams } from "./router.ts";

/** One request with its answer, before anybody was let in. */
export interface Arrival {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** Given by the client or minted; goes out as `x-request-id` and into the log. */
  readonly requestId: string;
  /** Raw path without the query; not for logs, since it may hold the id of a run. */
  readonly path: string;
  readonly query: URLSearchParams;
}

/** One request with its answer, and what every handler needs to know of them. */
export interface Exchange extends Arrival {
  readonly caller: Caller;
  /** Segments of the path that the route has names for; as they came, nothing is decoded. */
  readonly params: PathParams;
}

/** Answers one request. What it throws is answered for it. */
export type HttpHandler = (exchange: Exchange) => void | Promise<void>;

/** Longest `x-request-id` that is taken over from a client. */
const MAX_REQUEST_ID = 128;

/** On the request itself: a weak map costs each collection of garbage something for each entry. */
const REQUEST_ID = Symbol("request id");

interface Identified extends IncomingMessage {
  [REQUEST_ID]?: string;
}

/** Keeps a client's id when it can stand in a header and a log line, else mints one: the same each time. */
export function requestIdOf(req: Identified): string {
  req[REQUEST_ID] ??= givenId(req) ?? newRequestId();
  return req[REQUEST_ID];
}

function givenId(req: IncomingMessage): string | undefined {
  const given = req.headers["x-request-id"];
  const usable = typeof given === "string" && /^[\x21-\x7e]+$/.test(given);
  return usable ? given.slice(0, MAX_REQUEST_ID) : undefined;
}

/** Of most requests. Nobody writes into a query. */
const NO_QUERY = new URLSearchParams();

/** Splits the raw request target by hand: it is compared, never decoded or joined. */
export function splitTarget(target: string): { path: string; query: URLSearchParams } {
  // RFC 9112, 3.2.2: a client may name the whole address, as it does to a proxy.
  const local = target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/?]*/i, "");
  const mark = local.indexOf("?");
  if (mark === -1) return { path: local || "/", query: NO_QUERY };
  return { path: local.slice(0, mark) || "/", query: new URLSearchParams(local.slice(mark + 1)) };
}

export function header(req: IncomingMessage, name: string): string | undefined {
  const value = req.headers[name];
  return typeof value === "string" ? value : undefined;
}
