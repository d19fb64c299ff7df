/** Milliseconds that the wheel holds, a power of two: no interval may be longer. */
const SLOTS = 1024;

/** Calls many functions back at their own steady intervals with one timer: a wheel with a slot per millisecond. */
export class Pacer {
  #slots = Array.from({ length: SLOTS }, () => []);
  #cursor = 0;
  #count = 0;
  #timer;

  /** Calls `fire` each `interval` milliseconds until it returns false, or the function that this returns is called. */
  add(interval, fire) {
    if (!(interval >= 1 && interval < SLOTS)) throw new RangeError(`no interval: ${interval}`);
    const entry = { due: performance.now() + interval, interval, fire };
    if (this.#count++ === 0) {
      this.#cursor = Math.floor(performance.now());
      this.#timer = setInterval(this.#turn, 1);
    }
    this.#place(entry);
    return () => {
      entry.fire = () => false;
    };
  }

  #place(entry) {
    // What is already due comes with the slot after the one that is being emptied.
    const slot = Math.max(Math.floor(entry.due), this.#cursor);
    this.#slots[slot & (SLOTS - 1)].push(entry);
  }

  #turn = () => {
    const last = Math.floor(performance.now());
    while (this.#cursor <= last) {
      const at = this.#cursor++ & (SLOTS - 1);
      const entries = this.#slots[at];
      this.#slots[at] = [];
      for (const entry of entries) this.#fire(entry);
    }
    if (this.#count === 0) clearInterval(this.#timer);
  };

  #fire(entry) {
    if (entry.fire() === false) {
      this.#count--;
      return;
    }
    entry.due += entry.interval;
    this.#place(entry);
  }
}
