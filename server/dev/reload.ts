/** Serves the agent as the project's files are now; while they are broken, the last good agent still answers. */

import { basename, relative, sep } from "node:path";
import type { AgentModule } from "../agent/define.ts";
import { ModuleLife } from "../agent/served-agent.ts";
import { secretsOf } from "../config/secrets.ts";
import { ConfigError } from "../errors.ts";
import type { ProjectLoader } from "../project/fresh-modules.ts";
import { SILENT_LOAD_MS } from "../project/load-project.ts";
import type { ParleyServer } from "../server.ts";
import { type DevPage, withDevUsers } from "./page.ts";

const CONVERSATIONS_END = "Another provider answers now, which cannot continue earlier conversations.";

interface ReloaderParts {
  readonly folder: string;
  readonly loader: ProjectLoader;
  readonly server: ParleyServer;
  readonly page: DevPage;
  /** The id of the agent at the start. It is kept: otherwise a new name would end every open conversation. */
  readonly id: string;
}

export class AgentReloader {
  readonly #parts: ReloaderParts;
  /** The files of the agent that answers: a broken one may import fewer. */
  #goodFiles: readonly string[];
  /** Stops waiting for the previous load, whose result is no longer needed. */
  #supersede = () => {};
  /** Agents are replaced one after another, in the order of the changes. */
  #serving: Promise<unknown> = Promise.resolve();
  #isBroken = false;

  constructor(parts: ReloaderParts) {
    this.#parts = parts;
    this.#goodFiles = parts.loader.files;
  }

  /** The files that the agent is made of. */
  get files(): string[] {
    const { loader, server } = this.#parts;
    return [...this.#goodFiles, ...loader.files, ...server.pageFiles()];
  }

  /** Never rejects. */
  async reload(changed: ReadonlySet<string>): Promise<void> {
    const { loader, server, page } = this.#parts;
    const startedAt = performance.now();
    this.#supersede();
    const superseded = new Promise<undefined>((resolve) => {
      this.#supersede = () => resolve(undefined);
    });
    const sayWhy = () =>
      server.log.warning(`${this.#namesOf(changed)}: still loading. A top-level await has not finished.`);
    const timer = setTimeout(sayWhy, SILENT_LOAD_MS).unref();
    // A module may set variables of the process, even if it then fails.
    const loading = loader.load().finally(() => server.log.hide(secretsOf(process.env)));
    try {
      const loaded = await Promise.race([loading, superseded]);
      if (loaded === undefined) return void loading.then(discard, () => {});
      const serving = this.#serving.catch(() => {}).then(() => this.#serve(loaded));
      this.#serving = serving;
      const { keepsConversations } = await serving;
      this.#goodFiles = loader.files;
      const ms = Math.round(performance.now() - startedAt);
      const again = this.#isBroken ? "fine again, " : "";
      const end = keepsConversations ? "" : ` ${CONVERSATIONS_END}`;
      server.log.notice(`${this.#namesOf(changed)}: ${again}reloaded in ${ms} ms.${end}`);
      this.#isBroken = false;
      page.say({ type: "reloaded" });
    } catch (error) {
      if (!(error instanceof ConfigError)) server.log.failure(error);
      // The log removes secrets itself.
      const sentence = server.log.strike(this.#withoutFolder(error instanceof Error ? error.message : String(error)));
      this.#isBroken = true;
      server.log.warning(`${sentence}\nThe last good agent goes on answering.`);
      page.say({ type: "broken", sentence });
    } finally {
      clearTimeout(timer);
    }
  }

  /** @throws ConfigError */
  async #serve(loaded: AgentModule): Promise<{ keepsConversations: boolean }> {
    try {
      const { server, page, id } = this.#parts;
      const { choices, ...module } = withDevUsers(loaded);
      const replaced = await server.replaceAgent({ ...module, agent: { ...module.agent, id } });
      page.choices = choices;
      return replaced;
    } catch (error) {
      discard(loaded);
      throw error;
    }
  }

  #namesOf(changed: ReadonlySet<string>): string {
    const [first = "", ...others] = [...changed].map((path) => relative(this.#parts.folder, path) || basename(path));
    return others.length === 0 ? first : `${first} and ${others.length} more`;
  }

  /** With paths relative to the project's folder. */
  #withoutFolder(text: string): string {
    return text.replaceAll(this.#parts.folder + sep, "");
  }
}

/** Closes a module that will not be served. */
function discard({ close }: AgentModule): void {
  void new ModuleLife(close).end().catch(() => {});
}
