import type { Caller } from "../auth/access.ts";
import type { User } from "../auth/user.ts";
import type { RunTransport } from "../observe/run-observer.ts";
import type { DecidedCall } from "../protocol/chat.ts";

/** The user and the run that work is done for: made once for each run, and passed to everything that works on it. */
export interface RunContext {
  /** What `authenticate` returned; `undefined` if the user is not known. */
  readonly user: User | undefined;
  /** What the client says of the message. Nothing proves it. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Stays the same over the messages of one conversation. Where states are not signed, the client may say any other. */
  readonly conversation: string;
  readonly run: {
    readonly id: string;
    readonly transport: RunTransport;
    /** Id of the request, or of the socket's upgrade, that brought the message. */
    readonly requestId: string;
  };
  /** Kind of the key that the message came with. */
  readonly keyKind: Caller["keyKind"];
  /** What the person has decided on the calls that waited for it; empty where none did. */
  readonly approvals: readonly DecidedCall[];
  /** Offers up to 3 next messages of 200 characters with the answer. The last call counts; an empty list takes them back. */
  readonly suggest: (texts: readonly string[]) => void;
  /** Names the conversation, in up to 200 characters. The last call counts. */
  readonly title: (text: string) => void;
  /** Aborted when the run is to end, and when the time of what gets it is over. */
  readonly signal: AbortSignal;
}
