/** One of the processes that `parley start --workers` serves with. It obeys the primary process, and no signal. */

import cluster from "node:cluster";
import { dirname } from "node:path";
import type { PrimaryApi, WorkerApi, WorkerSetup } from "./cluster/apis.ts";
import { Peer } from "./cluster/peer.ts";
import { SharedAdmission } from "./cluster/shared-admission.ts";
import { placeReporter, SharedRuns } from "./cluster/shared-runs.ts";
import { type Config, livePartOf, readConfig, secretsOf } from "./config.ts";
import type { AgentServer } from "./index.ts";
import { listen, loadServer } from "./load-server.ts";
import type { Log } from "./log.ts";
import { logOfProcess } from "./log-of-process.ts";
import { mergeMetrics } from "./observe/merge-metrics.ts";
import { SetupError } from "./providers/failures/provider-error.ts";
import type { ServerParts } from "./server-options.ts";
import { onStrayErrors } from "./shutdown.ts";

/** `cli` is the built command. Ends the process when the server cannot start. */
export async function startWorker(cli: string): Promise<void> {
  // They come to all processes of a terminal or a service at once; the primary process says what follows.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {});
  await new ServingWorker().start(dirname(cli));
}

/** The number of this process. */
const WORKER = cluster.worker?.id;

class ServingWorker {
  readonly #secrets: string[] = [];
  /** As set, once the settings are known. */
  #log: Log = logOfProcess({ format: undefined, level: "info" }, this.#secrets, WORKER);
  readonly #primary: Peer<PrimaryApi, WorkerApi>;
  #runs: SharedRuns | undefined;
  #server: AgentServer | undefined;
  /** Resolves when there is a server: settings may change while the project is loaded. */
  readonly #loaded: Promise<AgentServer>;
  #onLoaded: (server: AgentServer) => void = () => {};
  #flags: WorkerSetup["flags"] = {};

  constructor() {
    this.#loaded = new Promise((resolve) => {
      this.#onLoaded = resolve;
    });
    const send = (frame: unknown) => void process.send?.(frame, undefined, undefined, () => {});
    this.#primary = new Peer(send, this.#api(), (error) => this.#log.failure(error));
    process.on("message", (message) => this.#primary.receive(message));
    onStrayErrors({ failure: (error) => this.#log.failure(error) }, () => this.#fail());
  }

  /** `built` is the folder of the built files. */
  async start(built: string): Promise<void> {
    try {
      const setup = await this.#primary.call("setup", null);
      const { folder, env, flags } = setup;
      this.#flags = flags;
      this.#secrets.push(...secretsOf(setup.liveEnv), ...secretsOf(env));
      const config = configOf(setup);
      this.#log = logOfProcess(config.log, this.#secrets, WORKER);
      const parts = (current: () => Config) => this.#parts(current);
      const log = this.#log;
      const { agent, server } = await loadServer({ folder, env, config, log, built, parts });
      this.#server = server;
      this.#onLoaded(server);
      const url = await listen(server, config);
      const { name, agent: of, model, fallbacks } = agent;
      await this.#primary.call("listening", { url, name, agent: of, model, fallbacks });
    } catch (error) {
      if (!(error instanceof SetupError)) this.#log.failure(error);
      else await this.#primary.call("cannotStart", { sentence: error.message });
      process.exit(1);
    }
  }

  #parts(current: () => Config): ServerParts {
    const admission = new SharedAdmission(this.#primary, () => current().limits);
    return {
      admission,
      large: admission,
      observer: placeReporter(this.#primary),
      directory: (own) => {
        this.#runs = new SharedRuns(this.#primary, own);
        return this.#runs;
      },
      // This worker's own are among them.
      gatherMetrics: async () => mergeMetrics(await this.#primary.call("metrics", null)),
    };
  }

  #api(): WorkerApi {
    return {
      reload: async ({ env }) => {
        const server = await this.#loaded;
        this.#secrets.push(...secretsOf(env).filter((one) => !this.#secrets.includes(one)));
        return server.reload(readConfig(this.#flags, env));
      },
      drain: async () => this.#server?.drain(),
      close: async () => {
        await this.#server?.close();
        process.exit(0);
      },
      look: async (what) => (await this.#runs?.look(what)) ?? null,
      cancel: async (what) => (await this.#runs?.cancelOwn(what)) ?? null,
      abort: (what) => this.#runs?.abortOwn(what),
      relay: ({ from, frame }) => this.#runs?.receive(from, frame),
      metrics: () => this.#server?.metrics() ?? "",
      gone: ({ worker }) => this.#runs?.gone(worker),
    };
  }

  /** Something threw where nobody catches: no new work for this process, and another one for its place. */
  #fail(): void {
    this.#primary.cast("failing", null);
    this.#server?.leave();
    void this.#end().finally(() => process.exit(1));
  }

  async #end(): Promise<void> {
    if (this.#server === undefined) return;
    await this.#server.close();
    await this.#primary.call("ending", { figures: this.#server.metrics() });
  }
}

/** What bounds memory and files of the machine is split; all that a client could notice is counted together. */
function configOf({ workers, flags, env, liveEnv, idSecret }: WorkerSetup): Config {
  const config = readConfig(flags, env);
  const { maxConnections, resume } = config;
  const secret = Buffer.from(idSecret, "base64");
  return {
    ...config,
    ...livePartOf(readConfig(flags, liveEnv)),
    idSecret: () => secret,
    maxConnections: Math.ceil(maxConnections / workers),
    resume: { ...resume, maxTotalBytes: Math.ceil(resume.maxTotalBytes / workers) },
  };
}
