/** How soon the model stops for a client that is gone. */

import { median } from "../stats.mjs";

/** Later than this counts as never. */
const LONGEST_MS = 5000;

let nextId = 1;

export const disconnect = {
  name: "disconnect",
  title: "From disconnect to upstream abort",
  transports: ["sse", "ws"],
  metrics: { p50: ["median", "ms"], max: ["longest", "ms"] },
  async run({ base, transport, load, provider, times }) {
    const waits = [];
    for (let left = times.disconnects; left > 0; left--) {
      const id = nextId++;
      const at = await load.call("cutOne", { base, transport, id });
      const closed = await provider.call("closedAt", id, LONGEST_MS);
      waits.push(closed === undefined ? Number.POSITIVE_INFINITY : closed - at);
    }
    const note = waits.includes(Number.POSITIVE_INFINITY) ? "not aborted" : undefined;
    return { p50: median(waits), max: Math.max(...waits), note };
  },
};
