/** What all hand-made servers share: the address they print, the wire format, the request to the model, and a plain server. */

import { createServer } from "node:http";
import { WebSocketServer } from "ws";

/** Where the fake model is; ends in `/v1`. */
export const MODEL_URL = process.env.COMPATIBLE_BASE_URL;

export const PORT = Number(process.env.PORT ?? 0);

export const MAX_BODY_BYTES = 64 * 1024 * 1024;

export const STREAM_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
};

export function announce(server) {
  console.log(`http://127.0.0.1:${server.address().port}/`);
}

export function encode(type, data) {
  return `{"type":"${type}","data":${JSON.stringify(data)}}`;
}

export function frame(type, data) {
  return `event: ${type}\ndata: ${encode(type, data)}\n\n`;
}

/** The Chat Completions request for a client's message. */
export function modelRequest({ message, attachments = [] }, stream) {
  const pictures = attachments.map(({ mime_type, data }) => ({
    type: "image_url",
    image_url: { url: `data:${mime_type};base64,${data}` },
  }));
  const content = pictures.length === 0 ? message : [{ type: "text", text: message }, ...pictures];
  return { model: "bench", messages: [{ role: "user", content }], stream };
}

/**
 * A server on bare `node:http` and `ws`. `model.stream(body, write, signal)` calls `write(type, data)` for each event;
 * `model.whole(body, signal)` resolves with the text.
 */
export function servePlain(model) {
  const server = createServer(async (req, res) => {
    const chunks = [];
    for await (const chunk of req) chunks.push(chunk);
    const body = JSON.parse(Buffer.concat(chunks).toString());
    const gone = new AbortController();
    res.on("close", () => gone.abort());
    try {
      if (body.stream) {
        res.writeHead(200, STREAM_HEADERS);
        res.flushHeaders();
        await model.stream(body, (type, data) => res.write(frame(type, data)), gone.signal);
        res.end();
      } else {
        res.writeHead(200, { "content-type": "application/json" });
        res.end(JSON.stringify({ response: await model.whole(body, gone.signal), state: {}, done: true }));
      }
    } catch (error) {
      if (!gone.signal.aborted) throw error;
    }
  });
  const sockets = new WebSocketServer({ server, perMessageDeflate: false, maxPayload: MAX_BODY_BYTES });
  sockets.on("connection", (socket) => {
    const gone = new AbortController();
    socket.on("close", () => gone.abort());
    socket.on("message", async (data) => {
      try {
        await model.stream(JSON.parse(data), (type, text) => socket.send(encode(type, text)), gone.signal);
      } catch (error) {
        if (!gone.signal.aborted) throw error;
      }
    });
  });
  server.listen({ port: PORT, host: "127.0.0.1", backlog: 4096 }, () => announce(server));
}
