/** `parley start --workers`: the process that starts the others, counts what is limited, and serves nobody itself. */

import cluster from "node:cluster";
import { createServer, type Server } from "node:net";
import { announce } from "./announce.ts";
import type { Listening, WorkerSetup } from "./cluster/apis.ts";
import { Coordinator } from "./cluster/coordinator.ts";
import { type Config, livePartOf, secretsOf } from "./config.ts";
import { Admission } from "./limits/admission.ts";
import { LargeBodyLine } from "./limits/large-body-line.ts";
import { listen } from "./load-server.ts";
import type { Log } from "./log.ts";
import { logOfProcess } from "./log-of-process.ts";
import { totalsOf } from "./observe/merge-metrics.ts";
import { SetupError } from "./providers/failures/provider-error.ts";
import { reloadOnHangup } from "./reload.ts";
import { closeWithProcess } from "./shutdown.ts";
import type { StartPlan } from "./start-alone.ts";
import { WORKER_COMMAND } from "./worker-command.ts";

/** How long workers may take to close when everything has been drained, in milliseconds. */
const CLOSE_MS = 10_000;

/** @throws SetupError */
export async function startPrimary(plan: StartPlan): Promise<void> {
  if (!cluster.isPrimary) {
    throw new SetupError(
      "This process is a worker of node:cluster already and can have none of its own. Start it without --workers.",
    );
  }
  const { env, config, flags, readSettings, version } = plan;
  const secrets = secretsOf(env);
  const log = logOfProcess(config.log, secrets);
  const primary = new Primary(plan, log);
  const { url, ...agent } = await primary.start();
  closeWithProcess(primary, log);
  const apply = primary.reload.bind(primary);
  reloadOnHangup({ env, config, flags, readSettings, apply, secrets, log });
  announce({ version, agent, config, url, log });
}

class Primary {
  readonly #plan: StartPlan;
  readonly #log: Log;
  readonly #admission: Admission;
  readonly #coordinator: Coordinator;
  #live: Config;
  #liveEnv: StartPlan["env"];
  #port: number;
  #onGaveUp: (sentence: string) => void = () => {};

  constructor(plan: StartPlan, log: Log) {
    const { config, env, cli } = plan;
    this.#plan = plan;
    this.#log = log;
    this.#live = config;
    this.#port = config.port;
    this.#liveEnv = env;
    this.#admission = new Admission(() => this.#live.limits);
    this.#coordinator = new Coordinator({
      workers: config.workers,
      exec: cli,
      args: [WORKER_COMMAND],
      admission: this.#admission,
      large: new LargeBodyLine(config.maxLargeBodies, config.times.body),
      setup: () => this.#setup(),
      totalsOf,
      log,
      gaveUp: (sentence) => this.#onGaveUp(sentence),
    });
  }

  /** Resolves when all workers listen. @throws SetupError when one of them cannot start */
  async start(): Promise<Listening> {
    const failed = new Promise<never>((_resolve, reject) => {
      this.#onGaveUp = (sentence) => reject(new SetupError(sentence));
    });
    // A worker that comes later must not get another free port.
    if (this.#port === 0) this.#port = await freePort(this.#plan.config);
    try {
      return await Promise.race([this.#coordinator.start(), failed]);
    } catch (error) {
      this.#coordinator.kill();
      throw error;
    }
  }

  /** Called with the function that ends the process with an exit code. */
  onFailure(end: (code: number) => void): void {
    this.#onGaveUp = (sentence) => {
      this.#log.notice(sentence);
      end(1);
    };
  }

  /** Drains all workers, then closes them: none closes its sockets while another one's run is read through it. */
  async close(): Promise<void> {
    this.#admission.close();
    const late = setTimeout(() => {
      this.#log.notice("Workers that did not end in time are killed.");
      this.kill();
    }, this.#plan.config.times.drain + CLOSE_MS);
    await this.#coordinator.close();
    clearTimeout(late);
  }

  /** Ends all workers at once. */
  kill(): void {
    this.#coordinator.kill();
  }

  /** The settings were read and found right here, once, so that all workers take them over or none. */
  reload(next: Config, env: StartPlan["env"]): Promise<number> {
    this.#live = { ...this.#plan.config, ...livePartOf(next) };
    this.#liveEnv = env;
    return this.#coordinator.reload(env);
  }

  #setup(): WorkerSetup {
    const { config, folder, env } = this.#plan;
    return {
      workers: config.workers,
      ...(folder === undefined ? {} : { folder }),
      flags: { host: config.host, port: String(this.#port) },
      env,
      liveEnv: this.#liveEnv,
      idSecret: config.idSecret().toString("base64"),
    };
  }
}

/**
 * Systems give ports above these to outgoing connections: one of those could be taken by anybody's connection before the
 * workers listen on it.
 */
const FIRST_PORT = 20_000;
const PORTS = 10_000;

/** Ports that are tried: where so many are in use, it is not by chance. */
const MAX_TRIES = 20;

/** A port that nobody listens on. @throws SetupError */
async function freePort({ host }: Pick<Config, "host">): Promise<number> {
  for (let tries = 1; ; tries++) {
    const at = { host, port: FIRST_PORT + Math.floor(Math.random() * PORTS) };
    const server = createServer();
    try {
      await listen({ listen: () => listenOn(server, at) }, at);
    } catch (error) {
      if (tries < MAX_TRIES && isInUse(error)) continue;
      throw error;
    }
    await new Promise((resolve) => server.close(resolve));
    return at.port;
  }
}

function isInUse(error: unknown): boolean {
  const cause = error instanceof SetupError ? error.cause : undefined;
  return cause instanceof Error && "code" in cause && cause.code === "EADDRINUSE";
}

function listenOn(server: Server, { host, port }: Pick<Config, "host" | "port">): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => resolve(""));
  });
}
