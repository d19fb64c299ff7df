/** The load client: does what the driver asks for, and returns what it saw. One lost, doubled or wrong token is an error. */

import { randomBytes, randomUUID } from "node:crypto";
import { now, quantile, sleep } from "./order.mjs";
import { serve } from "./processes.mjs";
import { askForJson, openSocket, TRANSPORTS } from "./run.mjs";

const OPENED_AT_ONCE = 50;

/** Streams that run side by side, and the ages of their tokens since the last `mark`. */
let group = { runs: [], connections: [], failures: [] };
let ages = [];
let markedAt = 0;
let idleSockets = [];

async function inParallel(count, limit, task) {
  let next = 0;
  const worker = async () => {
    while (next < count) await task(next++);
  };
  await Promise.all(Array.from({ length: Math.min(limit, count) }, worker));
}

/** With `--redis`, streams are named runs: unnamed ones do not use Redis. */
function nameOfRun() {
  return process.env.BENCH_NAMED === "1" ? { run: randomUUID() } : {};
}

/** Whether the work is done within this time. Rejects as the work does. */
function isDoneWithin(work, ms) {
  return Promise.race([work.then(() => true), sleep(ms).then(() => false)]);
}

function throwFailure() {
  const [failure] = group.failures;
  if (failure !== undefined) throw new Error(`${group.failures.length} streams failed, the first: ${failure.message}`);
}

serve({
  /** `lanes` connections, each with `runs` runs one after the other. */
  async saturate({ base, transport, lanes, runs, tokens }) {
    const { open, encode, run, close } = TRANSPORTS[transport];
    const connections = await Promise.all(Array.from({ length: lanes }, () => open(base)));
    const body = encode({ tokens });
    const begin = now();
    await Promise.all(
      connections.map(async (connection) => {
        for (let left = runs; left > 0; left--) {
          const reader = await run(connection, body).done;
          if (reader.tokens !== tokens) throw new Error(`${reader.tokens} of ${tokens} tokens came`);
        }
      }),
    );
    const seconds = (now() - begin) / 1000;
    connections.forEach(close);
    return { tokens: lanes * runs * tokens, seconds };
  },

  /** Short runs one after the other: the median time to the first token. */
  async firstToken({ base, transport, count }) {
    const { open, encode, run, close } = TRANSPORTS[transport];
    const connection = await open(base);
    const body = encode({ tokens: 3 });
    const times = [];
    for (let left = count; left > 0; left--) {
      const running = run(connection, body);
      await running.done;
      times.push(running.reader.firstAt - running.sentAt);
    }
    close(connection);
    return quantile(times, 0.5);
  },

  /**
   * Adds streams, spread over `spreadMs` so that their tokens do not come together. Returns whether all have begun
   * within `patienceMs`: an overloaded server may never start the last ones.
   */
  async addStreams({ base, transport, count, order, spreadMs, patienceMs = 60_000 }) {
    const { open, encode, run, close } = TRANSPORTS[transport];
    const connections = [];
    await inParallel(count, OPENED_AT_ONCE, async (at) => {
      connections[at] = await open(base);
    });
    const begin = now();
    const runs = [];
    for (const [at, connection] of connections.entries()) {
      const wait = begin + (at * spreadMs) / count - now();
      if (wait >= 1) await sleep(wait);
      const running = run(connection, encode(order, nameOfRun()), (age) => ages.push(age));
      running.done.catch((error) => group.failures.push(error));
      runs.push(running);
    }
    group.close = close;
    group.runs.push(...runs);
    group.connections.push(...connections);
    return isDoneWithin(Promise.all(runs.map(({ started }) => started)), patienceMs);
  },

  /** Cuts streams until this many are left. */
  cutStreams(count) {
    throwFailure();
    for (const running of group.runs.splice(count)) running.abort();
    for (const connection of group.connections.splice(count)) group.close(connection);
    if (count === 0) group = { runs: [], connections: [], failures: [] };
  },

  mark() {
    ages = [];
    markedAt = now();
  },

  /** The tokens since the mark. */
  readStreams() {
    throwFailure();
    const seconds = (now() - markedAt) / 1000;
    return { tokens: ages.length, seconds, ageP99: quantile(ages, 0.99), ageMax: quantile(ages, 1) };
  },

  /** Requests whole answers as JSON for `ms`. Returns their number. */
  async wholeAnswers({ base, lanes, tokens, ms }) {
    let count = 0;
    const until = now() + ms;
    const lane = async () => {
      for (; now() < until; count++) await askForJson(base, tokens);
    };
    await Promise.all(Array.from({ length: lanes }, lane));
    return count;
  },

  async openIdle(base, count) {
    await inParallel(count, 100, async () => idleSockets.push(await openSocket(base)));
  },

  closeIdle() {
    const open = idleSockets.filter(({ readyState }) => readyState === 1).length;
    for (const socket of idleSockets) socket.terminate();
    const lost = idleSockets.length - open;
    idleSockets = [];
    if (lost > 0) throw new Error(`${lost} idle sockets were closed`);
  },

  /** `count` messages with a picture of `bytes` bytes each, all at once. */
  async sendAttachments({ base, transport, count, bytes }) {
    const { open, encode, run, close } = TRANSPORTS[transport];
    const png = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
    const data = Buffer.concat([png, randomBytes(bytes - png.length)]).toString("base64");
    const attachment = { type: "image", name: "noise.png", mime_type: "image/png", data };
    const body = encode({ tokens: 3 }, { attachments: [attachment] });
    const connections = await Promise.all(Array.from({ length: count }, () => open(base)));
    await Promise.all(connections.map((connection) => run(connection, body).done));
    connections.forEach(close);
  },
});
