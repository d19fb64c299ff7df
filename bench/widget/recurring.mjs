/** What of the long tasks of several runs is the page's own: it comes again at the same place of another run. */

/** Shorter ones are of no interest, and there are many. */
const SHORT_MS = 5;

/**
 * The longest time that tasks at one place have in two runs at least. A processor that was lent to another machine in the middle
 * of a task makes one of them long, anywhere, and hardly the same one twice.
 * @param runs of each run the tasks: `ms`, and their place `at` in it, from 0 to 1
 * @param apart how far apart the same work may be in two runs
 */
export function longestRecurring(runs, apart) {
  const long = runs.map((tasks) => tasks.filter(({ ms }) => ms >= SHORT_MS));
  const near = (place) => (tasks) => tasks.filter(({ at }) => Math.abs(at - place) <= apart).map(({ ms }) => ms);
  const times = long.flatMap((tasks, run) =>
    tasks.map(({ at, ms }) => {
      const others = long.filter((_, other) => other !== run);
      return Math.min(ms, Math.max(0, ...others.flatMap(near(at))));
    }),
  );
  return Math.max(0, ...times);
}
