/** `parley dev`'s supervisor with simulated processes, whose events happen in any order. */

import assert from "node:assert/strict";
import { type mock, test } from "node:test";
import fc from "fast-check";
import { type Child, Supervisor } from "../../server/dev/supervisor.ts";

/** What the last saved version of the file does when it is loaded. */
const SAVED = ["good", "mistake", "ends", "blocks"] as const;
type Saved = (typeof SAVED)[number];

/** The project's only file. */
interface File {
  version: number;
  does: Saved;
}

/** Receives messages, loads the file and ends, each in separate steps. */
class Process implements Child {
  state: "starting" | "serving" | "blocked" | "dead" = "starting";
  /** The version that was loaded. */
  read = 0;
  readonly #file: File;
  readonly #inbox: unknown[] = [];
  readonly #outbox: unknown[] = [];
  #exitCode: number | undefined;
  #hasServed = false;
  #mayGoOn = false;
  #hear = (_message: unknown) => {};
  #exit = (_code: number | null) => {};

  constructor(file: File) {
    this.#file = file;
  }

  on(_event: "message", listener: (message: unknown) => void): void {
    this.#hear = listener;
  }

  once(_event: "exit", listener: (code: number | null) => void): void {
    this.#exit = listener;
  }

  send(message: unknown, callback: () => void): boolean {
    this.#inbox.push(message);
    callback();
    return true;
  }

  kill(signal?: NodeJS.Signals | number): boolean {
    // A process that serves has a signal listener, which is not called while code blocks the process.
    if (this.state === "blocked" && this.#hasServed && signal !== "SIGKILL") this.#inbox.push(signal);
    else this.end(0);
    return true;
  }

  end(code: number): void {
    if (this.state === "dead") return;
    this.state = "dead";
    this.#mayGoOn = false;
    this.#exitCode = code;
  }

  /** Blocks until `goOn`. Code that blocks while it is loaded does so for ever. */
  block(): void {
    if (this.state === "serving") this.state = "blocked";
    else return;
    this.#mayGoOn = true;
  }

  goOn(): void {
    if (this.#mayGoOn) this.state = "serving";
    this.#mayGoOn = false;
  }

  /** Runs one step; returns whether there was one. */
  step(): boolean {
    if (this.state === "starting") this.#load();
    else if (this.state === "serving" && this.#inbox.length > 0) this.#take(this.#inbox.shift());
    else if (this.#outbox.length > 0) this.#hear(this.#outbox.shift());
    else if (this.#exitCode !== undefined) {
      const code = this.#exitCode;
      this.#exitCode = undefined;
      this.#exit(code);
    } else return false;
    return true;
  }

  #take(message: unknown): void {
    if (typeof message === "string") this.end(0);
    else {
      this.#outbox.push(message);
      if ((message as { changed?: string[] }).changed !== undefined) this.#load();
    }
  }

  #load(): void {
    this.read = this.#file.version;
    const isMistake = this.#file.does === "mistake";
    if (this.#file.does === "ends" || (isMistake && !this.#hasServed)) this.end(1);
    else if (this.#file.does === "blocks") this.state = "blocked";
    else {
      this.state = "serving";
      this.#hasServed = true;
      this.#outbox.push({ kept: { port: 1, token: "t" }, files: [], isDebugged: false });
    }
  }
}

type Step =
  | { readonly save: Saved }
  | { readonly wait: number }
  | "step"
  | "ends by itself"
  | "blocks"
  | "goes on"
  | "is stopped";

const steps = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.record({ save: fc.constantFrom(...SAVED) }) },
    { weight: 2, arbitrary: fc.record({ wait: fc.constantFrom(100, 500, 1000, 5000) }) },
    { weight: 6, arbitrary: fc.constant("step" as const) },
    { weight: 1, arbitrary: fc.constantFrom("ends by itself" as const, "blocks" as const, "goes on" as const) },
  ),
  { maxLength: 40 },
);

/** Runs the steps and then everything pending; returns the final state. */
function play(all: readonly Step[], timers: typeof mock.timers) {
  const file: File = { version: 1, does: "good" };
  const processes: Process[] = [];
  let exitCode: number | undefined;
  const supervisor = new Supervisor({
    start() {
      assert.ok(!processes.some(({ state }) => state !== "dead"), "two processes at once");
      assert.equal(exitCode, undefined, "a process that nothing supervises");
      const started = new Process(file);
      processes.push(started);
      return started;
    },
    follow() {},
    exit(code) {
      exitCode ??= code;
    },
    say() {},
  });
  const last = () => processes.at(-1) as Process;
  const settle = () => {
    for (let round = 0; round < 30; round++) {
      while (exitCode === undefined && last().step());
      timers.tick(1000);
    }
  };
  for (const step of all) {
    if (exitCode !== undefined) break;
    if (typeof step === "object" && "save" in step) {
      file.version++;
      file.does = step.save;
      supervisor.onChange(new Set(["agent.ts"]));
    } else if (typeof step === "object") timers.tick(step.wait);
    else if (step === "step") last().step();
    // A starting process can only end by the code that it loads.
    else if (step === "ends by itself") last().state !== "starting" && last().end(1);
    else if (step === "blocks") last().block();
    else if (step === "goes on") last().goOn();
    else supervisor.stop("SIGINT");
  }
  settle();
  return { file, process: last(), exitCode };
}

for (const isStopped of [false, true]) {
  const end = isStopped
    ? "a signal leaves no process behind"
    : "the process that is left has read what was saved last, or its end waits for the next save";
  test(`whatever is saved, and whatever the agent's process does, in any order, ${end}`, (t) => {
    const { timers } = t.mock;
    timers.enable({ apis: ["setTimeout"] });
    fc.assert(
      fc.property(steps, (all) => {
        const { file, process, exitCode } = play(isStopped ? [...all, "is stopped"] : all, timers);
        if (isStopped) assert.notEqual(exitCode, undefined);
        if (exitCode === undefined) assert.equal(process.read, file.version);
        else assert.equal(process.state, "dead");
      }),
      { numRuns: 3000 },
    );
  });
}

test("the next save after any end is served by a process that has read it", (t) => {
  const { timers } = t.mock;
  timers.enable({ apis: ["setTimeout"] });
  fc.assert(
    fc.property(steps, (all) => {
      const served: Step[] = ["step", "step"];
      const { file, process, exitCode } = play([...served, ...all, { wait: 5000 }, { save: "good" }], timers);
      if (exitCode !== undefined) return;
      assert.deepEqual([process.state, process.read], ["serving", file.version]);
    }),
    { numRuns: 3000 },
  );
});
