/** The project of `bench/server/project`, in a language that Node 20 cannot read. */

interface Agent {
  readonly name: string;
  readonly agent: string;
  readonly model: string;
  readonly instructions: string;
}

export default {
  name: "Benchmark",
  agent: "Relay",
  model: "compatible/bench",
  instructions: "Answer.",
} satisfies Agent;
