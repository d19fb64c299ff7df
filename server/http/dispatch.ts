/** Dispatches each request and upgrade through the tables of routes, whichever server received it. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Access, Caller, Credentials, Purpose } from "../auth/access.ts";
import { type Origins, originRefused } from "../auth/origins.ts";
import type { MessageLimits, Release } from "../limits/message-limits.ts";
import type { Log, RequestEntry } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import { ApiError, errorFacts, toApiError } from "../protocol/errors.ts";
import {
  createContext,
  type RequestContext,
  readTarget,
  refuseFaultyRequest,
  requestId,
  traceHeaders,
} from "./request.ts";
import {
  COMMON_HEADERS,
  disconnect,
  limitSending,
  sendError,
  sendRawError,
  setCorsHeaders,
  setPreflightHeaders,
} from "./respond.ts";
import type { DoorPlace, Route, Routes, SocketRoute, SocketRoutes } from "./routes.ts";
import type { WebSockets } from "./websocket.ts";

export interface HandlerParts {
  routes: Routes;
  socketRoutes: SocketRoutes;
  doors: readonly DoorPlace[];
  /** Called with each request before its route is looked up. @throws ApiError */
  guard?: ((context: RequestContext) => void) | undefined;
  access: Access;
  origins: Origins;
  limits: MessageLimits;
  sockets: WebSockets;
  log: Log;
  metrics: Metrics;
  /** The prefix of every path, or "". */
  basePath: string;
  /** How long a client may read nothing before it is disconnected. */
  sendMs: number;
  /** How long a client may keep a connection open after the server has ended it. */
  lingerMs: number;
}

/** Answers the requests and upgrades of one agent, on Parley's own server or on a host's. */
export interface Handler {
  request(req: IncomingMessage, res: ServerResponse): void;
  /** Whether a route below the base path matches the request or upgrade. */
  owns(req: IncomingMessage): boolean;
  /** Returns whether the upgrade was handled. One to another protocol than WebSocket is left untouched. */
  upgrade(req: IncomingMessage, socket: Socket, head: Buffer): boolean;
  /** The responses that are not closed yet. */
  readonly responses: OpenResponses;
}

export function createHandler(parts: HandlerParts): Handler {
  const { basePath } = parts;
  const responses = new OpenResponses();
  const routers = { http: createRouter(parts.routes), socket: createRouter(parts.socketRoutes) };
  const dispatch = createDispatch(parts, routers.http);
  const dispatchUpgrade = createUpgradeDispatch(parts, routers.socket);
  return {
    responses,
    owns(req) {
      const { path, redirect, isAtRoot } = readTarget(req, basePath);
      const router = offersWebSocket(req) ? routers.socket : routers.http;
      return redirect !== undefined || (!isAtRoot && router.methodsOf(path).length > 0);
    },
    request(req, res) {
      responses.add(res);
      void dispatch(req, res);
    },
    upgrade(req, socket, head) {
      // Node stops tracking responses that are open on an upgraded connection: a later one would crash the process.
      if (responses.isWaiting(socket)) {
        socket.destroy();
        return true;
      }
      if (!offersWebSocket(req)) return false;
      socket.on("error", () => socket.destroy());
      void dispatchUpgrade(req, socket, head);
      return true;
    },
  };
}

export function offersWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === "websocket";
}

/** Handles each request: common headers, route, access, the route's handler, and a single exit for errors. */
function createDispatch(
  parts: HandlerParts,
  router: Router<Route>,
): (req: IncomingMessage, res: ServerResponse) => Promise<void> {
  const { access, origins, limits, log, metrics, doors, sendMs, lingerMs } = parts;

  async function handle(context: RequestContext): Promise<void> {
    const { req, res, method, path, query } = context;
    const door = doors.find((one) => one.path.test(path));
    context.errorBody = door?.errorBody ?? context.errorBody;
    res.setHeader("x-request-id", context.id);
    for (const [name, value] of Object.entries(COMMON_HEADERS)) res.setHeader(name, value);
    setCorsHeaders(origins, req.headers, res);
    refuseFaultyRequest(req);
    if (context.redirect !== undefined) {
      context.route = "/";
      res.writeHead(308, { location: context.redirect }).end();
      return;
    }
    parts.guard?.(context);
    const match = router.find(method, path);
    if (match === undefined) {
      answerWithoutRoute(context, router.methodsOf(path), door?.hint, parts);
      return;
    }
    const { route } = match;
    context.route = match.path;
    context.params = match.params;
    if (route.access === "open") {
      await route.handle(context);
      return;
    }
    const caller = await authenticate(access.credentials(req, query, route.access), route.access, access, limits);
    if (!res.destroyed) await route.handle(context, caller);
  }

  return async (req, res) => {
    const context = createContext(req, res, parts.basePath);
    let facts: string | undefined;
    recordWhenClosed(res, req.socket, parts, () => {
      const { id, method, route } = context;
      return { requestId: id, method, route, status: res.statusCode, error: facts };
    });
    try {
      await handle(context);
      disconnectIfStuck(res, sendMs);
    } catch (thrown) {
      const error = toApiError(thrown);
      facts = errorFacts(error);
      // An `ApiError` is expected, or has ended a run, whose own log record reports it.
      if (!(thrown instanceof ApiError)) log.failure(thrown);
      if (!res.headersSent && !res.destroyed) metrics.error(error.code);
      sendError(context, error, lingerMs);
    }
  };
}

