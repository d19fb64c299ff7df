/** The project that Parley serves in the benchmark: a model and nothing else, as the other servers have it. */
export default {
  name: "Benchmark",
  agent: "Relay",
  model: "compatible/bench",
  instructions: "Answer.",
};
