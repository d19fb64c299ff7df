import type { Caller, User } from "../auth/access.ts";
import type { RunTransport } from "../observe/run-observer.ts";

/** The user and the run that work is done for: made once for each run, and passed to everything that works on it. */
export interface RunContext extends Pick<Caller, "keyKind" | "keyId"> {
  /** `undefined` if the user is not known. */
  readonly user: User | undefined;
  /** What the client says of the message. Nothing proves it. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Stays the same over the messages of one conversation. */
  readonly conversation: string;
  readonly run: {
    readonly id: string;
    readonly transport: RunTransport;
    /** Id of the request, or of the socket's upgrade, that brought the message. */
    readonly requestId: string;
  };
  /** Aborted, with a `RunAborted` as its reason, when the run is to end. */
  readonly signal: AbortSignal;
}