/** Answers `OPTIONS`. @throws ApiError for every other method, and for a preflight from an origin that is not allowed */
function answerWithoutRoute(
  { req, res, method }: RequestContext,
  methods: readonly string[],
  hint: string | undefined,
  { origins, basePath }: HandlerParts,
): void {
  if (methods.length === 0) {
    const chat = method === "POST" ? ` The chat is POST ${basePath}/api/chat.` : "";
    throw new ApiError("not_found", `${hint ?? "There is nothing at this address."}${chat}`);
  }
  res.setHeader("allow", [...methods, "OPTIONS"].join(", "));
  if (method !== "OPTIONS") {
    throw new ApiError("method_not_allowed", `This address accepts ${methods.join(" and ")} only.`);
  }
  const isPreflight = req.headers["access-control-request-method"] !== undefined;
  if (isPreflight && origins.judge(req.headers) === "refused") throw originRefused(req.headers.origin);
  setPreflightHeaders(methods, res);
  res.writeHead(204).end();
}

/** Authenticates, and counts wrong keys. @throws ApiError `unauthorized`, `forbidden` or `rate_limited` */
async function authenticate(
  credentials: Credentials,
  purpose: Purpose,
  access: Access,
  limits: MessageLimits,
): Promise<Caller> {
  const { address, keyDigest } = credentials;
  let caller: Caller;
  try {
    caller = access.authorize(credentials, purpose);
  } catch (error) {
    const isWrongKey = error instanceof ApiError && error.code === "unauthorized" && keyDigest !== undefined;
    await limits.admitKey(address, isWrongKey);
    throw error;
  }
  await limits.admitKey(address, false);
  return caller;
}

/** Disconnects a client that does not read the rest of a finished answer. */
function disconnectIfStuck(res: ServerResponse, sendMs: number): void {
  if (!res.writableEnded || res.writableFinished || res.destroyed) return;
  const startClock = () => {
    const stopClock = limitSending(res, sendMs, () => disconnect(res.socket));
    res.once("close", stopClock);
  };
  // With pipelining, a response gets its socket only after the one before it.
  if (res.socket === null) res.once("socket", startClock);
  else startClock();
}

/** Records a request when its answer is closed, and a WebSocket when its connection is. */
function recordWhenClosed(
  stream: ServerResponse | Socket,
  socket: Socket,
  { log, metrics }: HandlerParts,
  facts: () => Omit<RequestEntry, "ms" | "bytes">,
): void {
  const startedAt = performance.now();
  const sentBefore = socket.bytesWritten;
  stream.once("close", () => {
    const ms = Math.round(performance.now() - startedAt);
    const entry = { ...facts(), ms, bytes: socket.bytesWritten - sentBefore };
    log.request(entry);
    metrics.request(entry);
  });
}

