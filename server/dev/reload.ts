/** Serves what the project's files say now; while they are broken, the last good agent goes on answering. */

import { basename, relative } from "node:path";
import { ModuleLife } from "../agent/module-life.ts";
import { ConfigError } from "../errors.ts";
import type { LoadedProject, ProjectLoader } from "../project/load-project.ts";
import type { ParleyServer } from "../server.ts";
import type { DevPage } from "./page.ts";

interface ReloaderParts {
  readonly folder: string;
  readonly loader: ProjectLoader;
  readonly server: ParleyServer;
  readonly page: DevPage;
}

export class AgentReloader {
  readonly #parts: ReloaderParts;
  /** Of the agent that answers. A broken agent may import less. */
  #goodFiles: readonly string[];
  /** The newest load: what an older one comes to is of no use any more. */
  #load = 0;
  #isBroken = false;

  constructor(parts: ReloaderParts) {
    this.#parts = parts;
    this.#goodFiles = parts.loader.files;
  }

  /** The files that the agent is made of. */
  get files(): string[] {
    return [...this.#goodFiles, ...this.#parts.loader.files];
  }

  /** Never rejects. */
  async reload(changed: ReadonlySet<string>): Promise<void> {
    const { loader, server, page } = this.#parts;
    const load = ++this.#load;
    const startedAt = performance.now();
    try {
      const loaded = await loader.load();
      if (load !== this.#load) return void discard(loaded);
      await this.#serve(loaded);
      this.#goodFiles = loader.files;
      const ms = Math.round(performance.now() - startedAt);
      server.log.notice(`${this.#namesOf(changed)}: ${this.#isBroken ? "fine again, " : ""}reloaded in ${ms} ms.`);
      this.#isBroken = false;
      page.say({ type: "reloaded" });
    } catch (error) {
      if (load !== this.#load) return;
      if (!(error instanceof ConfigError)) server.log.failure(error);
      const sentence = this.#withoutFolder(error instanceof Error ? error.message : String(error));
      this.#isBroken = true;
      server.log.warning(`${sentence}\nThe last good agent goes on answering.`);
      page.say({ type: "broken", sentence });
    }
  }

  /** @throws ConfigError */
  async #serve(loaded: LoadedProject): Promise<void> {
    try {
      await this.#parts.server.replaceAgent(loaded.agent, loaded.close);
    } catch (error) {
      discard(loaded);
      throw error;
    }
  }

  #namesOf(changed: ReadonlySet<string>): string {
    const [first = "", ...others] = [...changed].map((path) => relative(this.#parts.folder, path) || basename(path));
    return others.length === 0 ? first : `${first} and ${others.length} more`;
  }

  /** As the developer names the files. */
  #withoutFolder(text: string): string {
    return text.replaceAll(`${this.#parts.folder}/`, "");
  }
}

/** It will serve nothing. */
function discard({ close }: LoadedProject): void {
  void new ModuleLife(close).end().catch(() => {});
}
