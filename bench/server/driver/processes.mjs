/** The processes of the benchmark. None outlives it. */

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Remote } from "../rpc.mjs";

const children = new Set();

process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(130));

/** Longest wait for a process to say where it listens. */
const START_MS = 20_000;

export function pathOf(name) {
  return fileURLToPath(new URL(`../${name}`, import.meta.url));
}

/** Nothing of the caller's environment may change what is measured, but what the system needs to run a program. */
export function environment(more) {
  const { PATH, HOME, TMPDIR, LANG } = process.env;
  return { PATH, HOME, TMPDIR, LANG, NODE_ENV: "production", ...more };
}

/** One child of the driver, with a channel for calls. */
export class Process {
  /** Where it listens; ends in a slash. */
  url;
  #child;
  #remote;
  #name;
  #errors = "";
  #exited;

  constructor(name, args, env = {}, { channel = true } = {}) {
    const stdio = ["ignore", "pipe", "pipe", ...(channel ? ["ipc"] : [])];
    const child = spawn(process.execPath, args, { env: environment(env), stdio });
    this.#name = name;
    this.#child = child;
    children.add(child);
    child.stderr.on("data", (text) => {
      this.#errors = `${this.#errors}${text}`.slice(-4000);
    });
    this.#exited = new Promise((resolve) => child.once("exit", resolve));
    child.once("exit", () => {
      children.delete(child);
      this.#remote?.fail(this.#reason("ended"));
    });
    if (channel) this.#remote = new Remote(name, child);
  }

  /** Resolves when it has printed its URL. */
  async listening() {
    let printed = "";
    this.url = await new Promise((resolve, reject) => {
      const fail = () => reject(new Error(this.#reason("did not start")));
      const timer = setTimeout(fail, START_MS);
      this.#exited.then(fail);
      this.#child.stdout.on("data", (text) => {
        printed += text;
        const [url] = /^http:\/\/\S+$/m.exec(printed) ?? [];
        if (url === undefined || !printed.endsWith("\n")) return;
        clearTimeout(timer);
        resolve(url);
      });
    });
    return this;
  }

  get pid() {
    return this.#child.pid;
  }

  call(method, ...args) {
    return this.#remote.call(method, ...args);
  }

  /** @throws Error when it has ended. */
  assertRunning() {
    const { exitCode, signalCode } = this.#child;
    if (exitCode !== null || signalCode !== null) throw new Error(this.#reason("ended"));
  }

  async stop() {
    this.#child.kill("SIGKILL");
    await this.#exited;
  }

  #reason(what) {
    const { exitCode, signalCode } = this.#child;
    const how = exitCode ?? signalCode ?? "still running";
    return `${this.#name} ${what} (${how}). ${this.#errors.trim() || "It wrote no error."}`;
  }
}