/** Dispatches WebSocket upgrades through the table of socket routes. */
function createUpgradeDispatch(
  parts: HandlerParts,
  router: Router<SocketRoute>,
): (req: IncomingMessage, socket: Socket, head: Buffer) => Promise<void> {
  const { access, limits, sockets, log, metrics, lingerMs } = parts;

  /** @throws ApiError */
  async function admitSocket(
    req: IncomingMessage,
    query: URLSearchParams,
    report: SocketReport,
  ): Promise<[Caller, Credentials]> {
    const credentials = access.credentials(req, query, "socket");
    const caller = await authenticate(credentials, "socket", access, limits);
    const release = await limits.admitSocket(caller);
    if (req.socket.closed) release();
    else report.release = release;
    return [caller, credentials];
  }

  return async (req, socket, head) => {
    const id = requestId(req);
    const { path, query } = readTarget(req, parts.basePath);
    const match = router.find("WS", path);
    const report = recordSocketWhenClosed(socket, id, match?.path ?? "unmatched", parts);
    try {
      refuseFaultyRequest(req);
      if (match === undefined) throw new ApiError("not_found", "There is no WebSocket at this address.");
      const [caller, credentials] = await admitSocket(req, query, report);
      const trace = traceHeaders(req);
      sockets.accept({ req, socket, head }, credentials, (connection) => {
        report.status = 101;
        match.route.handle(connection, caller, { id, trace, req });
      });
    } catch (thrown) {
      const error = toApiError(thrown);
      if (!(thrown instanceof ApiError)) log.failure(thrown);
      metrics.error(error.code);
      report.status = error.status;
      report.error = errorFacts(error);
      // Refused over HTTP: an overloaded server has no room for a handshake, and a failed connection tells a page enough.
      const isRefusedOverHttp = ["invalid_request", "not_found", "overloaded", "internal"].includes(error.code);
      if (isRefusedOverHttp) sendRawError(socket, error, { requestId: id, lingerMs });
      else sockets.refuse({ req, socket, head }, error);
    }
  };
}

/** What is recorded of a socket when its connection closes. */
interface SocketReport {
  status: number;
  error: string | undefined;
  /** Frees its slot among the open sockets. */
  release: Release | undefined;
}

/** The report lives as long as the socket, so it references neither the request nor what the routes made of it. */
function recordSocketWhenClosed(socket: Socket, requestId: string, route: string, parts: HandlerParts): SocketReport {
  // The status if `ws` refuses the handshake.
  const report: SocketReport = { status: 400, error: undefined, release: undefined };
  socket.once("close", () => report.release?.());
  recordWhenClosed(socket, socket, parts, () => {
    const { status, error } = report;
    return { requestId, method: "WS", route, status, error };
  });
  return report;
}

type Router<Route> = ReturnType<typeof createRouter<Route>>;

/**
 * Finds the route for a method and a path. Paths are compared as received: nothing is decoded or normalized. A key of
 * the table is `METHOD /path`, in which `{name}` matches one segment that is not empty.
 */
function createRouter<Route>(table: Readonly<Record<string, Route>>) {
  const rows = Object.entries(table).map(([key, route]) => {
    const [method = "", path = ""] = key.split(" ");
    const pattern = path.replaceAll(".", "\\.").replace(/\{(\w+)\}/g, "(?<$1>[^/]+)");
    return { method, path, pattern: new RegExp(`^${pattern}$`), route };
  });
  return {
    /** A `GET` row also answers `HEAD`. `path` of the match is the pattern in the table. */
    find(method: string, path: string) {
      const wanted = method === "HEAD" ? "GET" : method;
      const row = rows.find((one) => one.method === wanted && one.pattern.test(path));
      return row && { route: row.route, path: row.path, params: { ...row.pattern.exec(path)?.groups } };
    },
    /** The methods that a path accepts; empty if no route has this path. */
    methodsOf: (path: string): string[] =>
      rows
        .filter(({ pattern }) => pattern.test(path))
        .flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method])),
  };
}

/**
 * The responses of each connection that are not closed yet. With pipelining (RFC 9112, 9.3.2) there are several, and before
 * Node 24 only the first one gets `close` when the connection is lost: the others would wait for their client for ever.
 */
class OpenResponses {
  readonly #open = new WeakMap<Duplex, Set<ServerResponse>>();
  readonly #last = new WeakMap<Duplex, ServerResponse>();

  add(res: ServerResponse): void {
    const { socket } = res.req;
    const open = this.#open.get(socket) ?? this.#watch(socket);
    open.add(res);
    this.#last.set(socket, res);
    res.once("close", () => open.delete(res));
  }

  /** Whether a response has begun, or was sent before its request's body arrived: no raw error may be written then. */
  isAnswering(socket: Duplex): boolean {
    const last = this.#last.get(socket);
    return last?.headersSent === true && !(last.writableFinished && last.req.complete);
  }

  /** Whether any response of the connection is still open. */
  isWaiting(socket: Duplex): boolean {
    return (this.#open.get(socket)?.size ?? 0) > 0;
  }

  #watch(socket: Duplex): Set<ServerResponse> {
    const open = new Set<ServerResponse>();
    this.#open.set(socket, open);
    socket.once("close", () => {
      for (const res of open) res.destroy();
      // Responses that got `close` from Node have left the set by then.
      setImmediate(() => {
        for (const res of open) res.emit("close");
      });
    });
    return open;
  }
}
