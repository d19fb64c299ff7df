/**
 * `parley dev` is two processes: a supervisor watches the files and starts the other one, which serves the agent and is
 * notified of changes. If that one ends by itself, or hangs, the next change of a file starts it again, at the same address.
 */

import { type ChildProcess, fork } from "node:child_process";
import { url as debuggerUrl } from "node:inspector";
import { onHangup } from "../process-life.ts";
import { isRecord } from "../protocol/json.ts";
import { ProjectWatcher } from "./watch.ts";

/** What the next process keeps, because open pages know it. */
export interface Kept {
  readonly port: number;
  readonly token: string;
}

/** What the serving process reports at its start, and after each load of the agent. */
interface Serving {
  readonly kept: Kept;
  /** The files of the agent, which are watched wherever they are. */
  readonly files: readonly string[];
  /** Whether a debugger may have stopped it at a breakpoint, where it answers nothing. */
  readonly isDebugged: boolean;
}

/** Variable with the supervisor's process id, and what is kept. The programs that a project starts do not inherit it. */
const SUPERVISED = "PARLEY_DEV";

/** The serving process sends it back at once, unless code of the agent blocks it. */
interface Ping {
  readonly number: number;
  /** Paths of files that have changed. */
  readonly changed: readonly string[] | undefined;
}

/** When the serving process is pinged after a change: it is loading the agent by then. */
const LOADING_AFTER_MS = 500;

/** How long the process may block after a change, when it may have much to load, and after a signal. */
const MAX_BLOCKED_MS = 5000;
const MAX_BLOCKED_AT_END_MS = 1000;

const say = (sentence: string) => process.stderr.write(`parley: ${sentence}\n`);

/** The agent's code may send messages of its own. */
const isPing = (message: unknown): message is Ping => isRecord(message) && typeof message.number === "number";
const isServing = (message: unknown): message is Serving => isRecord(message) && isRecord(message.kept);

/** The serving process' side. */
export class Supervised {
  /** Absent at the first start. */
  readonly kept: Kept | undefined;
  /** Resolves when the supervisor watches for changes. */
  readonly isWatched: Promise<void>;

  private constructor(kept: Kept | undefined) {
    this.kept = kept;
    this.isWatched = new Promise((resolve) => {
      process.on("message", (message) => {
        if (!isPing(message)) return;
        process.send?.(message);
        resolve();
      });
    });
    // The supervisor was killed.
    process.once("disconnect", () => process.kill(process.pid, "SIGTERM"));
  }

  /** `undefined` in a process that has no supervisor yet. */
  static here(): Supervised | undefined {
    const value = process.env[SUPERVISED];
    delete process.env[SUPERVISED];
    if (value === undefined || process.send === undefined) return undefined;
    const { parent, kept } = JSON.parse(value) as { parent: number; kept?: Kept };
    return parent === process.ppid ? new Supervised(kept) : undefined;
  }

  onChange(listener: (changed: ReadonlySet<string>) => void): void {
    process.on("message", (message) => {
      if (isPing(message) && message.changed !== undefined) listener(new Set(message.changed));
    });
  }

  /** To be called when it serves, and after each load. From then on the listener of `onChange` gets changes. */
  serves(kept: Kept, files: readonly string[]): void {
    const serving: Serving = { kept, files, isDebugged: debuggerUrl() !== undefined };
    process.send?.(serving);
  }
}

/** What the supervisor needs of the other process: a part of `ChildProcess`. */
export type Child = Pick<ChildProcess, "kill"> & {
  send(message: unknown, callback: () => void): boolean;
  on(event: "message", listener: (message: unknown) => void): unknown;
  once(event: "exit", listener: (code: number | null) => void): unknown;
};

interface SupervisorParts {
  start(kept: Kept | undefined): Child;
  /** Watches these files, too, from now on. */
  follow(files: readonly string[]): void;
  /** Ends this process. */
  exit(code: number): void;
  say(sentence: string): void;
}

type State = "starting" | "serving" | "ended";

/** The supervisor's side. */
export class Supervisor {
  readonly #parts: SupervisorParts;
  #child: Child;
  #state: State = "starting";
  #serving: Serving | undefined;
  /** Changes that the other process has not confirmed. While it starts, it may have read a file before its change. */
  readonly #untold = new Set<string>();
  #lastPing = 0;
  #isBlocked = false;
  #isStopping = false;
  #deadline: NodeJS.Timeout | undefined;

