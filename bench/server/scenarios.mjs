/** What is measured. Each `run` returns its figures by the names of `metrics`. */

import { sleep } from "./order.mjs";

const KIB = 1024;
const MIB = 1024 * KIB;
const BOTH = ["sse", "ws"];

/** Longer than any measurement: these streams are cut in the end. */
const ENDLESS = 10_000_000;

const fullSpeed = {
  name: "full-speed",
  transports: [...BOTH, "openai"],
  metrics: { cpu: { title: "CPU per token, 8 streams at full speed", unit: "µs", ratio: 1.3 } },
  async run({ base, transport, load, cpuOf, times }) {
    const spec = { base, transport, lanes: 8, tokens: 2000 };
    // The first calls warm up; the last of them tells how many runs fill the time.
    await load.call("saturate", { ...spec, runs: 3 });
    const trial = await load.call("saturate", { ...spec, runs: 2 });
    const runs = Math.max(1, Math.round((2 * times.fullSpeedMs) / 1000 / trial.seconds));
    const { value, cpu } = await cpuOf(() => load.call("saturate", { ...spec, runs }));
    return { cpu: cpu / value.tokens };
  },
};

const paced = {
  name: "paced",
  transports: BOTH,
  metrics: {
    cpu: { title: "CPU per token, 50 streams of 50 tokens/s", unit: "µs", ratio: 1.6, before: 1.1 },
    first: { title: "first token p50 beside these streams", unit: "ms" },
  },
  async run({ base, transport, load, cpuOf, times }) {
    await addStreams(load, { base, transport, count: 50, order: { tokens: ENDLESS, rate: 50 }, spreadMs: 1100 });
    await sleep(times.pacedWarmMs);
    const { value, cpu } = await cpuOf(() => readFor(load, times.pacedMs));
    const first = await load.call("firstToken", { base, transport, count: times.firstTokens / 2 });
    return { cpu: cpu / value.tokens, first };
  },
};

const many = {
  name: "many",
  transports: BOTH,
  metrics: {
    ageP99: { title: "token age p99, 500 streams of 30 tokens/s", unit: "ms", ratio: 2 },
    cpu: { title: "CPU per token of these streams", unit: "µs" },
  },
  async run({ base, transport, load, cpuOf, times }) {
    const order = { tokens: ENDLESS, rate: 30 };
    const spec = { base, transport, count: 500, order, spreadMs: 2000, patienceMs: 20_000 };
    if (!(await load.call("addStreams", spec))) return { ageP99: Number.POSITIVE_INFINITY, cpu: Number.NaN };
    await sleep(times.pacedWarmMs);
    const { value, cpu } = await cpuOf(() => readFor(load, times.pacedMs));
    return { ageP99: value.ageP99, cpu: cpu / value.tokens };
  },
};

const carried = {
  name: "carried",
  transports: BOTH,
  metrics: { streams: { title: "streams of 30 tokens/s with p99 age < 50 ms", unit: "", ratio: 0.7, more: true } },
  async run({ base, transport, load, times }) {
    const order = { tokens: ENDLESS, rate: 30 };
    let count = 0;
    const areOnTime = async () => {
      const { ageP99, tokens, seconds } = await readFor(load, times.carriedMs);
      return ageP99 < 50 && tokens > 0.97 * count * order.rate * seconds;
    };
    const areCarried = async (wanted) => {
      const spec = { base, transport, count: wanted - count, order, spreadMs: 1000, patienceMs: 10_000 };
      count = wanted;
      if (spec.count < 0) await load.call("cutStreams", wanted);
      else if (!(await load.call("addStreams", spec))) return false;
      await sleep(times.carriedMs);
      // A hiccup of the machine does not come twice.
      return (await areOnTime()) || areOnTime();
    };
    return { streams: await searchHighest(areCarried) };
  },
};

/** Searches the highest number: by growth first, then by bisection, to a twentieth. */
async function searchHighest(areCarried) {
  let low = 0;
  let high = 40;
  while (high <= 4000 && (await areCarried(high))) {
    low = high;
    high = Math.round(high * 1.4);
  }
  while (high - low > Math.max(2, high / 20)) {
    const middle = Math.round((low + high) / 2);
    if (await areCarried(middle)) low = middle;
    else high = middle;
  }
  return low;
}

const first = {
  name: "first",
  transports: BOTH,
  metrics: { first: { title: "first token p50, one stream", unit: "ms", plus: 1 } },
  async run({ base, transport, load, times }) {
    // Warms up until V8 has compiled all of the code.
    await load.call("firstToken", { base, transport, count: 5 * times.firstTokens });
    return { first: await load.call("firstToken", { base, transport, count: times.firstTokens }) };
  },
};

const whole = {
  name: "whole",
  transports: ["json"],
  metrics: { cpu: { title: "CPU of a whole answer of 100 tokens", unit: "µs" } },
  async run({ base, load, cpuOf, times }) {
    const spec = { base, lanes: 16, tokens: 100 };
    await load.call("wholeAnswers", { ...spec, ms: times.fullSpeedMs });
    const { value, cpu } = await cpuOf(() => load.call("wholeAnswers", { ...spec, ms: times.fullSpeedMs }));
    return { cpu: cpu / value };
  },
};

const idle = {
  name: "idle",
  transports: ["ws"],
  metrics: { bytes: { title: "resident memory of an idle WebSocket", unit: "KiB", most: 12 } },
  async run({ base, load, target, times }) {
    // Memory that the first connections allocate for good is not counted for each connection.
    await load.call("openIdle", base, 500);
    const before = await settledMemory(target);
    await load.call("openIdle", base, times.idleSockets);
    const after = await settledMemory(target);
    await load.call("closeIdle");
    return { bytes: (after - before) / times.idleSockets / KIB };
  },
};

/** The least of several readings: after a collection V8 releases pages little by little. */
async function settledMemory(target) {
  let least = Number.POSITIVE_INFINITY;
  for (let look = 0; look < 10; look++) {
    least = Math.min(least, await target.call("settle"));
    await sleep(150);
  }
  return least;
}

const FILE_BYTES = 20 * MIB;

const attachments = {
  name: "attachments",
  transports: BOTH,
  metrics: {
    pause: { title: "longest pause of 20 streams while four 20 MiB attachments arrive", unit: "ms", most: 100 },
  },
  async run({ base, transport, load, sender, model, target }) {
    await addStreams(load, { base, transport, count: 20, order: { tokens: ENDLESS, rate: 50 }, spreadMs: 500 });
    const spec = { base, transport, bytes: FILE_BYTES };
    // The first message loads and compiles code.
    await sender.call("sendAttachments", { ...spec, count: 1 });
    await model.call("takeLargeBytes");
    await target.call("settle");
    await sleep(300);
    await load.call("mark");
    await sender.call("sendAttachments", { ...spec, count: 4 });
    const { ageMax } = await load.call("readStreams");
    const arrived = await model.call("takeLargeBytes");
    if (arrived < (4 * FILE_BYTES * 4) / 3) throw new Error(`the model got ${arrived} bytes of four attachments`);
    return { pause: ageMax };
  },
};

/** The tokens that come in the next `ms`. */
async function readFor(load, ms) {
  await load.call("mark");
  await sleep(ms);
  return load.call("readStreams");
}

async function addStreams(load, spec) {
  if (!(await load.call("addStreams", spec))) throw new Error(`${spec.count} streams have not begun in a minute`);
}

/** In the order of the table. */
export const SCENARIOS = [fullSpeed, paced, many, carried, first, whole, idle, attachments];
