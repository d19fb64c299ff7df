/** The table of routes. A new endpoint is a row here and a file. */

import type { Routes, SocketRoutes } from "../http/routes.ts";
import { cancelRun, chat, resumeRun } from "./chat.ts";
import { chatSocket, upgradeRequired } from "./chat-socket.ts";
import { health, info, metrics, ready } from "./info.ts";
import type { Service } from "./service.ts";
import { page, script } from "./site.ts";

export const routesOf = (service: Service): Routes => ({
  "GET /": { access: "open", handle: page(service) },
  "GET /api/info": { access: "open", handle: info(service) },
  "GET /openapi.json": {
    access: "open",
    handle: async (context) => (await import("./openapi.ts")).describeApi(service)(context),
  },
  "GET /health": { access: "open", handle: health },
  "GET /health/ready": { access: "open", handle: ready(service) },
  "GET /metrics": { access: "operator", handle: metrics(service) },
  "GET /widget.js": { access: "open", handle: script(service) },
  "GET /widget.js.map": { access: "open", handle: script(service) },
  "GET /chunks/{name}": { access: "open", handle: script(service) },
  "GET /chat/{name}": { access: "open", handle: script(service) },
  "GET /ws/chat": { access: "open", handle: upgradeRequired },
  "POST /api/chat": { access: "message", handle: chat(service) },
  "POST /api/feedback": {
    access: "message",
    // For agents with `onFeedback`.
    handle: async (...visit) => (await import("./feedback.ts")).feedback(service)(...visit),
  },
  "GET /api/chat/runs/{id}": { access: "run", handle: resumeRun(service) },
  "POST /api/chat/runs/{id}/cancel": { access: "run", handle: cancelRun(service) },
});

export const socketRoutesOf = (service: Service): SocketRoutes => ({
  "WS /ws/chat": { handle: chatSocket(service) },
});
