/** Streams at the pace of a model: mostly system calls, with a packet for each token. */

import { sleep } from "../clock.mjs";

/** Longer than any measurement: the streams are cut in the end, and their tokens must be without a gap until then. */
const ENDLESS = 10_000_000;

/** Below this share of the tokens that are due, the server does not keep up. */
const KEEPS_UP = 0.97;

/** `count` streams of `rate` tokens per second. */
function paced(name, count, rate) {
  return {
    name,
    title: `${count} streams of ${rate} tokens/s`,
    transports: ["sse", "ws"],
    metrics: {
      cpu: ["CPU per token", "µs"],
      perCore: ["tokens/s per core", "1/s", "more"],
      ageP50: ["token age p50", "ms"],
      ageP99: ["token age p99", "ms"],
      firstP50: ["first token p50", "ms"],
      firstP99: ["first token p99", "ms"],
      addedP50: ["added to the first token p50", "ms"],
      addedP99: ["added to the first token p99", "ms"],
      kept: ["tokens that came, of those due", "%", "more"],
    },
    async run({ base, transport, load, measured, times }) {
      const group = await load.call("openGroup", { base, transport });
      const order = { tokens: ENDLESS, rate };
      const spec = { count, order, spreadMs: 1000 + 2 * count, patienceMs: 15_000 };
      if (!(await load.call("add", group, spec))) {
        await load.call("stop", group);
        const never = Number.POSITIVE_INFINITY;
        const note = "did not begin them all";
        return { ageP50: never, ageP99: never, firstP50: never, firstP99: never, kept: 0, note };
      }
      await sleep(times.pacedWarmMs);
      await load.call("mark", group);
      const { value, cpu } = await measured(async () => {
        await sleep(times.pacedMs);
        return load.call("read", group);
      });
      const first = await load.call("firstTokens", { base, transport, ...times.first });
      await load.call("stop", group);
      const kept = value.tokens / (count * rate * value.seconds);
      const each = cpu / value.tokens;
      return {
        cpu: each,
        perCore: 1e6 / each,
        ageP50: value.age.p50,
        ageP99: value.age.p99,
        firstP50: first.p50,
        firstP99: first.p99,
        kept: 100 * kept,
        note: kept < KEEPS_UP ? "saturated" : undefined,
      };
    },
  };
}

export const paced50 = paced("paced-50", 50, 50);
export const paced500 = paced("paced-500", 500, 30);

/** Nothing else goes on. */
export const first = {
  name: "first",
  title: "One stream",
  transports: ["sse", "ws"],
  metrics: {
    cpu: ["CPU per run of 3 tokens", "µs"],
    freshP50: ["first token p50, first runs", "ms"],
    firstP50: ["first token p50", "ms"],
    firstP99: ["first token p99", "ms"],
    addedP50: ["added to the first token p50", "ms"],
    addedP99: ["added to the first token p99", "ms"],
  },
  async run({ base, transport, load, measured, times }) {
    const { fresh, warmUp, count, ms } = times.alone;
    const runs = (number) => load.call("firstTokens", { base, transport, count: number, warmUp: 0, ms });
    const first = await runs(fresh);
    await runs(warmUp);
    const { value, cpu } = await measured(() => runs(count));
    const { p50, p99 } = value;
    return { cpu: cpu / value.count, freshP50: first.p50, firstP50: p50, firstP99: p99 };
  },
};
