import type { Authenticate } from "../auth/authenticate.ts";
import type { Agent } from "./define.ts";

/** What a project's module exports, checked. */
export interface AgentModule {
  readonly agent: Agent;
  /** Closes what the module has opened; called after the agent's last run. */
  readonly close?: (() => unknown) | undefined;
  /** Says who sends each message. */
  readonly authenticate?: Authenticate | undefined;
}

/** How long what an agent's module has opened stays open: until nothing needs the agent any more. */
export class ModuleLife {
  readonly #close: (() => unknown) | undefined;
  #users = 0;
  #onUnused: (() => void) | undefined;

  /** `close` is what the module exports under this name. */
  constructor(close: (() => unknown) | undefined) {
    this.#close = close;
  }

  /** Counts a message or a run, until the function is called that this gives. */
  readonly use = (): (() => void) => {
    this.#users += 1;
    return () => {
      this.#users -= 1;
      if (this.#users === 0) this.#onUnused?.();
    };
  };

  /** No new message needs it: closes it after the last run. Rejects with what `close` throws. */
  async end(): Promise<void> {
    if (this.#users > 0) {
      await new Promise<void>((resolve) => {
        this.#onUnused = resolve;
      });
    }
    await this.#close?.();
  }
}
