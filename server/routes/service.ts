import type { Runner } from "../agent/runner.ts";
import type { BodyRules } from "../http/body.ts";
import type { Caller } from "../http/caller.ts";
import type { Admission } from "../limits/admission.ts";
import type { MessageParser } from "./message-parser.ts";
import type { ChatRules } from "./parse-chat.ts";

/** What the endpoints work with; built once, in `server/index.ts`. */
export interface Service {
  readonly runner: Runner;
  /** As they are now: keys, origins and limits can change while the server runs. */
  rules(): ChatRules;
  authRequired(): boolean;
  readonly bodies: Omit<BodyRules, "address">;
  readonly parser: MessageParser;
  /** Asked before anything that costs: a message, a run, a socket. */
  readonly admission: Admission;
  /** Silence on an SSE stream, in milliseconds, before a comment is sent. */
  readonly keepAliveMs: number;
  /** Folder of the built chat page and widget. */
  readonly publicFolder: string;
  /** Value of the CSP directive `frame-ancestors` for the embedded page. */
  frameAncestors(): string;
  /** Registers a run of this caller, so that a shutdown can wait for it. @throws ApiError `shutting_down` */
  begin(caller: Caller): RunHandle;
  draining(): boolean;
}

export interface RunHandle {
  /** Its signal ends the run; abort it with a `RunAbort`. */
  readonly controller: AbortController;
  /** Must be called when the run is over, however it ended. */
  end(): void;
}
