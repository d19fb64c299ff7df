/** All endpoints: method, path, who may enter, handler. Read this first. */

import type { Exchange } from "../http/exchange.ts";
import { byRun, forOperator, keyed, open, type Route, type RouteTable } from "../http/router.ts";
import { chat } from "./chat.ts";
import { type ChatSocket, chatSocket, speaksWebSocket } from "./chat-socket.ts";
import { health, ready } from "./health.ts";
import { info } from "./info.ts";
import { metrics } from "./metrics.ts";
import { cancelRun, runEvents } from "./runs.ts";
import type { Service } from "./service.ts";
import { chunkScripts, launcherScript, page, widgetScript } from "./ui.ts";

export type HttpHandler = (exchange: Exchange) => void | Promise<void>;

export const routesFor = (service: Service): RouteTable<HttpHandler> => ({
  "GET /": open(page(service)),
  "GET /api/info": open(info(service)),
  "GET /health": open(health),
  "GET /health/ready": open(ready(service)),
  // GET /chunks/{name}.js
  ...Object.fromEntries(
    [...chunkScripts(service)].map(([path, script]) => [
      `GET ${path}`,
      { ...open(script), name: "/chunks/{name}.js" },
    ]),
  ),
  "GET /launcher.js": open(launcherScript(service)),
  "GET /metrics": forOperator(metrics(service)),
  "GET /widget.js": open(widgetScript(service)),
  "GET /ws/chat": open(speaksWebSocket),
  "POST /api/chat": keyed(chat(service)),
  "GET /api/chat/runs/{id}": byRun(runEvents(service)),
  "POST /api/chat/runs/{id}/cancel": byRun(cancelRun(service)),
});

export const socketsFor = (service: Service): Readonly<Record<string, Route<ChatSocket>>> => ({
  "/ws/chat": keyed(chatSocket(service)),
});
