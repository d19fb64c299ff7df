/** How many streams a server carries before one token in a hundred is 50 ms late. */

import { sleep } from "../clock.mjs";

const RATE = 30;
const MAX_AGE_MS = 50;
const START = 40;
const GROWTH = 1.4;
/** The search ends when the answer is known to this share. */
const PRECISION = 0.05;
const MOST = 4000;

export const capacity = {
  name: "capacity",
  title: "Streams of 30 tokens/s with 99 % of tokens less than 50 ms old",
  transports: ["sse", "ws"],
  metrics: { streams: ["streams", "", "more"] },
  async run({ base, transport, load, times }) {
    const group = await load.call("openGroup", { base, transport });
    const order = { tokens: 10_000_000, rate: RATE };
    let count = 0;
    /** Whether this many streams are carried. */
    const carries = async (wanted) => {
      if (wanted > count) {
        const spec = { count: wanted - count, order, spreadMs: 1000, patienceMs: 10_000 };
        count = wanted;
        if (!(await load.call("add", group, spec))) return false;
      } else {
        await load.call("shrink", group, wanted);
        count = wanted;
      }
      await sleep(times.warmMs);
      // A hiccup of the machine is no limit of the server: that comes again.
      return (await isOnTime(load, group, count, times)) || isOnTime(load, group, count, times);
    };
    const streams = await search(carries);
    await load.call("stop", group);
    return { streams };
  },
};

async function isOnTime(load, group, count, { capacityMs }) {
  await load.call("mark", group);
  await sleep(capacityMs);
  const { age, tokens, seconds } = await load.call("read", group);
  return age.p99 < MAX_AGE_MS && tokens > 0.97 * count * RATE * seconds;
}

/** The highest number that is carried: first growing, then by halves. */
async function search(carries) {
  let low = 0;
  let high = START;
  while (high <= MOST && (await carries(high))) {
    low = high;
    high = Math.round(high * GROWTH);
  }
  while (high - low > Math.max(2, PRECISION * high)) {
    const middle = Math.round((low + high) / 2);
    if (await carries(middle)) low = middle;
    else high = middle;
  }
  return low;
}
