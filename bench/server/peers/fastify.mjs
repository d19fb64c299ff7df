/** Fastify and its plug-in for WebSockets, with `for await` over the stream of the `openai` package. */

import websocket from "@fastify/websocket";
import fastify from "fastify";
import OpenAI from "openai";
import {
  announce,
  encode,
  frame,
  MAX_BODY_BYTES,
  MODEL_URL,
  modelRequest,
  PORT,
  STREAM_HEADERS,
} from "../targets/relay.mjs";

const client = new OpenAI({ baseURL: MODEL_URL, apiKey: "none" });

async function stream(body, write, signal) {
  let said = "";
  for await (const chunk of await client.chat.completions.create(modelRequest(body, true), { signal })) {
    const delta = chunk.choices[0]?.delta.content;
    if (!delta) continue;
    said += delta;
    write("token", delta);
  }
  write("done", said);
}

const app = fastify({ bodyLimit: MAX_BODY_BYTES });
await app.register(websocket, { options: { maxPayload: MAX_BODY_BYTES, perMessageDeflate: false } });

app.post("/api/chat", async ({ body }, reply) => {
  const gone = new AbortController();
  reply.raw.on("close", () => gone.abort());
  if (!body.stream) {
    const answer = await client.chat.completions.create(modelRequest(body, false), { signal: gone.signal });
    return { response: answer.choices[0].message.content, state: {}, done: true };
  }
  reply.hijack();
  reply.raw.writeHead(200, STREAM_HEADERS);
  reply.raw.flushHeaders();
  try {
    await stream(body, (type, data) => reply.raw.write(frame(type, data)), gone.signal);
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
      await stream(JSON.parse(data), (type, text) => socket.send(encode(type, text)), gone.signal);
    } catch (error) {
      if (!gone.signal.aborted) throw error;
    }
  });
});

await app.listen({ port: PORT, host: "127.0.0.1", backlog: 4096 });
announce(app.server);
