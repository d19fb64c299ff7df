/** Eight streams as fast as they go: what a token costs when nothing is waited for. */

const LANES = 8;
/** An answer of a reasoning model's length; what a request costs is spread over its tokens. */
const TOKENS = 2000;

export const saturation = {
  name: "saturation",
  title: "8 streams at full speed",
  transports: ["sse", "ws"],
  metrics: {
    cpu: ["CPU per token", "µs"],
    perCore: ["tokens/s per core", "1/s", "more"],
    rate: ["tokens/s reached", "1/s", "more"],
  },
  async run({ base, transport, load, measured, times }) {
    const spec = { base, transport, lanes: LANES, tokens: TOKENS };
    // The first warms up; the second tells how many runs fill the time.
    await load.call("saturate", { ...spec, runs: 3 });
    const trial = await load.call("saturate", { ...spec, runs: 2 });
    const runs = Math.max(1, Math.round((2 * times.saturationMs) / 1000 / trial.seconds));
    const { value, cpu } = await measured(() => load.call("saturate", { ...spec, runs }));
    const each = cpu / value.tokens;
    return { cpu: each, perCore: 1e6 / each, rate: value.tokens / value.seconds };
  },
};
