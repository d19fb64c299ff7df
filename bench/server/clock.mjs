/** One clock for all processes of the benchmark: `process.hrtime` reads the machine's monotonic clock. */

/** `process.hrtime` less `performance.now`, which is quicker to ask: from the closest of many looks at both. */
function measureOffset() {
  let closest = Number.POSITIVE_INFINITY;
  let offset = 0;
  for (let tries = 0; tries < 200; tries++) {
    const before = performance.now();
    const [seconds, nanoseconds] = process.hrtime();
    const after = performance.now();
    if (after - before >= closest) continue;
    closest = after - before;
    offset = seconds * 1e3 + nanoseconds / 1e6 - (before + after) / 2;
  }
  return offset;
}

const OFFSET = measureOffset();

/** Milliseconds that another process of this machine can subtract from its own. */
export function now() {
  return performance.now() + OFFSET;
}

export function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