  constructor(parts: SupervisorParts) {
    this.#parts = parts;
    this.#child = this.#start();
  }

  #start(): Child {
    this.#state = "starting";
    this.#isBlocked = false;
    this.#untold.clear();
    const child = this.#parts.start(this.#serving?.kept);
    child.on("message", (message) => this.#onMessage(message));
    child.once("exit", (code) => this.#onExit(code ?? 1));
    return child;
  }

  #onMessage(message: unknown): void {
    if (isServing(message)) this.#onServing(message);
    // A late answer does not confirm later changes.
    if (!isPing(message) || message.number !== this.#lastPing) return;
    this.#untold.clear();
    if (message.changed !== undefined) return;
    clearTimeout(this.#deadline);
    // A running answer may still block it.
    if (this.#isStopping) this.#endUnlessItAnswers(MAX_BLOCKED_AT_END_MS, MAX_BLOCKED_AT_END_MS);
  }

  #onServing(serving: Serving): void {
    const wasStarting = this.#state === "starting";
    this.#state = "serving";
    this.#serving = serving;
    this.#parts.follow(serving.files);
    if (!wasStarting) return;
    if (this.#untold.size > 0) this.#tell();
    else this.#ping();
  }

  #onExit(code: number): void {
    clearTimeout(this.#deadline);
    const { exit, say } = this.#parts;
    this.#state = "ended";
    // A mistake at the first start ends the command, with the sentence that the process has written.
    if (this.#isStopping || this.#serving === undefined) exit(code);
    else if (this.#isBlocked || this.#untold.size > 0) this.#child = this.#start();
    else if (code === 0) exit(0);
    else say("The next change of a file starts the agent again. Ctrl-C stops Parley.");
  }

  onChange(changed: ReadonlySet<string>): void {
    if (this.#isStopping) return;
    // Watches a new folder before it is read, so that no change in it is missed.
    if (this.#serving !== undefined) this.#parts.follow(this.#serving.files);
    if (this.#state === "ended") {
      this.#child = this.#start();
      return;
    }
    for (const path of changed) this.#untold.add(path);
    if (this.#state === "serving") this.#tell();
    else this.#endUnlessItAnswers(MAX_BLOCKED_MS, LOADING_AFTER_MS);
  }

  #tell(): void {
    this.#endUnlessItAnswers(MAX_BLOCKED_MS, LOADING_AFTER_MS);
    this.#ping([...this.#untold]);
  }

  #ping(changed?: readonly string[]): void {
    const ping: Ping = { number: ++this.#lastPing, changed };
    this.#child.send(ping, () => {});
  }

  /** Kills the process if it does not answer a ping: a blocked process does not react to signals either. */
  #endUnlessItAnswers(ms: number, afterMs = 0): void {
    this.#lastPing++;
    clearTimeout(this.#deadline);
    if (this.#serving?.isDebugged) return;
    this.#deadline = setTimeout(() => {
      this.#ping();
      this.#deadline = setTimeout(() => this.#endBlocked(ms), ms);
    }, afterMs);
  }

  #endBlocked(ms: number): void {
    this.#isBlocked = true;
    this.#parts.say(`The agent's code has blocked its process for ${ms / 1000} s. That process is ended.`);
    this.#child.kill("SIGKILL");
  }

  stop(signal: NodeJS.Signals): void {
    this.#isStopping = true;
    if (this.#state === "ended") {
      this.#parts.exit(0);
      return;
    }
    // Windows has no signals: the console notifies both processes, and this would end the other one at once.
    if (process.platform !== "win32") this.#child.kill(signal);
    this.#endUnlessItAnswers(MAX_BLOCKED_AT_END_MS);
  }

  hangup(): void {
    this.#child.kill("SIGHUP");
  }
}

/** Never resolves. */
export function superviseDev(folder: string): Promise<never> {
  const watcher = new ProjectWatcher({ folder, onChange: (changed) => supervisor.onChange(changed), onProblem: say });
  const supervisor = new Supervisor({
    start(kept) {
      const env = { ...process.env, [SUPERVISED]: JSON.stringify({ parent: process.pid, kept }) };
      return fork(process.argv[1] as string, process.argv.slice(2), { env });
    },
    follow: (files) => watcher.follow(files),
    exit: (code) => process.exit(code),
    say,
  });
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => supervisor.stop(signal));
  onHangup(() => supervisor.hangup());
  return new Promise(() => {});
}
