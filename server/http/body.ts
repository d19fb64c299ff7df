import type { IncomingMessage, ServerResponse } from "node:http";
import { ApiError } from "../protocol/api-error.ts";
import { Blocks } from "./blocks.ts";
import { ReadGate } from "./read-gate.ts";
import type { MemoryHold } from "./request-memory.ts";
import { UploadPace } from "./upload-pace.ts";

/** From here on a body is large: it waits for its turn before it is read. */
export const LARGE_BYTES = 1024 * 1024;

/** Lets a number of large bodies in at once. Resolves with what must be called when one is done with. */
export interface LargeBodies {
  /** @throws ApiError `overloaded`, or the signal's reason. */
  enter(address: string, signal: AbortSignal): Promise<() => void>;
}

export interface BodyRules {
  /** Most bytes. */
  readonly limit: number;
  readonly large: LargeBodies;
  /** Bytes per second that a large body must bring while it has its turn; 0: any pace. */
  readonly minRate: number;
  /** Where the client is. */
  readonly address: string;
  /** Counts the bytes of the body. */
  readonly memory: MemoryHold;
}

/**
 * Reads a JSON body and hands its bytes to `use`. Judged by `Content-Length` before a byte is read, and counted
 * while it arrives; what is over the limit is thrown away, not kept, so that the client can read the 413.
 * The turn of a large body lasts until `use` is done with it.
 * @throws ApiError
 */
export async function withBody<Value>(
  req: IncomingMessage,
  res: ServerResponse,
  rules: BodyRules,
  use: (bytes: Blocks) => Promise<Value>,
): Promise<Value> {
  refuseOtherMedia(req);
  const length = Number(req.headers["content-length"] ?? 0);
  if (length > rules.limit) throw tooLarge(rules.limit);
  const turn = new Turn(res, rules);
  try {
    if (length > LARGE_BYTES) await turn.come();
    rules.memory.expect(length);
    // A client that sent "Expect: 100-continue" waits until we want the body; by now we do.
    if (/^100-continue$/i.test(req.headers.expect ?? "")) res.writeContinue();
    return await use(await readBlocks(req, rules, turn));
  } finally {
    turn.end();
  }
}

/** The turn of one large body; a client that goes away loses its place. */
class Turn {
  readonly #res: ServerResponse;
  readonly #rules: BodyRules;
  #gone: AbortController | undefined;
  #coming: Promise<void> | undefined;
  #leave: (() => void) | undefined;
  #isOver = false;

  constructor(res: ServerResponse, rules: BodyRules) {
    this.#res = res;
    this.#rules = rules;
  }

  /** Asks for it once, however often this is called. */
  come(): Promise<void> {
    this.#coming ??= this.#ask();
    return this.#coming;
  }

  get isAsked(): boolean {
    return this.#coming !== undefined;
  }

  /** Also of one that has not come: nobody waits for it any more. */
  end(): void {
    this.#isOver = true;
    if (this.#leave === undefined) this.#gone?.abort(cutOff());
    else this.#leave();
  }

  async #ask(): Promise<void> {
    const gone = new AbortController();
    this.#gone = gone;
    const abort = () => gone.abort(cutOff());
    if (this.#res.destroyed) abort();
    this.#res.once("close", abort);
    const leave = await this.#rules.large.enter(this.#rules.address, gone.signal);
    if (this.#isOver) leave();
    else this.#leave = leave;
  }
}

function refuseOtherMedia(req: IncomingMessage): void {
  const type = (req.headers["content-type"] ?? "").split(";", 1)[0]?.trim().toLowerCase();
  if (type !== "application/json") {
    throw new ApiError(
      "unsupported_media_type",
      "Send the body as JSON, with the header Content-Type: application/json.",
    );
  }
  // Node unpacks chunks only, and would hand over what else was done to the body as if it were the body.
  if (!/^(?:chunked)?$/i.test(req.headers["transfer-encoding"]?.trim() ?? "")) {
    throw new ApiError("unsupported_media_type", "Send the body without Transfer-Encoding, or chunked.");
  }
  const coding = req.headers["content-encoding"] ?? "identity";
  if (coding.toLowerCase() !== "identity") {
    throw new ApiError("unsupported_media_type", "Send the body without Content-Encoding.");
  }
}

function readBlocks(req: IncomingMessage, { limit, memory, minRate }: BodyRules, turn: Turn): Promise<Blocks> {
  return new Promise((resolve, reject) => {
    // Nothing more would be heard of it.
    if (isCutOff(req)) return reject(cutOff());
    let blocks = new Blocks();
    const gate = new ReadGate(req);
    const refuse = (error: unknown) => {
      blocks = new Blocks();
      refused = true;
      pace.stop();
      reject(error);
      // The rest is thrown away as it comes.
      gate.release();
    };
    let refused = false;
    const pace = new UploadPace(minRate, refuse);
    let turnCame = Promise.resolve();
    if (turn.isAsked) pace.start();
    req.on("data", (chunk: Buffer) => {
      if (refused) return;
      pace.count(chunk.length);
      gate.count(chunk.length);
      if (blocks.size + chunk.length > limit) return refuse(tooLarge(limit));
      try {
        memory.grow(chunk.length);
      } catch (error) {
        return refuse(error);
      }
      blocks.add(chunk);
      // A body in chunks did not say that it is large.
      if (blocks.size > LARGE_BYTES && !turn.isAsked) {
        gate.close();
        turnCame = turn.come().then(() => {
          if (!refused) pace.start();
          gate.open();
        });
        turnCame.catch(refuse);
      }
    });
    req.on("end", () => {
      // Node tells of the end of a paused request, too, where its last piece was what made it large.
      turnCame.then(
        () => {
          pace.stop();
          resolve(blocks);
        },
        () => {},
      );
    });
    req.on("close", () => {
      pace.stop();
      if (isCutOff(req)) reject(cutOff());
    });
    // A client that broke off, or what Node's parser answers itself: no fault of ours.
    req.on("error", () => reject(cutOff()));
  });
}

function tooLarge(limit: number): ApiError {
  return new ApiError("request_too_large", `The request body is larger than ${limit} bytes.`);
}

/** Whether its connection is gone, and not all of it has been read. */
function isCutOff(req: IncomingMessage): boolean {
  return req.destroyed && !req.readableEnded;
}

function cutOff(): ApiError {
  return new ApiError("invalid_request", "The request body was cut off.");
}
