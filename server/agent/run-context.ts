/** What `ctx` is: the user, the run, and what the agent may propose beside an answer. */

import type { Caller, User } from "../auth/access.ts";
import type { RunTransport } from "../observe/run-observer.ts";
import type { ApprovalDecision, ConversationState, DecidedCall } from "../protocol/chat.ts";
import type { DoneEvent } from "../protocol/events.ts";
import { plainText } from "./plain-text.ts";

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

  /** The fields of `done`. */
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

/** What the request brought that the context is of. */
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

/** The decisions that came with a message, with what they are about, in the order of the calls. */
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
