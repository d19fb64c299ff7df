import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { anonymous, authorize, bearerToken, type Visitor } from "./access.ts";
import type { Config } from "./config.ts";
import type { Caller } from "./http/caller.ts";
import { addressOf, header, requestIdOf, splitTarget } from "./http/exchange.ts";
import { ignoreUpgrade } from "./http/ignore-upgrade.ts";
import type { Route } from "./http/router.ts";
import { refuseUpgrade, type SocketServer } from "./http/socket-server.ts";
import type { Log } from "./log.ts";
import { ApiError, toApiError } from "./protocol/api-error.ts";
import type { ChatSocket } from "./routes/chat-socket.ts";

interface Serving {
  config: Config;
  log: Log;
}

/** Takes every upgrade through the table of sockets: route, access, handshake, handler. */
export function serveSockets(
  http: Server,
  { config, log }: Serving,
  table: Readonly<Record<string, Route<ChatSocket>>>,
  sockets: SocketServer,
): void {
  http.on("upgrade", (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (header(req, "upgrade")?.toLowerCase() !== "websocket") {
      ignoreUpgrade(http, req, socket, head);
      return;
    }
    socket.on("error", () => socket.destroy());
    const { path, query } = splitTarget(req.url ?? "/");
    const logged = (status: number) =>
      log.request({ requestId: requestIdOf(req), method: "WS", path, status, ms: 0 });
    const route = Object.entries(table).find(([name]) => name === path)?.[1];
    if (route === undefined) {
      const error = new ApiError("not_found", "There is no WebSocket at this address.");
      refuseUpgrade(req, socket, error);
      logged(error.status);
      return;
    }
    const visitor = visitorOf(req, query);
    let caller: Caller;
    try {
      caller = route.access === "chat" ? authorize(config, visitor) : anonymous(visitor);
    } catch (error) {
      const failure = toApiError(error);
      if (failure.code === "internal") log.failure(error);
      sockets.acceptAndRefuse(req, socket, head, failure);
      logged(failure.status);
      return;
    }
    sockets.accept(req, socket, head, (line) => route.handle(line, caller));
    logged(101);
  });
}

function visitorOf(req: IncomingMessage, query: URLSearchParams): Visitor {
  return {
    transport: "socket",
    key: query.get("key") || bearerToken(header(req, "authorization")),
    origin: header(req, "origin"),
    host: header(req, "host"),
    address: addressOf(req),
  };
}
