/**
 * Counters, gauges and histograms in Prometheus' text format (0.0.4). Our own, because the usual package brings
 * @opentelemetry/api with it, which must stay optional, and quantile sketches that nothing here needs.
 */

type Labels = Readonly<Record<string, string>>;
type Kind = "counter" | "gauge" | "histogram";

interface Sample {
  suffix: string;
  labels: Labels;
  value: number;
}

interface Family {
  name: string;
  help: string;
  kind: Kind;
  samples(): Iterable<Sample>;
}

export interface Counter {
  /** `by` is never negative. */
  add(by: number, labels?: Labels): void;
  /** Where the value for these labels is counted. */
  of(labels: Labels): { value: number };
}

export interface Histogram {
  observe(value: number, labels?: Labels): void;
}

/** All metrics of a process. Each name is given once; label values come from sets that do not grow. */
export class Registry {
  readonly #families: Family[] = [];

  counter(name: string, help: string): Counter {
    const series = new Series(() => ({ value: 0 }));
    this.#families.push({
      name,
      help,
      kind: "counter",
      *samples() {
        for (const [labels, { value }] of series.all()) yield { suffix: "", labels, value };
      },
    });
    return {
      add(by, labels = {}) {
        series.of(labels).value += by;
      },
      of: (labels) => series.of(labels),
    };
  }

  /** `read` is asked with each rendering; one that returns `undefined` is left out. */
  gauge(
    name: string,
    help: string,
    read: () => number | undefined,
    { kind = "gauge", labels = {} }: { kind?: "gauge" | "counter"; labels?: Labels } = {},
  ): void {
    this.#families.push({
      name,
      help,
      kind,
      *samples() {
        const value = read();
        if (value !== undefined) yield { suffix: "", labels, value };
      },
    });
  }

  /** `bounds` are the upper ends of the buckets, ascending, without the infinite one. */
  histogram(name: string, help: string, bounds: readonly number[]): Histogram {
    const series = new Series(() => ({ buckets: bounds.map(() => 0), count: 0, sum: 0 }));
    this.#families.push({
      name,
      help,
      kind: "histogram",
      *samples() {
        for (const [labels, { buckets, count, sum }] of series.all()) {
          for (const [index, value] of buckets.entries()) {
            yield { suffix: "_bucket", labels: { ...labels, le: String(bounds[index]) }, value };
          }
          yield { suffix: "_bucket", labels: { ...labels, le: "+Inf" }, value: count };
          yield { suffix: "_sum", labels, value: sum };
          yield { suffix: "_count", labels, value: count };
        }
      },
    });
    return {
      observe(value, labels = {}) {
        const one = series.of(labels);
        one.count++;
        one.sum += value;
        for (const [index, bound] of bounds.entries()) {
          if (value <= bound) one.buckets[index] = (one.buckets[index] ?? 0) + 1;
        }
      },
    };
  }

  render(): string {
    let text = "";
    for (const { name, help, kind, samples } of this.#families) {
      const lines = [...samples()].map(
        ({ suffix, labels, value }) => `${name}${suffix}${labelText(labels)} ${value}\n`,
      );
      if (lines.length === 0) continue;
      text += `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n${lines.join("")}`;
    }
    return text;
  }
}

/** One value for each set of labels. */
class Series<Value> {
  readonly #make: () => Value;
  readonly #values = new Map<string, [labels: Labels, value: Value]>();

  constructor(make: () => Value) {
    this.#make = make;
  }

  of(labels: Labels): Value {
    const key = keyOf(labels);
    const known = this.#values.get(key);
    if (known !== undefined) return known[1];
    const value = this.#make();
    this.#values.set(key, [labels, value]);
    return value;
  }

  all(): Iterable<[labels: Labels, value: Value]> {
    return this.#values.values();
  }
}

/** Quicker than what is rendered, and asked for with each run. */
function keyOf(labels: Labels): string {
  let key = "";
  for (const name in labels) key += `${name}\0${labels[name]}\0`;
  return key;
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escapeLabel(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
