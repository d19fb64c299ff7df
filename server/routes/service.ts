import type { Runner } from "../agent/runner.ts";
import type { BodyRules } from "../http/body.ts";
import type { IntakeRules } from "../http/frame-intake.ts";
import type { RequestMemory } from "../http/request-memory.ts";
import type { AdmissionControl } from "../limits/admission-control.ts";
import type { RunDirectory } from "../runs/run-access.ts";
import type { ChatRules } from "./parse-chat.ts";
import type { SiteFiles } from "./site-files.ts";

/** What the endpoints work with; built once, in `server/create-service.ts`. */
export interface Service {
  readonly runner: Runner;
  /** As they are now: keys, origins and limits can change while the server runs. */
  rules(): ChatRules;
  authRequired(): boolean;
  readonly bodies: Omit<BodyRules, "address" | "memory">;
  /** Bounds what all messages together may take. */
  readonly memory: RequestMemory;
  /** How a socket's messages are received. */
  readonly intake: IntakeRules;
  /** The built `parse-worker.ts`. */
  readonly parseWorker: string;
  /** Asked before anything that costs: a message, a run, a socket. */
  readonly admission: AdmissionControl;
  /** Silence on an SSE stream, in milliseconds, before a comment is sent. */
  readonly keepAliveMs: number;
  /** How long a client may take nothing of what is sent, in milliseconds, before its connection is cut. */
  readonly sendMs: number;
  /** The built chat page and widget. */
  readonly files: SiteFiles;
  /** Value of the CSP directive `frame-ancestors` for the embedded page. */
  frameAncestors(): string;
  /** What Prometheus collects; absent when it is switched off. */
  readonly metrics: (() => Promise<string>) | undefined;
  /** Told of the code of each error that a socket's client is told in answer to a command. */
  refused(code: string): void;
  readonly runs: RunDirectory;
}
