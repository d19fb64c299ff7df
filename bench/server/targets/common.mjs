/** What all hand-made servers of the benchmark share: the address they print, the files they serve, the wire format. */

import { existsSync, readFileSync } from "node:fs";

/** Where the fake model is; ends in `/v1`. */
export const BASE_URL = process.env.COMPATIBLE_BASE_URL;

export const PORT = Number(process.env.PORT ?? 0);

/** As large as Parley takes them. */
export const MAX_BODY_BYTES = 64 * 1024 * 1024;

export const STREAM_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
};

/** Listens, and tells the driver where. */
export function listen(server) {
  server.listen({ port: PORT, host: "127.0.0.1", backlog: 4096 }, () => announce(server));
}

export function announce(server) {
  console.log(`http://127.0.0.1:${server.address().port}/`);
}

export function frame(type, data) {
  return `event: ${type}\ndata: ${encode(type, data)}\n\n`;
}

export function encode(type, data) {
  return `{"type":"${type}","data":${JSON.stringify(data)}}`;
}

/** The Chat Completions request for a message of a client. */
export function modelRequest({ message, attachments = [] }, stream) {
  const pictures = attachments.map(({ mime_type, data }) => ({
    type: "image_url",
    image_url: { url: `data:${mime_type};base64,${data}` },
  }));
  const content = pictures.length === 0 ? message : [{ type: "text", text: message }, ...pictures];
  return { model: "bench", messages: [{ role: "user", content }], stream };
}

function file(name, type) {
  const path = new URL(`../../../dist/public/${name}`, import.meta.url);
  const compressed = new URL(`${path.href}.br`);
  const isCompressed = existsSync(compressed);
  const headers = { "content-type": type, ...(isCompressed && { "content-encoding": "br" }) };
  return { body: readFileSync(isCompressed ? compressed : path), headers };
}

/** What `GET` answers, from memory: the same bytes as Parley's. */
export const FILES = {
  "/": file("page.html", "text/html; charset=utf-8"),
  "/widget.js": file("widget.js", "text/javascript; charset=utf-8"),
  "/health": {
    body: Buffer.from('{"status":"ok"}'),
    headers: { "content-type": "application/json" },
  },
};
