/** WebKitGTK's MiniBrowser, driven by WebKitWebDriver, on a virtual screen. */

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "../support/free-port.ts";
import { COMMANDS, type Driver, until } from "./driver.ts";

const DRIVER = "/usr/bin/WebKitWebDriver";
const SCREEN = "/usr/bin/Xvfb";

const KEYBOARD_AND_MOUSE = "/usr/bin/xdotool";

/** Minimum height of the window's toolbar in pixels. */
const TOOLBAR = 40;

function findMiniBrowser(): string | undefined {
  if (![DRIVER, SCREEN, KEYBOARD_AND_MOUSE].every((path) => existsSync(path))) return undefined;
  const folders = readdirSync("/usr/lib").filter((name) => name.endsWith("-linux-gnu"));
  const places = folders.flatMap((folder) =>
    ["webkit2gtk-4.1", "webkitgtk-6.0"].map((name) => join("/usr/lib", folder, name, "MiniBrowser")),
  );
  return places.find((path) => existsSync(path));
}

/** Path of WebKit's MiniBrowser on this machine, if all tools to drive it are installed. */
export const webkitPath: string | undefined = findMiniBrowser();

export async function launchWebkit(binary: string): Promise<Driver> {
  const screen = spawn(SCREEN, ["-displayfd", "3", "-screen", "0", "1400x1000x24", "-nolisten", "tcp"], {
    stdio: ["ignore", "ignore", "ignore", "pipe"],
  });
  const [display] = await once(screen.stdio[3] as NodeJS.ReadableStream, "data");
  const port = await freePort();
  const env = { ...process.env, DISPLAY: `:${String(display).trim()}` };
  const driver = spawn(DRIVER, [`--port=${port}`], { env, stdio: "ignore" });
  const url = `http://127.0.0.1:${port}`;
  await until("WebKitWebDriver listens", () =>
    fetch(`${url}/status`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  const options = { binary, args: ["--automation"] };
  const capabilities = { alwaysMatch: { "webkitgtk:browserOptions": options } };
  const { sessionId } = (await request("POST", `${url}/session`, { capabilities })) as { sessionId: string };
  return new WebKit(`${url}/session/${sessionId}`, env, [driver, screen]);
}

async function request(method: string, url: string, parameters: object): Promise<unknown> {
  const response = await fetch(url, method === "POST" ? { method, body: JSON.stringify(parameters) } : { method });
  const { value } = (await response.json()) as { value: unknown };
  if (!response.ok) {
    const { error, message } = value as { error: string; message: string };
    throw new Error(`${new URL(url).pathname}: ${error}: ${message}`);
  }
  return value;
}

class WebKit implements Driver {
  /** A driven MiniBrowser prints nothing about pages. */
  readonly complaints: string[] = [];
  readonly #url: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #processes: readonly ChildProcess[];

  constructor(url: string, env: NodeJS.ProcessEnv, processes: readonly ChildProcess[]) {
    this.#url = url;
    this.#env = env;
    this.#processes = processes;
  }

  send(command: keyof typeof COMMANDS, parameters: object = {}): Promise<unknown> {
    const [method, path] = COMMANDS[command];
    const { id = "" }: { id?: string } = parameters;
    return request(method, `${this.#url}/${path.replace("{id}", id)}`, parameters);
  }

  /** Uses keyboard or mouse on the screen, for actions outside of the page, which WebDriver cannot do. */
  async #onScreen(...commands: string[]): Promise<void> {
    await promisify(execFile)(KEYBOARD_AND_MOUSE, commands, { env: this.#env });
  }

  /** Windows cannot be narrower than 447 pixels. */
  async resize(width: number, height: number): Promise<void> {
    await this.send("SetWindowRect", { x: 0, y: 0, width, height: height + TOOLBAR });
    // Without a window manager, a window has the focus while the mouse is over it.
    await this.#onScreen("mousemove", "200", "10");
  }

  async find(text: string, seen: () => Promise<unknown>): Promise<void> {
    await this.#onScreen("key", "ctrl+f", "type", text);
    await seen();
    await this.#onScreen("key", "Escape");
  }

  async close(): Promise<void> {
    await request("DELETE", this.#url, {});
    for (const child of this.#processes) child.kill("SIGKILL");
  }
}
