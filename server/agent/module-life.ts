import type { Authenticate } from "../auth/authenticate.ts";
import { within } from "../config/within.ts";
import { shuttingDown } from "../protocol/errors.ts";
import type { Agent } from "./define.ts";
import { HOOK_MS, hookFailure } from "./hooks.ts";

/** What a project's module exports, checked. */
export interface AgentModule {
  readonly agent: Agent;
  /** Closes what the module has opened; called after the agent's last run. */
  readonly close?: (() => unknown) | undefined;
  /** Says who sends each message. */
  readonly authenticate?: Authenticate | undefined;
  /** The users that ask under `parley dev`, which alone reads and checks them. */
  readonly devUsers?: unknown;
}

/** How long what an agent's module has opened stays open: until nothing needs the agent any more. */
export class ModuleLife {
  readonly #close: (() => unknown) | undefined;
  #users = 0;
  #isClosed = false;
  #onUnused: (() => void) | undefined;

  /** `close` is what the module exports under this name. */
  constructor(close: (() => unknown) | undefined) {
    this.#close = close;
  }

  /** Counts a message or a run, until the function is called that this gives. @throws ApiError once all is closed */
  readonly use = (): (() => void) => {
    if (this.#isClosed) throw shuttingDown();
    this.#users += 1;
    return () => {
      this.#users -= 1;
      if (this.#users === 0) this.#onUnused?.();
    };
  };

  /** No new message needs it: closes it after the last run. Rejects if `close` throws, or takes longer than `maxMs`. */
  async end(maxMs = HOOK_MS): Promise<void> {
    if (this.#users > 0) {
      await new Promise<void>((resolve) => {
        this.#onUnused = resolve;
      });
    }
    this.#isClosed = true;
    const close = this.#close;
    if (close === undefined) return;
    await within(close, maxMs).catch((thrown: unknown) => {
      throw hookFailure("close", thrown);
    });
  }
}
