/** A server on bare `node:http` and `ws` around a way to ask the model. */

import { createServer } from "node:http";
import { WebSocketServer } from "ws";
import { FILES, listen, MAX_BODY_BYTES, STREAM_HEADERS } from "./common.mjs";

/**
 * `model.stream(body, line, signal)` answers on the line; `model.whole(body, signal)` resolves with the text.
 * `lineOf` makes what events are written to: of a response, or of a socket.
 */
export function servePlain(model, lineOf) {
  const server = createServer(async (req, res) => {
    if (req.method === "GET") return answerFile(req, res);
    const body = await readJson(req);
    const gone = new AbortController();
    res.on("close", () => gone.abort());
    try {
      if (!body.stream) return answerJson(res, await model.whole(body, gone.signal));
      res.writeHead(200, STREAM_HEADERS);
      res.flushHeaders();
      await model.stream(body, lineOf.response(res), gone.signal);
      res.end();
    } catch (error) {
      if (!gone.signal.aborted) throw error;
    }
  });
  if (lineOf.socket) serveSockets(server, model, lineOf);
  listen(server);
}

function serveSockets(server, model, lineOf) {
  const sockets = new WebSocketServer({
    server,
    path: "/ws/chat",
    perMessageDeflate: false,
    maxPayload: MAX_BODY_BYTES,
  });
  sockets.on("connection", (socket, req) => {
    const gone = new AbortController();
    socket.on("close", () => gone.abort());
    socket.on("message", async (data) => {
      try {
        await model.stream(JSON.parse(data), lineOf.socket(socket, req.socket), gone.signal);
      } catch (error) {
        if (!gone.signal.aborted) throw error;
      }
    });
  });
}

async function readJson(req) {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString());
}

function answerFile(req, res) {
  const { body, headers } = FILES[req.url];
  res.writeHead(200, { ...headers, "content-length": body.length });
  res.end(body);
}

function answerJson(res, response) {
  const body = JSON.stringify({ response, state: {}, done: true });
  res.writeHead(200, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
  });
  res.end(body);
}
