/** The order that the load client sends to the fake model inside the message, and functions for time and statistics. */

/** An order, which is found in a body without parsing it. `rate` in tokens per second; 0 is full speed. */
export function writeOrder({ tokens, rate = 0 }) {
  return `bench:tokens=${tokens};rate=${rate};`;
}

export const ORDER = /bench:tokens=(\d+);rate=([\d.]+);/;

/** The longest that an order can be. */
export const MAX_ORDER_CHARS = 60;

/** The text of one token: its number in its stream, when it was made, and a space. */
export function writeToken(number, time) {
  return `${number.toString(36)}.${Math.round(time * 1000).toString(36)} `;
}

/** Milliseconds that another process of this machine can subtract from its own. */
export const now = () => performance.timeOrigin + performance.now();

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The value below which this share of the numbers lies. */
export function quantile(numbers, share) {
  const sorted = Float64Array.from(numbers).sort();
  return sorted.length === 0 ? Number.NaN : sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

export function median(numbers) {
  const sorted = Float64Array.from(numbers).sort();
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return Number.NaN;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
