/** What tools throw: on purpose, for the person who chats, or by accident, for the operator. */

/** Global, because the project may have another copy of this package than the server. */
const BRAND = Symbol.for("parley-agent.ToolError");

/** A failure of a tool whose message is meant for the model and for clients. */
export class ToolError extends Error {
  override readonly name: string = "ToolError";
  readonly [BRAND] = true;
}

/** Says in the log which tool threw; `cause` is what it threw. Clients never see either. */
export class ToolFailure extends Error {
  override readonly name = "ToolFailure";

  constructor(tool: string, thrown: unknown) {
    super(`The tool "${tool}" failed.`, { cause: thrown });
  }
}

/** What is known of a thrown value. */
export interface Thrown {
  /** What the model gets. */
  readonly message: string;
  /** What clients get. */
  readonly shown: string;
  /** The name of its class, which is the author's text and short: a message could hold anything. */
  readonly type: string;
  /** Whether the operator should look at it: a `ToolError` alone is a tool's regular answer. */
  readonly isUnexpected: boolean;
}

const HIDDEN = "The tool failed.";

/** Anything can be thrown: an object may have no text at all, or throw when it is asked for it. */
export function readThrown(thrown: unknown): Thrown {
  const isMeant = attempt(() => (thrown as { [BRAND]?: unknown })[BRAND] === true) ?? false;
  const text = attempt(() => String(thrown instanceof Error ? thrown.message : thrown)) ?? "";
  const type = attempt(() => (thrown instanceof Error ? thrown.constructor.name : "")) ?? "";
  const hasCause = attempt(() => thrown instanceof Error && thrown.cause !== undefined) ?? true;
  return {
    message: text.trim() === "" ? "The tool failed without a message." : text,
    shown: isMeant && text.trim() !== "" ? text : HIDDEN,
    type: /^\w{1,64}$/.test(type) ? type : "_OTHER",
    isUnexpected: !isMeant || hasCause,
  };
}

function attempt<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
