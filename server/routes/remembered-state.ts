import type { RequestMemory } from "../http/request-memory.ts";
import { ApiError } from "../protocol/api-error.ts";
import type { RunEvent } from "../runs/run-log.ts";

/** What a socket's next message continues from: the last event of a run as it was sent, or why there is none. */
export type Remembered = Uint8Array | "new" | "dropped";

/** What is taken beside the bytes themselves, about. */
const ENTRY_BYTES = 500;

/**
 * The state that one socket handed out last. It is kept as the bytes that were sent, whose size is known and which
 * another thread can read. When the memory is needed they are dropped: the client has the state, too.
 */
export class RememberedState {
  readonly #memory: RequestMemory;
  #value: Remembered = "new";
  #release: (() => void) | undefined;

  constructor(memory: RequestMemory) {
    this.#memory = memory;
  }

  get value(): Remembered {
    return this.#value;
  }

  /**
   * Takes the state of a run's last event in place of the one before. An error without a state
   * leaves the one before: a conversation is never restarted in silence.
   */
  remember({ json, last }: Pick<RunEvent, "json" | "last">): void {
    if (last?.type === "error" && last.state === undefined) return;
    this.forget();
    if (Object.keys(last?.state ?? {}).length === 0) return;
    const bytes = new TextEncoder().encode(json);
    const drop = () => {
      this.#value = "dropped";
    };
    this.#release = this.#memory.spare(bytes.length + ENTRY_BYTES, drop);
    this.#value = this.#release === undefined ? "dropped" : bytes;
  }

  /** The next message begins a new conversation. */
  forget(): void {
    this.#release?.();
    this.#release = undefined;
    this.#value = "new";
  }
}

/** The state itself, as unknown as if the client had sent it. @throws ApiError `conversation_expired` */
export function readRemembered(remembered: Remembered): unknown {
  if (remembered === "new") return {};
  if (remembered !== "dropped") return JSON.parse(new TextDecoder().decode(remembered)).state;
  throw new ApiError(
    "conversation_expired",
    "This connection no longer holds the conversation. Send the state that came with the last answer, or start a new conversation.",
  );
}
