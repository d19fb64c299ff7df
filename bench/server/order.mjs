/** What the load client orders of the fake model, inside the user's message, through any server in between. */

/**
 * Starts with a mark that can be found in a body without parsing it. `rate` in tokens per second, 0 for full speed;
 * `id` names the stream for questions to the provider.
 */
export function writeOrder({ tokens, rate = 0, id = 0 }) {
  return `bench:tokens=${tokens};rate=${rate};id=${id};`;
}

export const MARK = "bench:tokens=";

/** The longest that an order can be. */
export const MAX_ORDER_CHARS = 80;

/** The order in a text that holds one. @throws Error */
export function readOrder(text) {
  const found = /bench:tokens=(\d+);rate=([\d.]+);id=(\d+);/.exec(text);
  if (found === null) throw new Error(`This is no order of the benchmark: ${text.slice(0, 200)}`);
  const [tokens, rate, id] = found.slice(1).map(Number);
  return { tokens, rate, id };
}

/** The text of one token: its number in its stream, when it was made, and a space. */
export function writeToken(number, time) {
  return `${number.toString(36)}.${Math.round(time * 1000).toString(36)} `;
}
