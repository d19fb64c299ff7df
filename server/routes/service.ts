import type { AgentRuntime } from "../agent/served-agent.ts";
import type { Access } from "../auth/access.ts";
import type { Origins } from "../auth/origins.ts";
import type { Settings } from "../config/settings.ts";
import type { MemoryBudget } from "../limits/memory-budget.ts";
import type { MessageLimits } from "../limits/message-limits.ts";
import type { Log } from "../observe/log.ts";
import type { RunRegistry } from "../runs/run-registry.ts";
import type { StateStore } from "../runs/state-store.ts";
import type { Identity } from "./identity.ts";
import type { LargeMessages } from "./large-messages.ts";
import type { Site } from "./site.ts";

/** What the routes work with. */
export interface Service {
  readonly runtime: AgentRuntime;
  /** Values may change while the server runs. */
  readonly settings: Settings;
  readonly origins: Origins;
  readonly limits: MessageLimits;
  /** Loaded on first use, for an agent that knows its users. */
  identity(): Promise<Identity>;
  readonly access: Access;
  /** Limits the memory of all messages together. */
  readonly memory: MemoryBudget;
  readonly largeMessages: LargeMessages;
  readonly runs: RunRegistry;
  readonly log: Log;
  readonly site: Site;
  /** Keeps states for clients that only name their conversation, shared by Redis; absent without it. */
  readonly states: StateStore | undefined;
  /** The version of Parley. */
  version(): string;
  /** The page for Prometheus; absent when metrics are switched off. */
  readonly metricsPage: (() => Promise<string>) | undefined;
}
