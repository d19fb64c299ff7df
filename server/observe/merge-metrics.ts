/** Figures of several processes as those of one server. */

/** What is not a number of things: of these the largest stands for all. */
const LARGEST = /^(?:parley_info|process_start_time_seconds|nodejs_eventloop_lag_)/;

/** Merges pages of `Registry.render`: counts, gauges and buckets are added up. */
export function mergeMetrics(pages: readonly string[]): string {
  const families = new Map<string, Map<string, number>>();
  for (const page of pages) {
    for (const text of page.split(/^(?=# HELP )/m)) {
      const [help = "", type = "", ...samples] = text.trimEnd().split("\n");
      if (help === "") continue;
      const head = `${help}\n${type}\n`;
      const merged = families.get(head) ?? new Map<string, number>();
      families.set(head, merged);
      for (const sample of samples) {
        const at = sample.lastIndexOf(" ");
        const [name, value] = [sample.slice(0, at), Number(sample.slice(at + 1))];
        const before = merged.get(name);
        if (before === undefined) merged.set(name, value);
        else merged.set(name, LARGEST.test(name) ? Math.max(before, value) : before + value);
      }
    }
  }
  let text = "";
  for (const [head, samples] of families) {
    text += head;
    for (const [name, value] of samples) text += `${name} ${value}\n`;
  }
  return text;
}
