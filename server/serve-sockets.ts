import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import type { Caller } from "./http/caller.ts";
import { header, requestIdOf, splitTarget } from "./http/exchange.ts";
import { ignoreUpgrade } from "./http/ignore-upgrade.ts";
import { refuseUpgrade } from "./http/refuse-upgrade.ts";
import type { Route } from "./http/router.ts";
import type { SocketServer } from "./http/socket-server.ts";
import { traceHeadersOf } from "./http/trace-headers.ts";
import type { AdmissionControl } from "./limits/admission-control.ts";
import type { Late } from "./node/late.ts";
import type { Observer } from "./observer.ts";
import type { OpenSockets } from "./open-sockets.ts";
import { ApiError, toApiError } from "./protocol/api-error.ts";
import type { ChatSocket, SocketHandler } from "./routes/chat-socket.ts";
import { type Serving, UNMATCHED } from "./serve-requests.ts";

/** Takes every upgrade through the table of sockets: route, access, handshake, handler. */
export function serveSockets(
  http: Server,
  { door, log, observer }: Serving,
  table: Readonly<Record<string, Route<SocketHandler>>>,
  sockets: Late<SocketServer>,
  admission: AdmissionControl,
  open: OpenSockets,
): void {
  const upgrade = async (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    const { path, query } = splitTarget(req.url ?? "/");
    const requestId = requestIdOf(req);
    const route = Object.entries(table).find(([name]) => name === path)?.[1];
    const logged = tellWhenClosed(req, requestId, route === undefined ? UNMATCHED : path, observer);
    if (route === undefined) {
      const error = new ApiError("not_found", "There is no WebSocket at this address.");
      logged.status = error.status;
      observer.error(error.code);
      refuseUpgrade(req, socket, error);
      return;
    }
    const visitor = door.visitor(req, "socket", query);
    let caller: Caller;
    let server = sockets.now;
    let serve: ChatSocket;
    try {
      server ??= await sockets.come();
      serve = await route.handle();
      caller = await door.letIn(visitor, route.access);
      releaseWith(socket, logged, await admission.socket(caller));
    } catch (error) {
      const failure = toApiError(error);
      if (failure.code === "internal") log.failure(error);
      logged.status = failure.status;
      observer.error(failure.code);
      // There is no room for a handshake, and a browser learns as much from a connection that fails.
      if (server === undefined || failure.code === "overloaded") refuseUpgrade(req, socket, failure);
      else server.acceptAndRefuse(req, socket, head, failure);
      return;
    }
    server.accept(req, socket, head, (line) => {
      open.add(line, visitor);
      logged.status = 101;
      serve(line, caller, { requestId, trace: traceHeadersOf(req) });
    });
  };
  http.on("upgrade", (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (header(req, "upgrade")?.toLowerCase() !== "websocket") {
      ignoreUpgrade(http, req, socket, head);
      return;
    }
    socket.on("error", destroyIt);
    upgrade(req, socket, head).catch((error: unknown) => {
      log.failure(error);
      socket.destroy();
    });
  });
}

function destroyIt(this: Duplex): void {
  this.destroy();
}

/** The client may have left while its place was asked for. */
function releaseWith(socket: Duplex, visit: Visit, release: () => void): void {
  if (socket.closed) release();
  else visit.release = release;
}

/** What is known of an upgrade and needed when its connection is closed. */
interface Visit {
  status: number;
  /** Gives back its place among the open sockets. */
  release: (() => void) | undefined;
}

/**
 * One line per socket, when it is closed, which also gives its place back: one listener does both, since there are many sockets.
 * What is told is filled in as soon as it is known.
 */
function tellWhenClosed({ socket }: IncomingMessage, requestId: string, route: string, observer: Observer): Visit {
  const start = performance.now();
  const { bytesWritten: before } = socket;
  // What ws itself refuses: a handshake that is none.
  const logged: Visit = { status: 400, release: undefined };
  // It lives as long as the socket, and must not keep the request.
  socket.on("close", () => {
    logged.release?.();
    observer.request({
      requestId,
      method: "WS",
      route,
      status: logged.status,
      ms: Math.round(performance.now() - start),
      bytes: socket.bytesWritten - before,
    });
  });
  return logged;
}
