import { within } from "./deadline.ts";

/** A hook that queues its arguments; `next` returns the next one, waiting for a call if needed. */
export function onceCalled<Given>(): { hook(given: Given): void; next(): Promise<Given> } {
  const got: Given[] = [];
  let tell = () => {};
  return {
    hook(given) {
      got.push(given);
      tell();
    },
    async next() {
      const arrived = new Promise<void>((resolve) => {
        tell = resolve;
      });
      if (got.length === 0) await within(arrived, "the call of the hook");
      return got.shift() as Given;
    },
  };
}
