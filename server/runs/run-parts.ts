import type { runAgent } from "../agent/run.ts";
import type { failed } from "../agent/run-end.ts";
import type { Run } from "./run.ts";
import type { RunJob, RunSettings, WatchRun } from "./run-settings.ts";

/** What runs are made of. It is there when the first of them needs it: no start waits for it. */
export interface RunParts {
  create(settings: RunSettings, job: RunJob): Run;
  readonly runAgent: typeof runAgent;
  readonly failed: typeof failed;
  readonly watch: WatchRun;
}
