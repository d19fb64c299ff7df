/** nginx, HAProxy and Caddy in processes of their own, with the configurations of `examples/deploy`. */

import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { REPOSITORY } from "./command.ts";
import { freePort } from "./free-port.ts";
import type { Cleanup } from "./start-server.ts";

export interface ReverseProxy {
  /** Folder of the configuration. */
  readonly folder: string;
  /** Public URL of the server, without a trailing slash. */
  readonly url: string;
  readonly socketUrl: string;
  /** Kills the process and all its connections, and starts it again. */
  restart(): Promise<void>;
  /** Freezes the process (SIGSTOP): connections stay open, no data pass. */
  freeze(): void;
  thaw(): void;
  /** All output so far, including the request log. */
  log(): string;
}

/** Replacements in a configuration for one test; each text must occur. */
export type Edits = readonly (readonly [what: string, by: string])[];

type Configure = (folder: string, address: string, target: number, edits: Edits) => string[];

/** Writes the configuration and returns the command's arguments. */
const CONFIGURE = {
  nginx(folder, address, target, edits) {
    const site = edited("nginx.conf", [
      ["listen 443 ssl;", `listen ${address};`],
      ["    ssl_certificate     /etc/ssl/chat.example.com.pem;\n", ""],
      ["    ssl_certificate_key /etc/ssl/chat.example.com.key;\n", ""],
      ["/var/log/nginx/parley.log", join(folder, "access.log")],
      ["/var/log/nginx/parley-error.log", "stderr"],
      ["127.0.0.1:8080", `127.0.0.1:${target}`],
      ...edits,
    ]);
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
      (name) => `${name}_temp_path ${join(folder, name)};\n`,
    );
    const user = process.getuid?.() === 0 ? "user root;\n" : "";
    const main = `daemon off;\nworker_processes 1;\n${user}pid ${join(folder, "pid")};\nerror_log stderr;\nevents {}\nhttp {\n${temporary.join("")}${site}}\n`;
    writeFileSync(join(folder, "nginx.conf"), main);
    return ["nginx", "-p", folder, "-e", "stderr", "-c", join(folder, "nginx.conf")];
  },
  haproxy(folder, address, target, edits) {
    const main = edited("haproxy.cfg", [
      ["bind :443 ssl crt /etc/ssl/chat.example.com.pem", `bind ${address}`],
      ["127.0.0.1:8080", `127.0.0.1:${target}`],
      ...edits,
    ]);
    writeFileSync(join(folder, "haproxy.cfg"), main);
    return ["haproxy", "-db", "-f", join(folder, "haproxy.cfg")];
  },
  caddy(folder, address, target, edits) {
    const site = edited("Caddyfile", [
      ["{\n\t# The socket", "{\n\tadmin off\n\t# The socket"],
      ["chat.example.com {", `http://${address} {`],
      ["127.0.0.1:8080", `127.0.0.1:${target}`],
      ...edits,
    ]);
    const file = join(folder, "Caddyfile");
    writeFileSync(file, site);
    return ["caddy", "run", "--config", file, "--adapter", "caddyfile"];
  },
} satisfies Record<string, Configure>;

export type ProxyName = keyof typeof CONFIGURE;

/** The reason why this proxy cannot be tested here; `false` if it can. */
export function missing(name: ProxyName): string | false {
  const { error } = spawnSync(name, ["-v"], { stdio: "ignore", env: environment() });
  return error !== undefined && `${name} is not installed: apt-get install ${name}`;
}

/** A non-loopback address of this machine, if any. */
export function outerAddress(): string | undefined {
  return Object.values(networkInterfaces())
    .flat()
    .find((one) => one !== undefined && one.family === "IPv4" && !one.internal)?.address;
}

/** Starts a proxy in front of a server's port on this machine; it is always stopped at the end of the test. */
export async function startReverseProxy(
  t: Cleanup,
  name: ProxyName,
  target: number,
  { edits = [], host = "127.0.0.1", path = "" }: { edits?: Edits; host?: string; path?: string } = {},
): Promise<ReverseProxy> {
  const folder = mkdtempSync(join(tmpdir(), "parley-proxy-"));
  const port = await freePort(host);
  const [command = "", ...args] = CONFIGURE[name](folder, `${host}:${port}`, target, edits);
  const accessLog = join(folder, "access.log");
  let child: ChildProcess | undefined;
  let said = "";
  const begin = async () => {
    // A process group of its own, so that nginx's workers are stopped and killed with it.
    child = spawn(command, args, {
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
      // Caddy keeps its state in these folders.
      env: { ...environment(), XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder },
    });
    for (const output of [child.stdout, child.stderr]) {
      output?.setEncoding("utf8").on("data", (text: string) => {
        said += text;
      });
    }
    for (let tried = 0; tried < 1000; tried++) {
      if (child.exitCode !== null) assert.fail(`${name} ended: ${said}`);
      if (await canConnect(host, port)) return;
      await pause(25);
    }
    assert.fail(`${name} does not listen: ${said}`);
  };
  const signal = (one: NodeJS.Signals) => {
    if (child?.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      process.kill(-child.pid, one);
    }
  };
  const finish = async () => {
    const gone = child && child.exitCode === null && child.signalCode === null && once(child, "exit");
    signal("SIGKILL");
    await gone;
  };
  const kill = () => signal("SIGKILL");
  process.once("exit", kill);
  t.after(async () => {
    await finish();
    process.off("exit", kill);
    rmSync(folder, { recursive: true, force: true });
  });
  await begin();
  return {
    folder,
    url: `http://${host}:${port}${path}`,
    socketUrl: `ws://${host}:${port}${path}/ws/chat`,
    async restart() {
      await finish();
      await begin();
    },
    freeze: () => signal("SIGSTOP"),
    thaw: () => signal("SIGCONT"),
    log: () => said + (existsSync(accessLog) ? readFileSync(accessLog, "utf8") : ""),
  };
}

/** On Debian, some of these commands are in folders that only root has in `PATH`. */
function environment(): NodeJS.ProcessEnv {
  return { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` };
}

function edited(file: string, edits: Edits): string {
  let text = readFileSync(join(REPOSITORY, "examples/deploy", file), "utf8");
  for (const [what, by] of edits) {
    assert.ok(text.includes(what), `${file} does not hold "${what}"`);
    text = text.replaceAll(what, by);
  }
  return text;
}

function canConnect(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
