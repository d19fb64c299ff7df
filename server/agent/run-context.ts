/** The `ctx` object: the user, the run, and what the agent may propose with an answer. */

import type { Caller, User } from "../auth/access.ts";
import type { RunTransport } from "../observe/run-observer.ts";
import type { ApprovalDecision, ConversationState, DecidedCall } from "../protocol/chat.ts";
import type { DoneEvent } from "../protocol/events.ts";
import { plainText } from "./plain-text.ts";

/** The user and the run. Made once for each run, and passed to everything that works on it. */
export interface RunContext {
  /** What `authenticate` returned; `undefined` if the user is not known. */
  readonly user: User | undefined;
  /** What the client sent about the message. Unverified. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Id of the conversation, the same for all its messages. If states are not signed, a client may send any other. */
  readonly conversation: string;
  readonly run: {
    readonly id: string;
    readonly transport: RunTransport;
    /** Id of the HTTP request that brought the message; for a WebSocket, of its upgrade. */
    readonly requestId: string;
  };
  /** Kind of the key that the message came with. */
  readonly keyKind: Caller["keyKind"];
  /** The person's decisions on calls that waited for them; empty if there are none. */
  readonly approvals: readonly DecidedCall[];
  /** Offers up to 3 next messages of up to 200 characters each. The last call counts; an empty list offers none. */
  readonly suggest: (texts: readonly string[]) => void;
  /** Names the conversation, in up to 200 characters. The last call counts. */
  readonly title: (text: string) => void;
  /** Aborted when the run is to end, and when the function that gets this context has used up its time. */
  readonly signal: AbortSignal;
}

const MAX_SUGGESTIONS = 3;
const MAX_CHARS = 200;

/** The proposals of one run. Of several calls, the last one counts. */
export class Proposals implements Pick<RunContext, "suggest" | "title"> {
  #suggestions: readonly string[] = [];
  #title: string | undefined;

  readonly suggest = (texts: readonly string[]): void => {
    if (!Array.isArray(texts) || texts.length > MAX_SUGGESTIONS) {
      throw new TypeError(`suggest takes a list of at most ${MAX_SUGGESTIONS} texts.`);
    }
    this.#suggestions = texts.map((text) => lineOf("suggest", text));
  };

  readonly title = (text: string): void => {
    this.#title = lineOf("title", text);
  };

  /** The proposals, as fields of `done`. */
  fields(): Pick<DoneEvent, "suggestions" | "title"> {
    return {
      ...(this.#suggestions.length === 0 ? {} : { suggestions: [...this.#suggestions] }),
      ...(this.#title === undefined ? {} : { title: this.#title }),
    };
  }
}

function lineOf(name: string, text: unknown): string {
  const line = typeof text === "string" ? plainText(text) : "";
  if (line !== "" && line.length <= MAX_CHARS) return line;
  throw new TypeError(`${name} takes texts of 1 to ${MAX_CHARS} characters.`);
}

/** The parts of the context that come from the request. */
interface Asked extends Pick<RunContext, "metadata" | "approvals" | "conversation"> {
  readonly transport: RunTransport;
  readonly requestId: string;
}

export function createContext(
  { id, signal }: { readonly id: string; readonly signal: AbortSignal },
  { keyKind, user }: Caller,
  { metadata, approvals, conversation, transport, requestId }: Asked,
  { suggest, title }: Proposals,
): RunContext {
  const run = { id, transport, requestId };
  return { user, metadata, conversation, keyKind, run, approvals, suggest, title, signal };
}

/** The decisions that came with a message, each with its tool and what was kept for it, in the order of the calls. */
export function decidedCalls({ approvals = [], state }: DecidedOn): DecidedCall[] {
  const { calls = [], kept: ofAll } = state.open?.waiting ?? {};
  return calls.flatMap(({ id, shownId: shown = id, name, kept = ofAll }) => {
    const decision = approvals.find((one) => one.id === shown);
    const beside = kept === undefined ? {} : { kept: structuredClone(kept) };
    return decision === undefined ? [] : [{ ...decision, tool: name, ...beside }];
  });
}

interface DecidedOn {
  approvals?: readonly ApprovalDecision[];
  state: ConversationState;
}
