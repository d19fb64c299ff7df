import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Config } from "./config.ts";
import { corsHeaders, isPreflight, sendPreflight } from "./cors.ts";
import type { Door } from "./door.ts";
import { answerClientError } from "./http/client-error.ts";
import { type Arrival, type HttpHandler, requestIdOf, splitTarget } from "./http/exchange.ts";
import { tellOfClosing } from "./http/queued-answers.ts";
import { endWithError } from "./http/raw-answer.ts";
import { COMMON_HEADERS, sendError, setHeaders } from "./http/respond.ts";
import { findRoute, methodsOf, type RouteTable } from "./http/router.ts";
import type { Log } from "./log.ts";
import type { Observer } from "./observer.ts";
import { ApiError, toApiError } from "./protocol/api-error.ts";

/** Stands in logs for what no route was found for: a path may hold what is nobody's business. */
export const UNMATCHED = "unmatched";

export interface Serving {
  /** As they are now. */
  config(): Config;
  door: Door;
  log: Log;
  observer: Observer;
}

/** Takes every request through the route table: headers, route, access, handler, and one exit for failures. */
export function serveRequests(http: Server, serving: Serving, routes: RouteTable<HttpHandler>): void {
  const serve = async (req: IncomingMessage, res: ServerResponse) => {
    (req.socket as Answered)[LAST_ANSWER] = res;
    tellOfClosing(res);
    const { path, query } = splitTarget(req.url ?? "/");
    const arrival: Arrival = { req, res, requestId: requestIdOf(req), path, query };
    const entry = tellWhenAnswered(arrival, serving.observer);
    try {
      await answer(arrival, serving, routes, entry);
    } catch (error) {
      fail(arrival, error, serving);
    }
  };
  http.on("request", serve);
  // Without these Node answers "Expect" itself, before key and length are judged.
  http.on("checkContinue", serve);
  http.on("checkExpectation", serve);
  // Without this Node cuts the line. A proxy is what we are not.
  http.on("connect", (req: IncomingMessage, socket: Duplex) => {
    const refusal = new ApiError("method_not_allowed", "This server is no proxy.");
    endWithError(socket, refusal.status, requestIdOf(req), refusal);
  });
  http.on("clientError", (error, socket) => answerClientError(error, socket, (socket as Answered)[LAST_ANSWER]));
}

/** On the connection itself: a weak map costs each collection of garbage something for each entry. */
const LAST_ANSWER = Symbol("last answer");

interface Answered extends Duplex {
  [LAST_ANSWER]?: ServerResponse;
}

async function answer(
  arrival: Arrival,
  { config, door }: Serving,
  routes: RouteTable<HttpHandler>,
  logged: { route: string },
): Promise<void> {
  const { req, res, path, query } = arrival;
  const { origins } = config();
  const visitor = door.visitor(req, "rest", query);
  setHeaders(res, COMMON_HEADERS);
  res.setHeader("x-request-id", arrival.requestId);
  setHeaders(res, corsHeaders(origins, visitor));

  refuseFaultyRequest(req);
  const method = req.method ?? "";
  const route = findRoute(routes, method, path);
  if (route === undefined) {
    const methods = methodsOf(routes, path);
    if (methods.length === 0) throw new ApiError("not_found", "There is nothing at this address.");
    res.setHeader("allow", [...methods, "OPTIONS"].join(", "));
    if (method !== "OPTIONS") {
      throw new ApiError("method_not_allowed", `This address answers ${methods.join(" and ")}.`);
    }
    sendPreflight(res, origins, visitor, methods, isPreflight(req));
    return;
  }
  logged.route = route.name;
  const entering = door.letIn(visitor, route.access);
  const caller = entering instanceof Promise ? await entering : entering;
  // Another process may have been asked, and the client may not have waited.
  if (res.destroyed) return;
  const { requestId } = arrival;
  await route.handle({ req, res, requestId, path, query, caller, params: route.params });
}

/** What Node's parser lets pass, or would refuse without our headers and body. */
function refuseFaultyRequest({ httpVersion, rawHeaders }: IncomingMessage): void {
  if (httpVersion !== "1.1" && httpVersion !== "1.0") {
    throw new ApiError("invalid_request", "This server speaks HTTP/1.1.");
  }
  // RFC 9112, 3.2. Of two, a proxy may have judged one and Node gives us the other.
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    if (name.length === 4 && name.toLowerCase() === "host") hosts++;
  }
  if (hosts > 1 || (hosts === 0 && httpVersion === "1.1")) {
    throw new ApiError("invalid_request", "The request must have one Host header.");
  }
}

/** The one exit of everything that was refused, or went wrong before the answer began. */
function fail({ res }: Arrival, error: unknown, { log, observer }: Serving): void {
  const failure = toApiError(error);
  // An `ApiError` of this code was a run's end, and is in the log as that.
  if (!(error instanceof ApiError)) log.failure(error);
  if (res.headersSent || res.destroyed) res.destroy();
  else {
    observer.error(failure.code);
    sendError(res, failure);
  }
}

/** The route is filled in as soon as it is known. */
function tellWhenAnswered({ req, res, requestId }: Arrival, observer: Observer): { route: string } {
  const start = performance.now();
  const { socket } = req;
  // Of an answer that waits behind another one it begins when it has the connection, which may never be.
  let before = res.socket === null ? undefined : socket.bytesWritten;
  if (before === undefined) res.once("socket", () => (before = socket.bytesWritten));
  const logged = { route: UNMATCHED };
  res.on("close", () => {
    const ms = Math.round(performance.now() - start);
    const bytes = before === undefined ? 0 : socket.bytesWritten - before;
    const [method, status] = [req.method ?? "", res.statusCode];
    observer.request({ requestId, method, route: logged.route, status, ms, bytes });
  });
  return logged;
}
