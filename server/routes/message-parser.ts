import { setImmediate as nextTurn } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import { type Blocks, SMALL_BYTES } from "../http/blocks.ts";
import { InvalidUtf8, parseJson } from "../http/parse-json.ts";
import { ApiError } from "../protocol/api-error.ts";
import {
  type ChatRules,
  continuesRemembered,
  parseChat,
  parseSocketMessage,
  type SocketCommand,
} from "./parse-chat.ts";
import type { ParseJob, ParseOutcome } from "./parse-worker.ts";
import type { Remembered } from "./remembered-state.ts";

/** Far longer than 64 MiB of text and files take: only what was built to be slow takes this long. */
const MAX_PARSE_MS = 10_000;

/** After this time without a large message the thread ends and gives its memory back. */
const IDLE_MS = 30_000;

/**
 * Turns bytes into checked messages: small ones at once, large ones in a thread of their own and one after
 * another, since parsing one cannot be interrupted and every running answer would wait for it.
 */
export class MessageParser {
  readonly #rules: () => ChatRules;
  readonly #file: string;
  #worker: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;
  #last: Promise<unknown> = Promise.resolve();

  /**
   * The rules are asked for with each message, since some can change while the server runs. `file` is the
   * built `parse-worker.ts`.
   */
  constructor(rules: () => ChatRules, file: string) {
    this.#rules = rules;
    this.#file = file;
  }

  /** Parses a body of `POST /api/chat`. @throws ApiError */
  async body(bytes: Blocks): Promise<ReturnType<typeof parseChat>> {
    const rules = this.#rules();
    if (!bytes.isMuch) return parseChat(parseJson(bytes.join(), rules.limits), rules);
    // The worker runs the very same function.
    return (await this.#inTurn(bytes, undefined)) as ReturnType<typeof parseChat>;
  }

  /** Parses a socket's text frame; `remembered` is what it continues from. @throws ApiError */
  async frame(bytes: Blocks, remembered: Remembered): Promise<SocketCommand> {
    const rules = this.#rules();
    if (!bytes.isMuch) {
      const body = parseJson(bytes.join(), rules.limits);
      // A large state takes as long to check as a large message.
      const isMuch = remembered.length > SMALL_BYTES && continuesRemembered(body);
      if (!isMuch) return parseSocketMessage(body, remembered, rules);
    }
    return (await this.#inTurn(bytes, remembered)) as SocketCommand;
  }

  /** Ends the thread. */
  async close(): Promise<void> {
    clearTimeout(this.#idle);
    await this.#worker?.terminate();
  }

  #inTurn(bytes: Blocks, remembered: Remembered | undefined): Promise<unknown> {
    // What is handed over is lost here, and little may lie in memory of others: it is copied.
    const blocks = bytes.isMuch ? bytes.take() : [Uint8Array.from(bytes.join())];
    const job = () => this.#parse({ blocks, remembered, rules: this.#rules() });
    const result = this.#last.then(job, job);
    this.#last = result;
    return result;
  }

  async #parse(job: ParseJob): Promise<unknown> {
    const outcome = await this.#ask(job);
    // What came from the thread was copied in this turn, and what is large will be once more.
    await nextTurn();
    if (outcome.ok) return outcome.value;
    if ("bug" in outcome) throw new Error(`a message could not be read: ${outcome.bug}`);
    if ("invalidUtf8" in outcome) throw new InvalidUtf8();
    throw new ApiError(outcome.code, outcome.message, outcome.options);
  }

  #ask(job: ParseJob): Promise<ParseOutcome> {
    clearTimeout(this.#idle);
    this.#worker ??= this.#start();
    const worker = this.#worker;
    return new Promise<ParseOutcome>((resolve, reject) => {
      const giveUp = (why: Error) => {
        this.#drop(worker);
        reject(why);
      };
      const timer = setTimeout(() => giveUp(tooMuchWork()), MAX_PARSE_MS);
      const settle = () => {
        clearTimeout(timer);
        worker.off("message", onMessage);
        worker.off("error", onError);
        worker.off("exit", onEnd);
      };
      const onMessage = (outcome: ParseOutcome) => {
        settle();
        this.#idle = setTimeout(() => this.#drop(worker), IDLE_MS).unref();
        resolve(outcome);
      };
      const onError = (error: unknown) => {
        settle();
        giveUp(isOutOfMemory(error) ? tooMuchWork() : brokenThread(error));
      };
      const onEnd = () => onError(undefined);
      worker.on("message", onMessage).on("error", onError).on("exit", onEnd);
      worker.postMessage(job, transferred(job.blocks));
    });
  }

  #start(): Worker {
    // Seldom needed, and a part of the start if it were imported.
    const threads = process.getBuiltinModule("node:worker_threads");
    const worker = new threads.Worker(this.#file, {
      name: "parse-worker",
      // It needs nothing of the environment, which holds the keys.
      env: {},
    });
    worker.unref();
    // Whoever waits for it hears of it, too; this one is for when nobody does.
    worker.on("error", () => this.#drop(worker));
    return worker;
  }

  #drop(worker: Worker): void {
    if (this.#worker === worker) this.#worker = undefined;
    void worker.terminate();
  }
}

function transferred(blocks: readonly Uint8Array[]): ArrayBuffer[] {
  return blocks.map(({ buffer }) => buffer).filter((buffer) => buffer instanceof ArrayBuffer);
}

/** What the message itself is to blame for. */
function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY";
}

/** A fault of ours: the client hears only that there was one, and the log what it was. */
function brokenThread(cause: unknown): Error {
  return new Error("the thread that reads large messages ended", { cause });
}

function tooMuchWork(): ApiError {
  return new ApiError("request_too_large", "The message is too complex to be read.");
}
