/** All endpoints: method, path, who may enter, handler. Read this first. */

import type { Exchange, HttpHandler } from "../http/exchange.ts";
import { byRun, forOperator, keyed, open, type Route, type RouteTable } from "../http/router.ts";
import { ApiError } from "../protocol/api-error.ts";
import type { ChatEndpoints, LateChatEndpoints } from "./chat-endpoints.ts";
import type { SocketHandler } from "./chat-socket.ts";
import { health, ready } from "./health.ts";
import { info } from "./info.ts";
import { metrics } from "./metrics.ts";
import type { Service } from "./service.ts";
import { chunkScripts, launcherScript, page, widgetScript } from "./ui.ts";

export const routesFor = (service: Service, chat: LateChatEndpoints): RouteTable<HttpHandler> => ({
  "GET /": open(page(service)),
  "GET /api/info": open(info(service)),
  "GET /health": open(health),
  "GET /health/ready": open(ready(service)),
  // GET /chunks/{name}.js
  ...Object.fromEntries(
    [...chunkScripts(service)].map(([path, script]) => [`GET ${path}`, { ...open(script), name: "/chunks/{name}.js" }]),
  ),
  "GET /launcher.js": open(launcherScript(service)),
  "GET /metrics": forOperator(metrics(service)),
  "GET /widget.js": open(widgetScript(service)),
  "GET /ws/chat": open(speaksWebSocket),
  "POST /api/chat": keyed(late(chat, "chat")),
  "GET /api/chat/runs/{id}": byRun(late(chat, "runEvents")),
  "POST /api/chat/runs/{id}/cancel": byRun(late(chat, "cancelRun")),
});

export const socketsFor = (chat: LateChatEndpoints): Readonly<Record<string, Route<SocketHandler>>> => ({
  "/ws/chat": keyed(async () => (await chat.part).chatSocket),
});

/** One of the endpoints that are loaded late. */
function late(
  chat: LateChatEndpoints,
  name: keyof Pick<ChatEndpoints, "chat" | "runEvents" | "cancelRun">,
): HttpHandler {
  return (exchange) => {
    const endpoints = chat.now;
    if (endpoints !== undefined) return endpoints[name](exchange);
    return chat.come().then((loaded) => {
      // The client may not have waited.
      if (!exchange.res.destroyed) return loaded[name](exchange);
    });
  };
}

/** A plain request to the socket's address: RFC 9110, 15.5.22 has it name the protocol. */
function speaksWebSocket({ res }: Exchange): void {
  res.setHeader("upgrade", "websocket");
  throw new ApiError("invalid_request", "This address speaks WebSocket: connect to it with ws:// or wss://.");
}
