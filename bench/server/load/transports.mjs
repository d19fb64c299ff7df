/** How the load client speaks to a server: one run each, over SSE, a WebSocket, or straight to the provider. */

import { Agent, request } from "node:http";
import WebSocket from "ws";
import { now } from "../clock.mjs";
import { writeOrder } from "../order.mjs";
import { EventStreamReader, ProviderStreamReader, RunReader } from "./run-reader.mjs";

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });

/**
 * One run. `done` is settled with its end, `started` with its first token; `sentAt` is when it was asked for.
 * `abort` cuts the line, after which `done` is fulfilled.
 */
class Running {
  sentAt = now();
  #aborted = false;
  #cut;

  constructor(onToken, begin) {
    this.reader = new RunReader((age) => {
      if (this.reader.tokens === 1) this.#resolveStarted();
      onToken?.(age);
    });
    this.started = new Promise((resolve) => {
      this.#resolveStarted = resolve;
    });
    this.done = new Promise((resolve, reject) => {
      const end = (error) => {
        if (this.#aborted || (error === undefined && this.reader.ended)) resolve(this.reader);
        else reject(error ?? new Error(`a run broke off after ${this.reader.tokens} tokens`));
      };
      this.#cut = begin(this.reader, end);
    });
    // A run that fails before its first token must not be waited for.
    this.started = Promise.race([this.started, this.done]);
    this.started.catch(() => {});
  }

  #resolveStarted;

  /** Returns when it was cut. */
  abort() {
    this.#aborted = true;
    const time = now();
    this.#cut();
    return time;
  }
}

function overHttp(url, body, Reader, onToken) {
  return new Running(onToken, (run, end) => {
    const headers = {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    };
    const req = request(url, { method: "POST", agent, headers });
    const frames = new Reader(run);
    req.on("error", end);
    req.on("response", (res) => {
      res.setEncoding("latin1");
      res.on("error", end);
      if (res.statusCode !== 200) return refuse(res, end);
      res.on("data", (text) => {
        try {
          frames.feed(text);
        } catch (error) {
          req.destroy(error);
        }
      });
      res.on("end", () => end());
      res.on("close", () => end());
    });
    req.end(body);
    return () => req.destroy();
  });
}

function refuse(res, end) {
  let text = "";
  res.on("data", (piece) => {
    text += piece;
  });
  res.on("end", () => end(new Error(`HTTP ${res.statusCode}: ${text.slice(0, 300)}`)));
}

/** Opens a socket that is ready for messages. */
export function openSocket(base) {
  return new Promise((resolve, reject) => {
    const url = `${base.replace(/^http/, "ws")}ws/chat`;
    const socket = new WebSocket(url, { perMessageDeflate: false, maxPayload: 256 * 1024 * 1024 });
    socket.once("error", reject);
    socket.once("open", () => resolve(socket));
  });
}

/** One run on an open socket, which is free for the next one afterwards. */
export function runOnSocket(socket, message, onToken) {
  return new Running(onToken, (run, end) => {
    const take = (data) => {
      try {
        run.read(data.latin1Slice());
        if (run.ended) finish();
      } catch (error) {
        finish(error);
      }
    };
    const close = () => finish();
    const finish = (error) => {
      socket.off("message", take);
      socket.off("close", close);
      socket.off("error", finish);
      end(error);
    };
    socket.on("message", take);
    socket.on("close", close);
    socket.on("error", finish);
    socket.send(message);
    return () => socket.terminate();
  });
}

/** A message to a server. An empty state begins a new conversation, also on a socket that had one. */
export function messageOf(order, attachments) {
  return { message: writeOrder(order), state: {}, ...(attachments && { attachments }) };
}

/** `open` makes a line on which `run` can be called again and again; `close` gives it up. */
export const TRANSPORTS = {
  sse: {
    open: async (base) => `${base}api/chat`,
    encode: (order, attachments) => JSON.stringify({ ...messageOf(order, attachments), stream: true }),
    run: (url, body, onToken) => overHttp(url, body, EventStreamReader, onToken),
    close: () => {},
  },
  ws: {
    open: openSocket,
    encode: (order, attachments) => JSON.stringify(messageOf(order, attachments)),
    run: runOnSocket,
    close: (socket) => socket.terminate(),
  },
  direct: {
    open: async (base) => `${base}v1/chat/completions`,
    encode: (order) =>
      JSON.stringify({
        model: "bench",
        stream: true,
        stream_options: { include_usage: true },
        messages: [{ role: "user", content: writeOrder(order) }],
      }),
    run: (url, body, onToken) => overHttp(url, body, ProviderStreamReader, onToken),
    close: () => {},
  },
};
