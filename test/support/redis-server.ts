/** A real Redis for a test: a `redis-server` on a free port, with nothing on disk. */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createConnection } from "node:net";
import { type TestContext, test } from "node:test";
import { freePort } from "./free-port.ts";
import { type Cleanup, type ServerOptions, startServer, type TestServer } from "./start-server.ts";

/** The reason why tests are skipped: there is no `redis-server` (Debian: `apt-get install redis-server`). */
export const NO_REDIS = spawnSync("redis-server", ["--version"]).status !== 0 && "there is no redis-server here";

export interface RedisServer {
  readonly url: string;
  readonly port: number;
  /** Simulates a crash; all data are lost. */
  kill(): Promise<void>;
  /** Starts Redis again, empty, on the same port. */
  restart(): Promise<void>;
  /** Stops all responses until `thaw`. */
  freeze(): void;
  thaw(): void;
  command(...args: readonly (string | number)[]): Promise<string>;
  /** Collects all commands that Redis receives from now on. */
  monitor(t: Cleanup): Promise<() => string>;
}

export async function startRedis(t: Cleanup, ...settings: readonly string[]): Promise<RedisServer> {
  const port = await freePort();
  let child: ChildProcess;
  const start = async () => {
    const args = ["--port", String(port), "--save", "", "--bind", "127.0.0.1", ...settings];
    child = spawn("redis-server", args, { stdio: "ignore" });
    while (!(await answers(port, child.pid))) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      if (child.exitCode !== null) throw new Error(`redis-server ended with exit code ${child.exitCode}`);
    }
  };
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  await start();
  t.after(kill);
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    kill,
    restart: start,
    freeze: () => void child.kill("SIGSTOP"),
    thaw: () => void child.kill("SIGCONT"),
    command: (...args) => send(port, args),
    monitor: (test) => monitor(test, port),
  };
}

/** A test with a Redis of its own; skipped if there is no `redis-server`. */
export function testWithRedis(
  name: string,
  run: (t: TestContext, redis: RedisServer) => Promise<void>,
  more = {},
): void {
  test(name, { skip: NO_REDIS, ...more }, async (t) => run(t, await startRedis(t)));
}

/** Two servers that share a Redis. */
export function startTwo(
  t: Cleanup,
  redis: RedisServer,
  options: ServerOptions = {},
): Promise<[owner: TestServer, other: TestServer]> {
  const shared = { ...options, env: { ...options.env, PARLEY_REDIS_URL: redis.url } };
  return Promise.all([startServer(t, shared), startServer(t, shared)]);
}

/** Whether Redis answers and is this process: the Redis of another test could have the port. */
async function answers(port: number, pid: number | undefined): Promise<boolean> {
  try {
    const isReady = (await send(port, ["PING"])).startsWith("+PONG");
    return isReady && (await send(port, ["INFO", "server"])).includes(`\nprocess_id:${pid}\r`);
  } catch {
    return false;
  }
}

async function monitor(t: Cleanup, port: number): Promise<() => string> {
  let seen = "";
  const socket = createConnection(port, "127.0.0.1", () => socket.write("MONITOR\r\n"));
  t.after(() => void socket.destroy());
  socket.on("error", () => {});
  socket.on("data", (data) => {
    seen += data;
  });
  await once(socket, "data");
  return () => seen;
}

/** Sends one command in Redis' own protocol. */
function send(port: number, args: readonly (string | number)[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(port, "127.0.0.1", () => socket.write(`${args.join(" ")}\r\n`));
    socket.once("data", (data) => {
      resolve(String(data));
      socket.destroy();
    });
    socket.once("error", reject);
    socket.once("close", () => reject(new Error(`${args[0]} was not answered`)));
  });
}
