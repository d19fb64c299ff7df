/** Calls between two processes over a line that keeps the order of messages. */

import { ApiError, type ApiErrorOptions } from "../protocol/api-error.ts";
import type { ErrorCode } from "../protocol/errors.ts";

/** Every method takes one argument; it and the result are plain JSON. */
export type Methods<Api> = { readonly [Name in keyof Api]: (argument: never) => unknown };

type Argument<Method> = Method extends (argument: infer One) => unknown ? One : never;
type Result<Method> = Method extends (argument: never) => infer One ? Awaited<One> : never;

/** The other process has ended, or its line was closed: nobody will answer. */
export class PeerGone extends Error {
  override readonly name = "PeerGone";
}

/** An `ApiError` on its way; of another error only the message, which goes into the log. */
export interface WireError {
  readonly code?: ErrorCode;
  readonly message: string;
  readonly options?: Pick<ApiErrorOptions, "param" | "retryAfter" | "retryable">;
}

type Frame =
  | {
      readonly type: "call";
      readonly id: number;
      readonly name: string;
      readonly argument: unknown;
    }
  | { readonly type: "cast"; readonly name: string; readonly argument: unknown }
  | { readonly type: "result"; readonly id: number; readonly value: unknown }
  | { readonly type: "failure"; readonly id: number; readonly error: WireError };

interface Waiting {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** One end of the line: calls `Theirs` over there, and carries out `Own` here. */
export class Peer<Theirs extends Methods<Theirs>, Own extends Methods<Own>> {
  readonly #send: (frame: unknown) => void;
  readonly #own: Own;
  readonly #report: (error: unknown) => void;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;
  #closed = false;

  /** `report` is told of a cast that failed, since nobody waits for its answer. */
  constructor(send: (frame: unknown) => void, own: Own, report: (error: unknown) => void) {
    this.#send = send;
    this.#own = own;
    this.#report = report;
  }

  /** @throws what the method threw over there, or `PeerGone` */
  call<Name extends keyof Theirs & string>(
    name: Name,
    argument: Argument<Theirs[Name]>,
  ): Promise<Result<Theirs[Name]>> {
    return new Promise((resolve, reject) => {
      if (this.#closed) throw new PeerGone("the other process is gone");
      const id = ++this.#lastId;
      const settle = resolve as (value: unknown) => void;
      this.#waiting.set(id, { resolve: settle, reject });
      this.#send({ type: "call", id, name, argument } satisfies Frame);
    });
  }

  /** As `call`, without an answer. A message to a process that is gone is lost. */
  cast<Name extends keyof Theirs & string>(name: Name, argument: Argument<Theirs[Name]>): void {
    if (!this.#closed) this.#send({ type: "cast", name, argument } satisfies Frame);
  }

  /** Takes what came over the line; what is not of ours (a tool may use the line as well) is left alone. */
  receive(message: unknown): void {
    if (!isFrame(message)) return;
    switch (message.type) {
      case "call":
        void this.#answer(message.id, message.name, message.argument);
        break;
      case "cast":
        this.#carryOut(message.name, message.argument).catch(this.#report);
        break;
      case "result":
        this.#take(message.id)?.resolve(message.value);
        break;
      case "failure":
        this.#take(message.id)?.reject(decodeError(message.error));
    }
  }

  /** The line is closed: fails every call that waits. */
  close(): void {
    this.#closed = true;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(new PeerGone("the other process is gone"));
  }

  async #answer(id: number, name: string, argument: unknown): Promise<void> {
    let answer: Frame;
    try {
      answer = { type: "result", id, value: await this.#carryOut(name, argument) };
    } catch (error) {
      answer = { type: "failure", id, error: encodeError(error) };
    }
    if (!this.#closed) this.#send(answer);
  }

  /** Begins within the same turn, so that what one side sends is begun in its order on the other. */
  async #carryOut(name: string, argument: unknown): Promise<unknown> {
    if (!Object.hasOwn(this.#own, name)) throw new Error(`there is no method ${name}`);
    const method = this.#own[name as keyof Own] as unknown as (argument: unknown) => unknown;
    return method(argument);
  }

  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    return waiting;
  }
}

const TYPES: ReadonlySet<unknown> = new Set(["call", "cast", "result", "failure"]);

function isFrame(message: unknown): message is Frame {
  return typeof message === "object" && message !== null && "type" in message && TYPES.has(message.type);
}

export function encodeError(error: unknown): WireError {
  if (!(error instanceof ApiError)) {
    return { message: error instanceof Error ? error.message : String(error) };
  }
  const { code, message, param, retryAfter, retryable } = error;
  return {
    code,
    message,
    options: { ...(param === undefined ? {} : { param }), retryAfter, retryable },
  };
}

export function decodeError({ code, message, options }: WireError): Error {
  return code === undefined ? new Error(message) : new ApiError(code, message, options);
}
