/** Whole answers: JSON without streaming, and short runs on open sockets. */

const LANES = 16;
const TOKENS = 20;

export const answers = {
  name: "answers",
  title: "Answers of 20 tokens: JSON without streaming, or a run on an open socket",
  transports: ["sse", "ws"],
  transportTitles: { sse: "JSON" },
  metrics: {
    rate: ["answers/s reached", "1/s", "more"],
    cpu: ["CPU per answer", "µs"],
    perCore: ["answers/s per core", "1/s", "more"],
  },
  async run({ base, transport, load, measured, times }) {
    const spec = { base, transport, lanes: LANES, tokens: TOKENS };
    await load.call("answers", { ...spec, ms: times.warmMs });
    const { value, cpu } = await measured(() => load.call("answers", { ...spec, ms: times.answersMs }));
    const each = cpu / value.count;
    return { rate: value.count / value.seconds, cpu: each, perCore: 1e6 / each };
  },
};
