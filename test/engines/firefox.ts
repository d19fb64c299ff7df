/** Firefox, driven by Marionette, its internal protocol, to which WebDriver's commands are otherwise translated. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type Driver, until } from "./driver.ts";

const PLACES = [process.env.FIREFOX_PATH ?? "", "/usr/bin/firefox-esr", "/usr/bin/firefox"];

const PREFERENCES = {
  // A free port, whose number Firefox then writes into the profile.
  "marionette.port": 0,
  // Without long transitions, for which tests would have to wait.
  "ui.prefersReducedMotion": 1,
  // Prints errors of pages, but not those of Firefox itself.
  "browser.dom.window.dump.enabled": true,
  "devtools.console.stdout.content": true,
  "devtools.console.stdout.chrome": false,
};

/** Excludes messages that Firefox prints about its own resources: its experiments, as RSLoader. */
const COMPLAINT = /^(console\.error:(?! RSLoader:)|JavaScript error: http)/;

/** Path of Firefox on this machine, if installed. */
export const firefoxPath: string | undefined = PLACES.find((path) => existsSync(path));

export async function launchFirefox(executable: string): Promise<Driver> {
  const profile = mkdtempSync(join(tmpdir(), "parley-firefox-"));
  const preferences = Object.entries(PREFERENCES).map(([name, value]) => `user_pref("${name}", ${value});\n`);
  writeFileSync(join(profile, "user.js"), preferences.join(""));
  const args = ["--headless", "--no-remote", "--marionette", "--remote-allow-system-access", "--profile", profile];
  const firefox = spawn(executable, args, { stdio: ["ignore", "pipe", "pipe"] });
  const complaints: string[] = [];
  for (const output of [firefox.stdout, firefox.stderr]) {
    createInterface(output).on("line", (line) => {
      if (COMPLAINT.test(line)) complaints.push(line);
    });
  }
  const port = join(profile, "MarionetteActivePort");
  await until("Firefox listens", () => existsSync(port) && readFileSync(port, "utf8") !== "");
  const socket = connect(Number(readFileSync(port, "utf8")), "127.0.0.1");
  await once(socket, "data");
  const driver = new Firefox(firefox, socket, profile, complaints);
  await driver.start();
  return driver;
}

type Answer = [type: 1, id: number, error: { error: string; message: string } | null, result: unknown];

class Firefox implements Driver {
  readonly complaints: string[];
  readonly #process: ChildProcess;
  readonly #socket: Socket;
  readonly #profile: string;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #received = Buffer.alloc(0);
  #lastId = 0;

  constructor(process: ChildProcess, socket: Socket, profile: string, complaints: string[]) {
    this.complaints = complaints;
    this.#process = process;
    this.#socket = socket;
    this.#profile = profile;
    socket.on("data", (bytes) => this.#receive(bytes));
  }

  async start(): Promise<void> {
    await this.#call("WebDriver:NewSession", {});
  }

  async send(command: string, parameters: object = {}): Promise<unknown> {
    const result = (await this.#call(`WebDriver:${command}`, parameters)) as { value?: unknown } | null;
    // The result of NewWindow is not wrapped in `value`.
    return result && "value" in result ? result.value : result;
  }

  /** Each message is JSON, preceded by its length in bytes and a colon. */
  #receive(bytes: Buffer): void {
    this.#received = Buffer.concat([this.#received, bytes]);
    for (;;) {
      const start = this.#received.indexOf(":") + 1;
      const end = start + Number(this.#received.subarray(0, start - 1));
      if (start === 0 || this.#received.length < end) return;
      const answer: Answer = JSON.parse(this.#received.toString("utf8", start, end));
      this.#received = this.#received.subarray(end);
      this.#waiting.get(answer[1])?.(answer);
    }
  }

  async #call(name: string, parameters: object): Promise<unknown> {
    this.#lastId += 1;
    const id = this.#lastId;
    const message = JSON.stringify([0, id, name, parameters]);
    const answered = new Promise<Answer>((resolve) => this.#waiting.set(id, resolve));
    this.#socket.write(`${Buffer.byteLength(message)}:${message}`);
    const [, , error, result] = await answered;
    if (error !== null) throw new Error(`${name}: ${error.error}: ${error.message}`);
    return result;
  }

  /** Runs a script in the window that contains the page. */
  async #inWindow(script: string, ...args: unknown[]): Promise<unknown> {
    await this.#call("Marionette:SetContext", { value: "chrome" });
    try {
      return await this.send("ExecuteScript", { script, args });
    } finally {
      await this.#call("Marionette:SetContext", { value: "content" });
    }
  }

  /** The page is resized, because the window cannot be narrower than 500 pixels. */
  async resize(width: number, height: number): Promise<void> {
    await this.send("SetWindowRect", { width: width + 200, height: height + 200 });
    await this.#inWindow(
      `const { style } = gBrowser.selectedBrowser;
      [style.minWidth, style.maxWidth, style.minHeight, style.maxHeight] = arguments;`,
      ...[width, width, height, height].map((pixels) => `${pixels}px`),
    );
  }

  async find(text: string, seen: () => Promise<unknown>): Promise<void> {
    await this.#inWindow("gBrowser.selectedBrowser.finder.fastFind(arguments[0], false, false);", text);
    await seen();
  }

  async close(): Promise<void> {
    const exited = once(this.#process, "exit");
    this.#process.kill("SIGKILL");
    await exited;
    this.#socket.destroy();
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
