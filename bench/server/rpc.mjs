/** Calls from the driver into its processes, over Node's own channel between parent and child. */

/** Serves these functions to the parent, and ends this process with it. */
export function serve(handlers) {
  process.on("message", async ({ id, method, args }) => {
    try {
      process.send({ id, value: await handlers[method](...args) });
    } catch (error) {
      process.send({ id, error: error instanceof Error ? error.stack : String(error) });
    }
  });
  process.on("disconnect", () => process.exit());
}

/** The other end: calls into one child. */
export class Remote {
  #child;
  #name;
  #calls = new Map();
  #next = 0;

  constructor(name, child) {
    this.#name = name;
    this.#child = child;
    child.on("message", ({ id, value, error }) => {
      const call = this.#calls.get(id);
      this.#calls.delete(id);
      if (error === undefined) call?.resolve(value);
      else call?.reject(new Error(`${name}: ${error}`));
    });
  }

  call(method, ...args) {
    return new Promise((resolve, reject) => {
      const id = this.#next++;
      this.#calls.set(id, { resolve, reject });
      this.#child.send({ id, method, args }, (error) => {
        if (error) reject(new Error(`${this.#name} cannot be reached: ${error.message}`));
      });
    });
  }

  /** Rejects what is still waited for: the process is gone. */
  fail(reason) {
    for (const { reject } of this.#calls.values()) reject(new Error(reason));
    this.#calls.clear();
  }
}
