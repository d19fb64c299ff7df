/** How the load client speaks to a server: one run each, over SSE or a WebSocket. */

import { Agent, request } from "node:http";
import WebSocket from "ws";
import { now, writeOrder } from "./order.mjs";

const TOKEN = '"type":"token","data":"';
const CHUNK = '"delta":{"content":"';

/** The API key, which the endpoint for OpenAI's clients requires. */
export const KEY = "a-key-of-the-benchmark";

/**
 * Reads the events of one run and verifies them: the numbers in the tokens must come one after the other, and the last
 * event must hold exactly the text of all tokens.
 */
export class RunReader {
  tokens = 0;
  firstAt;
  isEnded = false;
  #chars = 0;
  #onToken;
  #marker;

  /** `onToken` is called with the age of each token, in milliseconds. */
  constructor(onToken, marker = TOKEN) {
    this.#onToken = onToken;
    this.#marker = marker;
  }

  /** Reads one event. @throws Error when the run is not as it should be */
  read(json) {
    const at = json.indexOf(this.#marker);
    if (at === -1) return json === " [DONE]" ? undefined : this.#readOther(JSON.parse(json));
    let start = at + this.#marker.length;
    const end = json.indexOf('"', start);
    const time = now();
    this.firstAt ??= time;
    this.#chars += end - start;
    while (start < end) {
      const dot = json.indexOf(".", start);
      const space = json.indexOf(" ", start);
      const number = Number.parseInt(json.slice(start, dot), 36);
      if (number !== this.tokens) throw new Error(`token ${number} came where ${this.tokens} was due`);
      this.tokens += 1;
      this.#onToken?.(time - Number.parseInt(json.slice(dot + 1, space), 36) / 1000);
      start = space + 1;
    }
  }

  #readOther({ type, data, code, choices, error }) {
    if (type === "error") throw new Error(`the server sent an error: ${data} (${code})`);
    if (error !== undefined) throw new Error(`the server sent an error: ${error.message} (${error.code})`);
    // Chat Completions does not repeat the text.
    if (choices?.[0]?.finish_reason === "stop") this.isEnded = true;
    if (type !== "done") return;
    if (data.length !== this.#chars) throw new Error(`done holds ${data.length} characters, not ${this.#chars}`);
    this.isEnded = true;
  }
}

/** Reads the events of a `text/event-stream` from pieces of its text. */
export function eventStreamReader(run) {
  let rest = "";
  return (text) => {
    const all = rest + text;
    let from = 0;
    for (let end = all.indexOf("\n\n"); end !== -1; end = all.indexOf("\n\n", from)) {
      const data = all.indexOf("data:", from);
      if (data !== -1 && data < end) run.read(all.slice(data + 5, end));
      from = end + 2;
    }
    rest = all.slice(from);
  };
}

/** One run. `started` settles with its first token, `done` with its end; after `abort`, `done` is fulfilled. */
class Running {
  sentAt = now();
  #isAborted = false;
  #cut;

  constructor(onToken, begin, marker) {
    const started = new Promise((resolve) => {
      this.reader = new RunReader((age) => {
        if (this.reader.tokens === 1) resolve();
        onToken?.(age);
      }, marker);
    });
    this.done = new Promise((resolve, reject) => {
      this.#cut = begin(this.reader, (error) => {
        if (this.#isAborted || (error === undefined && this.reader.isEnded)) resolve(this.reader);
        else reject(error ?? new Error(`a run broke off after ${this.reader.tokens} tokens`));
      });
    });
    this.started = Promise.race([started, this.done]);
    this.started.catch(() => {});
  }

  abort() {
    this.#isAborted = true;
    this.#cut();
  }
}

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });

function post(url, body, onResponse, onError, more = {}) {
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body), ...more };
  const req = request(url, { method: "POST", agent, headers }, (res) => {
    res.setEncoding("latin1");
    res.on("error", onError);
    onResponse(res);
  });
  req.on("error", onError);
  req.end(body);
  return req;
}

function runOverSse(url, body, onToken, { headers, marker } = {}) {
  const begin = (run, end) => {
    const read = eventStreamReader(run);
    const onResponse = (res) => {
      if (res.statusCode !== 200) return end(new Error(`HTTP ${res.statusCode}`));
      res.on("data", (text) => {
        try {
          read(text);
        } catch (error) {
          req.destroy(error);
        }
      });
      res.on("close", () => end());
    };
    const req = post(url, body, onResponse, end, headers);
    return () => req.destroy();
  };
  return new Running(onToken, begin, marker);
}

/** The whole answer as JSON, which must hold this many tokens. */
export function askForJson(base, tokens) {
  return new Promise((resolve, reject) => {
    const body = JSON.stringify({ message: writeOrder({ tokens }), stream: false, state: {} });
    const onResponse = (res) => {
      let text = "";
      res.on("data", (piece) => {
        text += piece;
      });
      res.on("end", () => {
        if (res.statusCode === 200 && JSON.parse(text).response.split(" ").length === tokens + 1) resolve();
        else reject(new Error(`HTTP ${res.statusCode}: ${text.slice(0, 300)}`));
      });
    };
    post(`${base}api/chat`, body, onResponse, reject);
  });
}

export function openSocket(base) {
  return new Promise((resolve, reject) => {
    const url = `${base.replace(/^http/, "ws")}ws/chat`;
    const socket = new WebSocket(url, { perMessageDeflate: false, maxPayload: 256 * 1024 * 1024 });
    socket.once("error", reject);
    socket.once("open", () => resolve(socket));
  });
}

/** One run on an open socket, which is free for the next one afterwards. */
function runOnSocket(socket, message, onToken) {
  return new Running(onToken, (run, end) => {
    const listeners = {
      message(data) {
        try {
          run.read(data.latin1Slice());
          if (run.isEnded) finish();
        } catch (error) {
          finish(error);
        }
      },
      close: () => finish(),
      error: (error) => finish(error),
    };
    const finish = (error) => {
      for (const [name, listener] of Object.entries(listeners)) socket.off(name, listener);
      end(error);
    };
    for (const [name, listener] of Object.entries(listeners)) socket.on(name, listener);
    socket.send(message);
    return () => socket.terminate();
  });
}

/** An empty state begins a new conversation, also on a socket that remembers one. */
function encodeMessage(order, more) {
  return JSON.stringify({ message: writeOrder(order), state: {}, ...more });
}

/** `open` makes a connection on which `run` can be called again and again. */
export const TRANSPORTS = {
  sse: {
    open: async (base) => `${base}api/chat`,
    encode: (order, more) => encodeMessage(order, { ...more, stream: true }),
    run: runOverSse,
    close() {},
  },
  openai: {
    open: async (base) => `${base}v1/chat/completions`,
    encode: (order) => JSON.stringify({ messages: [{ role: "user", content: writeOrder(order) }], stream: true }),
    run: (url, body, onToken) =>
      runOverSse(url, body, onToken, { headers: { authorization: `Bearer ${KEY}` }, marker: CHUNK }),
    close() {},
  },
  ws: {
    open: openSocket,
    encode: encodeMessage,
    run: runOnSocket,
    close: (socket) => socket.terminate(),
  },
};
