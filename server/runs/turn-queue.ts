/**
 * Collects what is to be done at the end of the current turn of the event loop. What many events ask for
 * within one turn is done once, and what one event asks for is not delayed: nothing else comes in between.
 */
export class TurnQueue {
  #tasks: (() => void)[] = [];

  add(task: () => void): void {
    if (this.#tasks.push(task) === 1) setImmediate(this.#run);
  }

  readonly #run = (): void => {
    const tasks = this.#tasks;
    this.#tasks = [];
    for (const task of tasks) task();
  };
}
