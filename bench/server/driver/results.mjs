import { median } from "../stats.mjs";

/** All measurements, and what they say side by side. */
export class Results {
  /** As they came: for the JSON. */
  measurements = [];

  /** `values` by the scenario's metrics; `note` says what a reader must know. */
  add(where, { note, ...values }) {
    this.measurements.push({ ...where, values, ...(note && { note }) });
    const direct = this.#one({ ...where, transport: "sse", target: "direct" });
    if (direct === undefined) return;
    for (const measurement of this.#of(where.scenario, where.round)) addToFirst(measurement, direct);
  }

  #of(scenario, round) {
    return this.measurements.filter((one) => one.scenario === scenario && one.round === round);
  }

  #one({ scenario, round, transport, target }) {
    return this.#of(scenario, round).find((one) => one.transport === transport && one.target === target);
  }

  /** Median and spread over the rounds; `undefined` where nothing was measured. */
  cell({ scenario, transport, target, metric }) {
    const rounds = this.measurements.filter(
      (one) => one.scenario === scenario && one.transport === transport && one.target === target,
    );
    const values = rounds.map((one) => one.values[metric]).filter(isMeasured);
    if (values.length === 0) return undefined;
    const notes = [...new Set(rounds.map(({ note }) => note).filter(Boolean))];
    return { median: median(values), low: Math.min(...values), high: Math.max(...values), notes };
  }

  /**
   * One server's value through another's, or with `minus` less the other's: within each round, because the
   * machine's speed changes between rounds, and then the median.
   */
  compare({ scenario, transport, metric }, target, base, minus = false) {
    const both = this.measurements
      .filter((one) => one.scenario === scenario && one.transport === transport && one.target === target)
      .map((one) => [one.values[metric], this.#one({ ...one, target: base })?.values[metric]])
      .filter((pair) => pair.every(isMeasured));
    if (both.length === 0) return undefined;
    const values = both.map(([ours, theirs]) => (minus ? ours - theirs : ours / theirs));
    return { median: median(values), low: Math.min(...values), high: Math.max(...values) };
  }
}

function isMeasured(value) {
  return typeof value === "number" && !Number.isNaN(value);
}

/** What a server adds to the first token: the rest of the time is the provider's and the client's. */
function addToFirst({ target, values }, { values: direct }) {
  if (target === "direct") return;
  values.addedP50 = values.firstP50 - direct.firstP50;
  values.addedP99 = values.firstP99 - direct.firstP99;
}
