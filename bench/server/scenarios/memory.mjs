/** Resident memory of what is open. */

import { sleep } from "../clock.mjs";

const KIB = 1024;

/** Looks at the memory until it no longer falls: after a collection, V8 gives pages back little by little. */
const LOOKS = 12;

export const idle = {
  name: "idle",
  title: "Resident memory of WebSockets that say nothing",
  transports: ["ws"],
  metrics: {
    start: ["after the start", "MiB"],
    socket: ["per idle WebSocket", "KiB"],
  },
  async run({ base, load, target, times }) {
    const start = await settled(target);
    // What the first connections make grow for good does not count for each.
    await load.call("openIdle", base, 500);
    const before = await settled(target);
    await load.call("openIdle", base, times.idleSockets);
    const after = await settled(target);
    await load.call("closeIdle");
    return { start: start / KIB / KIB, socket: (after - before) / times.idleSockets / KIB };
  },
};

export const memory = {
  name: "memory",
  title: "Resident memory of streams of 10 tokens/s",
  transports: ["sse", "ws"],
  metrics: {
    resident: ["with all streams", "MiB"],
    stream: ["per running stream", "KiB"],
  },
  async run({ base, transport, load, target, times }) {
    const group = await load.call("openGroup", { base, transport });
    const order = { tokens: 10_000_000, rate: 10 };
    await load.call("add", group, { count: 50, order, spreadMs: 200 });
    const before = await settled(target);
    const count = times.memoryStreams;
    await load.call("add", group, { count, order, spreadMs: 2000 });
    const after = await settled(target);
    await load.call("stop", group);
    return { resident: after / KIB / KIB, stream: (after - before) / count / KIB };
  },
};

async function settled(target) {
  let least = Number.POSITIVE_INFINITY;
  for (let look = 0; look < LOOKS; look++) {
    least = Math.min(least, await target.call("settle"));
    await sleep(150);
  }
  return least;
}
