/** Runs one after the other, where what counts is how many there are, or when each begins and ends. */

import { Agent, request } from "node:http";
import { now } from "../clock.mjs";
import { writeOrder } from "../order.mjs";
import { summarize } from "../stats.mjs";
import { within } from "./group.mjs";
import { openSocket, runOnSocket, TRANSPORTS } from "./transports.mjs";

/** `lanes` lines, each with `runs` runs one after the other. Every run must be whole. */
export async function saturate({ base, transport, lanes, runs, tokens }) {
  const { open, encode, run, close } = TRANSPORTS[transport];
  const lines = await Promise.all(Array.from({ length: lanes }, () => open(base)));
  const body = encode({ tokens });
  const begin = now();
  const lane = async (line) => {
    for (let left = runs; left > 0; left--) {
      const reader = await run(line, body).done;
      if (reader.tokens !== tokens) throw new Error(`${reader.tokens} of ${tokens} tokens came`);
    }
  };
  await Promise.all(lines.map(lane));
  const seconds = (now() - begin) / 1000;
  for (const line of lines) close(line);
  return { tokens: lanes * runs * tokens, seconds };
}

/** Short runs one after the other: how long each took to its first token. Ends after `count` or `ms`, and with one that takes longer. */
export async function firstTokens({ base, transport, count, warmUp, ms }) {
  const { open, encode, run, close } = TRANSPORTS[transport];
  const line = await open(base);
  const body = encode({ tokens: 3 });
  const times = [];
  const until = now() + ms;
  for (let at = -warmUp; at < count && now() < until; at++) {
    const running = run(line, body);
    if (!(await within(running.done, ms))) {
      running.abort();
      times.push(Number.POSITIVE_INFINITY);
      break;
    }
    if (at >= 0) times.push(running.reader.firstAt - running.sentAt);
  }
  close(line);
  return summarize(times);
}

/** Cuts a stream in the middle. Returns when. */
export async function cutOne({ base, transport, id }) {
  const { open, encode, run } = TRANSPORTS[transport];
  const line = await open(base);
  const running = run(line, encode({ tokens: 100_000, rate: 100, id }));
  await running.started;
  await new Promise((resolve) => setTimeout(resolve, 30));
  const at = running.abort();
  await running.done;
  return at;
}

/** Whole answers: JSON over HTTP, or short runs on sockets. As many as there are in `ms`. */
export async function answers({ base, transport, lanes, tokens, ms }) {
  const ask = transport === "ws" ? await askOnSockets(base, lanes, tokens) : askForJson(base, lanes, tokens);
  let count = 0;
  const begin = now();
  const lane = async (_, at) => {
    while (now() - begin < ms) {
      await ask(at);
      count++;
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  const seconds = (now() - begin) / 1000;
  ask.close();
  return { count, seconds };
}

async function askOnSockets(base, lanes, tokens) {
  const sockets = await Promise.all(Array.from({ length: lanes }, () => openSocket(base)));
  const body = TRANSPORTS.ws.encode({ tokens });
  const ask = async (at) => {
    const reader = await runOnSocket(sockets[at], body).done;
    if (reader.tokens !== tokens) throw new Error(`${reader.tokens} of ${tokens} tokens came`);
  };
  ask.close = () => {
    for (const socket of sockets) socket.terminate();
  };
  return ask;
}

function askForJson(base, lanes, tokens) {
  const agent = new Agent({ keepAlive: true, maxSockets: lanes });
  const body = JSON.stringify({ message: writeOrder({ tokens }), stream: false, state: {} });
  const headers = { "content-type": "application/json", "content-length": body.length };
  const url = new URL("api/chat", base);
  const ask = () =>
    new Promise((resolve, reject) => {
      const req = request(url, { method: "POST", agent, headers }, (res) => {
        let text = "";
        res.setEncoding("latin1");
        res.on("data", (piece) => {
          text += piece;
        });
        res.on("error", reject);
        res.on("end", () => {
          const answer = res.statusCode === 200 ? JSON.parse(text).response : undefined;
          if (answer?.split(" ").length === tokens + 1) resolve();
          else reject(new Error(`HTTP ${res.statusCode}: ${text.slice(0, 300)}`));
        });
      });
      req.on("error", reject);
      req.end(body);
    });
  ask.close = () => agent.destroy();
  return ask;
}
