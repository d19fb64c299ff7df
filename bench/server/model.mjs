/** The fake model: a server with the Chat Completions API whose tokens come as they were ordered. */

import { createServer } from "node:http";
import { MAX_ORDER_CHARS, now, ORDER, writeToken } from "./order.mjs";
import { serve } from "./processes.mjs";

/** Fields as in an answer of OpenAI's. */
const HEAD =
  '{"id":"chatcmpl-CXnq0dXkJr1bYb1hJ4oG6bS7w3Fz1","object":"chat.completion.chunk","created":1760000000,"model":"bench","service_tier":"default","system_fingerprint":"fp_44709d6fcb",';
const BEFORE = `data: ${HEAD}"choices":[{"index":0,"delta":{"content":"`;
const AFTER = '"},"logprobs":null,"finish_reason":null}]}\n\n';
const STOP = `data: ${HEAD}"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}\n\n`;

/** How many tokens are written at a time at full speed, each as an HTTP chunk of its own. */
const TOKENS_AT_ONCE = 64;

const SMALL_BYTES = 64 * 1024;

let largeBytes = 0;

const server = createServer((req, res) => {
  const request = { bytes: 0, text: "", order: undefined };
  req.setEncoding("latin1");
  req.on("data", (chunk) => readChunk(request, chunk));
  req.on("end", () => answer(request, res));
});

/** Finds the order without parsing what is large: the fake model must not be the one that stalls when attachments arrive. */
function readChunk(request, chunk) {
  request.bytes += chunk.length;
  request.order ??= ORDER.exec(request.text.slice(-MAX_ORDER_CHARS) + chunk);
  request.text = request.bytes <= SMALL_BYTES ? request.text + chunk : chunk.slice(-MAX_ORDER_CHARS);
}

function answer({ bytes, text, order }, res) {
  if (bytes > SMALL_BYTES) largeBytes += bytes;
  if (!order) return res.writeHead(400).end('{"error":{"message":"no order of the benchmark"}}');
  const [tokens, rate] = order.slice(1).map(Number);
  if (bytes <= SMALL_BYTES && !text.includes('"stream":true')) return answerWhole(res, tokens);
  res.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  res.socket.setNoDelay(true);
  const end = () => res.end(`${STOP}${usageOf(tokens)}data: [DONE]\n\n`);
  if (rate === 0) writeAtFullSpeed(res, tokens, end);
  else writePaced(res, tokens, rate, end);
}

function answerWhole(res, tokens) {
  const content = Array.from({ length: tokens }, (_, number) => writeToken(number, now())).join("");
  const choice = { index: 0, message: { role: "assistant", content, refusal: null }, finish_reason: "stop" };
  res.writeHead(200, { "content-type": "application/json" });
  res.end(JSON.stringify({ id: "chatcmpl-1", object: "chat.completion", model: "bench", choices: [choice] }));
}

function usageOf(tokens) {
  return `data: ${HEAD}"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":${tokens},"total_tokens":${tokens + 10}}}\n\n`;
}

/** Writes as fast as the client reads. */
function writeAtFullSpeed(res, tokens, end) {
  let number = 0;
  const more = () => {
    if (res.destroyed) return;
    const time = now();
    const until = Math.min(number + TOKENS_AT_ONCE, tokens);
    let canTake = true;
    // Not the response's own `cork`, which would combine them into one chunk.
    res.socket.cork();
    while (number < until) canTake = res.write(BEFORE + writeToken(number++, time) + AFTER);
    const { socket } = res;
    if (number === tokens) end();
    else if (canTake) setImmediate(more);
    else res.once("drain", () => setImmediate(more));
    socket.uncork();
  };
  more();
}

/** One token after the other, each in a write of its own; the first at once. */
function writePaced(res, tokens, rate, end) {
  let number = 0;
  const interval = 1000 / rate;
  const stream = { due: performance.now(), interval, write };
  function write() {
    if (res.destroyed) return false;
    res.write(BEFORE + writeToken(number, now()) + AFTER);
    if (++number < tokens) return true;
    end();
    return false;
  }
  pace(stream);
}

const SLOTS = 1024;
const wheel = Array.from({ length: SLOTS }, () => []);
let cursor = Math.floor(performance.now());

/** All paced streams share one timer: a wheel with a slot for each millisecond. */
function pace(stream) {
  if (!stream.write()) return;
  stream.due += stream.interval;
  wheel[Math.max(Math.floor(stream.due), cursor) % SLOTS].push(stream);
}

setInterval(() => {
  for (const last = Math.floor(performance.now()); cursor <= last; ) {
    const slot = cursor++ % SLOTS;
    const due = wheel[slot];
    wheel[slot] = [];
    for (const stream of due) pace(stream);
  }
}, 1);

serve({
  /** Bytes of large bodies since the last call: proves that attachments came through. */
  takeLargeBytes() {
    const bytes = largeBytes;
    largeBytes = 0;
    return bytes;
  },
});

server.keepAliveTimeout = 120_000;
server.requestTimeout = 0;
server.listen({ host: "127.0.0.1", port: 0, backlog: 4096 }, () => {
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
