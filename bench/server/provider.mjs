/** The fake model: a server with the Chat Completions API whose tokens come as they were ordered. */

import { createServer } from "node:http";
import { BodyScan } from "./body-scan.mjs";
import { now } from "./clock.mjs";
import { writeToken } from "./order.mjs";
import { Pacer } from "./pacer.mjs";
import { serve } from "./rpc.mjs";

/** As an answer of OpenAI's has them. */
const HEAD =
  '{"id":"chatcmpl-CXnq0dXkJr1bYb1hJ4oG6bS7w3Fz1","object":"chat.completion.chunk","created":1760000000,"model":"bench","service_tier":"default","system_fingerprint":"fp_44709d6fcb",';
const BEFORE = `data: ${HEAD}"choices":[{"index":0,"delta":{"content":"`;
const AFTER = '"},"logprobs":null,"finish_reason":null}]}\n\n';
const STOP = `data: ${HEAD}"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}\n\n`;

/** At full speed, tokens per moment: as many chunks, which come in one packet or two. */
const TOKENS_AT_ONCE = 64;

const pacer = new Pacer();
/** When the reader of a stream went away, by the stream's id. */
const closed = new Map();
const waiting = new Map();
let largeBodies = 0;

const server = createServer((req, res) => {
  const scan = new BodyScan();
  req.on("data", (chunk) => scan.push(chunk));
  req.on("end", () => {
    try {
      if (scan.bytes > 1024 * 1024) largeBodies += scan.bytes;
      answer(res, scan);
    } catch (error) {
      res.writeHead(400, { "content-type": "application/json" });
      res.end(JSON.stringify({ error: { message: String(error) } }));
    }
  });
});

function answer(res, scan) {
  const { tokens, rate, id } = scan.order();
  if (!scan.wantsStream) return answerWhole(res, tokens);
  res.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  res.socket.setNoDelay(true);
  const end = () => res.end(`${STOP}${usage(tokens)}data: [DONE]\n\n`);
  const stopped = rate > 0 ? pace(res, tokens, rate, end) : blast(res, tokens, end);
  res.on("close", () => {
    stopped();
    if (!res.writableFinished) noteClosed(id);
  });
}

function answerWhole(res, tokens) {
  const time = now();
  let content = "";
  for (let number = 0; number < tokens; number++) content += writeToken(number, time);
  const message = { role: "assistant", content, refusal: null };
  const body = {
    id: "chatcmpl-CXnq0dXkJr1bYb1hJ4oG6bS7w3Fz1",
    object: "chat.completion",
    created: 1760000000,
    model: "bench",
    choices: [{ index: 0, message, logprobs: null, finish_reason: "stop" }],
    usage: { prompt_tokens: 10, completion_tokens: tokens, total_tokens: tokens + 10 },
  };
  res.writeHead(200, { "content-type": "application/json" });
  res.end(JSON.stringify(body));
}

function usage(tokens) {
  return `data: ${HEAD}"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":${tokens},"total_tokens":${tokens + 10}}}\n\n`;
}

/** One token after the other, each in a write of its own. */
function pace(res, tokens, rate, end) {
  let number = 0;
  const send = () => {
    res.write(BEFORE + writeToken(number, now()) + AFTER);
    if (++number < tokens) return true;
    end();
    return false;
  };
  // The first comes at once: what a client waits longer is what the server between adds.
  if (!send()) return () => {};
  return pacer.add(1000 / rate, send);
}

/** As fast as it is read. */
function blast(res, tokens, end) {
  let number = 0;
  let over = false;
  const more = () => {
    if (over) return;
    const { socket } = res;
    const time = now();
    const until = Math.min(number + TOKENS_AT_ONCE, tokens);
    let canTake = true;
    // Not that of the response: it would make one chunk of all.
    socket.cork();
    while (number < until) canTake = res.write(BEFORE + writeToken(number++, time) + AFTER);
    if (number === tokens) end();
    else if (canTake) setImmediate(more);
    else res.once("drain", () => setImmediate(more));
    socket.uncork();
  };
  more();
  return () => {
    over = true;
  };
}

function noteClosed(id) {
  if (id === 0) return;
  closed.set(id, now());
  waiting.get(id)?.();
  waiting.delete(id);
}

serve({
  /** When the reader of this stream went away; `undefined` when it is still there after `ms`. */
  closedAt(id, ms) {
    if (closed.has(id)) return closed.get(id);
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      waiting.set(id, () => {
        clearTimeout(timer);
        resolve(closed.get(id));
      });
    });
  },
  /** Bytes of bodies over 1 MiB since the last question: proves that attachments came through. */
  takeLargeBodies() {
    const bytes = largeBodies;
    largeBodies = 0;
    return bytes;
  },
});

server.keepAliveTimeout = 120_000;
server.requestTimeout = 0;
server.listen({ host: "127.0.0.1", port: 0, backlog: 4096 }, () => {
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
