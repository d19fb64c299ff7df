/** The processes of the benchmark, and calls into them over Node's channel between parent and child. None outlives the driver. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const START_MS = 20_000;

const children = new Set();

process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});

export const pathOf = (name) => fileURLToPath(new URL(name, import.meta.url));

/** In a child: serves these functions to the parent, and ends with it. */
export function serve(functions) {
  process.on("message", async ({ id, name, args }) => {
    try {
      process.send({ id, value: await functions[name](...args) });
    } catch (error) {
      process.send({ id, error: error.stack });
    }
  });
  process.on("disconnect", () => process.exit());
}

/** One child of the driver. */
export class Child {
  /** Where it listens; ends in a slash. */
  url;
  #name;
  #process;
  #calls = new Map();
  #lastId = 0;
  #errors = "";
  #exited;

  constructor(name, args, env = {}) {
    const { PATH, HOME, TMPDIR, LANG } = process.env;
    this.#name = name;
    this.#process = spawn(process.execPath, args, {
      // Nothing of the caller's environment may change what is measured.
      env: { PATH, HOME, TMPDIR, LANG, NODE_ENV: "production", ...env },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    children.add(this.#process);
    this.#process.stderr.on("data", (text) => {
      this.#errors = `${this.#errors}${text}`.slice(-4000);
    });
    this.#process.on("message", ({ id, value, error }) => {
      const call = this.#calls.get(id);
      this.#calls.delete(id);
      if (error === undefined) call?.resolve(value);
      else call?.reject(new Error(`${name}: ${error}`));
    });
    this.#exited = once(this.#process, "exit").then(() => {
      children.delete(this.#process);
      for (const { reject } of this.#calls.values()) reject(this.#problem("ended"));
      this.#calls.clear();
    });
  }

  /** Resolves when it has printed its URL. */
  async listening() {
    let printed = "";
    const deadline = setTimeout(() => this.#process.kill(), START_MS);
    this.url = await new Promise((resolve, reject) => {
      this.#exited.then(() => reject(this.#problem("did not start")));
      this.#process.stdout.on("data", (text) => {
        printed += text;
        const [url] = /^http:\/\/\S+$/m.exec(printed) ?? [];
        if (url !== undefined && printed.endsWith("\n")) resolve(url);
      });
    });
    clearTimeout(deadline);
    return this;
  }

  call(name, ...args) {
    return new Promise((resolve, reject) => {
      const id = ++this.#lastId;
      this.#calls.set(id, { resolve, reject });
      this.#process.send({ id, name, args }, (error) => error && reject(this.#problem(error.message)));
    });
  }

  async stop() {
    this.#process.kill("SIGKILL");
    await this.#exited;
  }

  #problem(what) {
    return new Error(`${this.#name} ${what}. ${this.#errors.trim() || "It wrote no error."}`);
  }
}
