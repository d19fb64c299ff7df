/** Fastify and its plug-in for WebSockets with the `openai` package. */

import websocket from "@fastify/websocket";
import fastify from "fastify";
import { announce, encode, FILES, frame, MAX_BODY_BYTES, PORT, STREAM_HEADERS } from "./common.mjs";
import { stream, whole } from "./openai-model.mjs";

const app = fastify({ bodyLimit: MAX_BODY_BYTES });
await app.register(websocket, {
  options: { maxPayload: MAX_BODY_BYTES, perMessageDeflate: false },
});

for (const [path, { body, headers }] of Object.entries(FILES)) {
  app.get(path, (_request, reply) => reply.headers(headers).send(body));
}

app.post("/api/chat", async (request, reply) => {
  const gone = new AbortController();
  reply.raw.on("close", () => gone.abort());
  if (!request.body.stream) {
    return { response: await whole(request.body, gone.signal), state: {}, done: true };
  }
  reply.hijack();
  reply.raw.writeHead(200, STREAM_HEADERS);
  reply.raw.flushHeaders();
  try {
    const line = { write: (type, data) => reply.raw.write(frame(type, data)) };
    await stream(request.body, line, gone.signal);
    reply.raw.end();
  } catch (error) {
    if (!gone.signal.aborted) throw error;
  }
});

app.get("/ws/chat", { websocket: true }, (socket) => {
  const gone = new AbortController();
  socket.on("close", () => gone.abort());
  socket.on("message", async (data) => {
    try {
      const line = { write: (type, text) => socket.send(encode(type, text)) };
      await stream(JSON.parse(data), line, gone.signal);
    } catch (error) {
      if (!gone.signal.aborted) throw error;
    }
  });
});

await app.listen({ port: PORT, host: "127.0.0.1", backlog: 4096 });
announce(app.server);
