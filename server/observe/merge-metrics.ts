/** Figures of several processes as those of one server. */

/** What is not a number of things: of these the largest stands for all. */
const LARGEST = /^(?:parley_info|process_start_time_seconds|nodejs_eventloop_lag_)/;

interface Family {
  /** `counter`, `gauge` or `histogram`. */
  readonly kind: string;
  /** By name and labels. */
  readonly samples: Map<string, number>;
}

/** Merges pages of `Registry.render`: counts, gauges and buckets are added up. */
export function mergeMetrics(pages: readonly string[]): string {
  return render(merge(pages));
}

/** The same without gauges: what is left of processes that have ended. */
export function totalsOf(pages: readonly string[]): string {
  return render([...merge(pages)].filter(([, { kind }]) => kind !== "gauge"));
}

/** By their head: the lines `HELP` and `TYPE`. */
function merge(pages: readonly string[]): Map<string, Family> {
  const families = new Map<string, Family>();
  for (const page of pages) {
    for (const text of page.split(/^(?=# HELP )/m)) {
      const [help = "", type = "", ...samples] = text.trimEnd().split("\n");
      if (help === "") continue;
      const head = `${help}\n${type}\n`;
      const kind = type.slice(type.lastIndexOf(" ") + 1);
      const family = families.get(head) ?? { kind, samples: new Map() };
      families.set(head, family);
      for (const sample of samples) add(family.samples, sample);
    }
  }
  return families;
}

function add(samples: Map<string, number>, sample: string): void {
  const at = sample.lastIndexOf(" ");
  const [name, value] = [sample.slice(0, at), Number(sample.slice(at + 1))];
  const before = samples.get(name);
  if (before === undefined) samples.set(name, value);
  else samples.set(name, LARGEST.test(name) ? Math.max(before, value) : before + value);
}

function render(families: Iterable<[head: string, Family]>): string {
  let text = "";
  for (const [head, { samples }] of families) {
    text += head;
    for (const [name, value] of samples) text += `${name} ${value}\n`;
  }
  return text;
}
