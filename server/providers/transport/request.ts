/** One model request: sent, sent again where that can help, and read as a stream of JSON messages. */

import { StringDecoder } from "node:string_decoder";
import { setTimeout as sleep } from "node:timers/promises";
import type { ApiError } from "../../protocol/errors.ts";
import { isRecord, type Json } from "../../protocol/json.ts";
import { SseDecoder, type SseMessage } from "../../protocol/sse.ts";
import {
  causeNames,
  type ExplainFailure,
  isModelFault,
  reportsFailure,
  requestIdOf,
  statusOf,
  toProviderError,
  UpstreamFailure,
  UpstreamGarbage,
  UpstreamRefusal,
  unwrapped,
  upstreamCause,
} from "../failures.ts";
import type { ProviderSetup, RequestObserver, RetryClock, SentModel, TryObserver } from "../provider.ts";
import type { Sending, StreamedAnswer } from "./fetch.ts";
import { type Packet, UpstreamResponse } from "./upstream-response.ts";

export interface UpstreamRequest {
  setup: SentModel & Pick<ProviderSetup, "label" | "limits" | "clock">;
  /** Sends the request once. Must reject if the answer is not a stream, preferably with an `UpstreamRefusal`. */
  send(sending: Sending): Promise<StreamedAnswer>;
  /** Called if the request's content is refused; `true` if `send` will now send a changed request, which is worth a try. */
  adapt?(refusal: UpstreamRefusal): boolean;
  observer?: RequestObserver | undefined;
  /** Explains failures that only this provider has. */
  explain?: ExplainFailure | undefined;
  /** Reads packets in another form than Server-Sent Events. One decoder reads one answer. */
  decoder?(): PacketDecoder<never>;
}

/** The messages that a packet completes. Iterating may throw after it has given earlier messages. */
export type PacketDecoder<Kind extends Packet = Buffer> = (packet: Kind) => Iterable<UpstreamMessage>;

/** A message whose data is a JSON text, or its value if it was parsed already. */
interface UpstreamMessage extends Omit<SseMessage, "data"> {
  data: string | Json;
}

/** Interprets an API's messages. One reader reads one answer. */
export interface MessageReader<Event> {
  /** Adds one message's events to `said`. @throws UpstreamFailure for a message that reports one, UpstreamGarbage */
  read(type: string, message: Json, said: Event[]): void;
  /** Called when the answer has ended; `isDone`: `[DONE]` was read. @throws UpstreamTruncation if it is not complete */
  end(said: Event[], isDone: boolean): void;
  /** Whether the answer is complete, so that nothing after it is awaited. `[DONE]` means this in any API. */
  readonly isComplete?: boolean;
  /** Whether only data such as the usage may follow: it is awaited for a moment, and may be missing. */
  readonly isFinished?: boolean;
  /** Whether an event of this name can be the API's. Events that others add are skipped. Absent: all are the API's. */
  knows?(event: string, message: Json): boolean;
}

/** Yields the events of each packet of the answer, and at last those of its end. Each try has a reader. @throws ApiError */
export async function* streamEvents<Event>(
  request: UpstreamRequest,
  newReader: () => MessageReader<Event>,
  signal: AbortSignal,
): AsyncGenerator<Event[]> {
  const tries = new Tries(request);
  const { observer } = request;
  const report = (id: string | undefined) => id !== undefined && observer?.answered(id);
  let hasSaid = false;
  for (;;) {
    signal.throwIfAborted();
    const reader = newReader();
    const response = new UpstreamResponse(request.setup.limits, tries.deadline, signal);
    const seen = observer?.sending?.(request.setup);
    const packets = new PacketReader(request, reader, seen);
    try {
      const head = await response.open((own) =>
        request.send({ signal: own, onSent: seen && ((sent) => seen.sent(sent)) }),
      );
      seen?.streams(head);
      report(requestIdOf(head.headers));
      while (!packets.isComplete) {
        const arrived = response.read();
        if (arrived === undefined) {
          if (response.isEnded) break;
          await response.change();
          continue;
        }
        const said = packets.read(arrived);
        hasSaid ||= said.length > 0;
        if (packets.isFinished && !packets.isComplete) response.endSoon();
        if (said.length > 0) yield said;
        // Only now, so that the client gets the events before a failure in the same packet.
        if (packets.failure !== undefined) throw packets.failure.error;
      }
      const last: Event[] = [];
      reader.end(last, packets.isDone);
      response.close(true);
      seen?.ended({ type: "complete" });
      if (last.length > 0) yield last;
      return;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const cause = upstreamCause(error);
      if (cause instanceof UpstreamRefusal) report(cause.requestId);
      const failure = request.explain?.(cause) ?? toProviderError(request.setup.label, cause, packets.hasBegun);
      seen?.ended({ type: "failed", error: failure });
      // What a user has seen cannot be taken back.
      const isTooLate = isModelFault(failure.cause) ? hasSaid : packets.hasBegun;
      if (isTooLate || !(await tries.mayRepeat(failure, signal))) throw failure;
    } finally {
      response.close(false);
      seen?.ended({ type: "aborted", reason: signal.reason });
    }
  }
}

/** Decodes the packets of an answer, and gives their messages to its reader. */
class PacketReader<Event> {
  readonly #reader: MessageReader<Event>;
  readonly #decode: PacketDecoder<never>;
  readonly #seen: TryObserver | undefined;
  /** Whether a message was read that is not a failure: from then on, users could notice another try. */
  hasBegun = false;
  isComplete = false;
  /** Whether `[DONE]` was read. */
  isDone = false;
  /** Whether the packets read last had a message after which only data such as the usage may follow. */
  isFinished = false;
  failure: { readonly error: unknown } | undefined;

  constructor(request: UpstreamRequest, reader: MessageReader<Event>, seen: TryObserver | undefined) {
    this.#reader = reader;
    this.#seen = seen;
    this.#decode = request.decoder?.() ?? sseDecoder();
  }

  /** The events of the packets, up to a message that is a failure. */
  read(packets: readonly Packet[]): Event[] {
    const said: Event[] = [];
    this.isFinished = false;
    try {
      // Decoding many small packets costs more than joining them.
      const joined = packets.length > 1 && packets.every(Buffer.isBuffer) ? [Buffer.concat(packets)] : packets;
      for (const packet of joined) this.#readPacket(packet, said);
    } catch (error) {
      this.failure = { error };
    }
    return said;
  }

  #readPacket(packet: Packet, said: Event[]): void {
    for (const { event, data } of this.#decode(packet as never)) {
      this.#seen?.message(event, data);
      if (data === "[DONE]") this.isComplete = this.isDone = true;
      if (this.isComplete) break;
      const message = typeof data === "string" ? parseMessage(event, data, this.#reader) : data;
      if (message === undefined) continue;
      this.hasBegun = true;
      this.#reader.read(event, message, said);
      this.isComplete = this.#reader.isComplete === true;
      this.isFinished = this.#reader.isFinished === true;
    }
  }
}

/** The messages of Server-Sent Events. It throws an UpstreamGarbage for an event without end. */
export function sseDecoder(): (packet: Buffer) => SseMessage[] {
  const sse = new SseDecoder();
  const utf8 = new StringDecoder("utf8");
  return (packet) => {
    try {
      return sse.feed(utf8.write(packet));
    } catch (cause) {
      throw new UpstreamGarbage("the stream holds an event without end", { cause });
    }
  };
}

/** Empty data, and words that servers send only to keep the connection alive. */
const HEARTBEAT = /^:?\s*(?:ping|pong|heartbeat|keep.?alive)?[\s.!]*$/i;

type EventFilter = Pick<MessageReader<never>, "knows">;

/**
 * The JSON object of an event, or `undefined` for an event to skip: one without data, a heartbeat, or one that a server
 * in between has added. Every API may send an error in the middle of a stream.
 */
function parseMessage(event: string, data: string, reader: EventFilter): Json | undefined {
  let json: unknown;
  try {
    json = JSON.parse(data);
  } catch (cause) {
    if (event === "error") throw new UpstreamFailure(data);
    if (HEARTBEAT.test(data) || !isOfApi(event, {}, reader)) return undefined;
    throw new UpstreamGarbage("an event is not JSON", { cause });
  }
  if (json === null && event !== "error") return undefined;
  const message = Array.isArray(json) ? unwrapped(json) : json;
  const isObject = isRecord(message);
  // Most events: the API's own, without any of the fields that report a failure.
  const isPlain =
    isObject && (message.error ?? null) === null && message.type !== "error" && message.object !== "error";
  if (isPlain && event !== "error" && reader.knows?.(event, message) === true) return message;
  // An error object is an error in an event of any name.
  const hasError = isObject && isRecord(message.error);
  if (!hasError && !isOfApi(event, isObject ? message : {}, reader)) return undefined;
  if (reportsFailure(json, event)) throw new UpstreamFailure(json);
  if (!isObject) throw new UpstreamGarbage("an event is not a JSON object");
  return message;
}

/** Whether an event is the API's own. An event without a name always is, and so is every `error`. */
function isOfApi(event: string, message: Json, reader: EventFilter): boolean {
  return event === "message" || event === "error" || (reader.knows?.(event, message) ?? true);
}

const REAL_CLOCK: RetryClock = {
  wait: (ms, signal) => sleep(ms, undefined, { signal }),
  random: Math.random,
};

/** How often one turn's request is sent and, below, in how many forms, each of them because of a refusal. */
const MAX_TRIES = 3;
/** How often if the model fails while it writes: users have already waited for its answer. */
const MODEL_TRIES = 2;
const MAX_FORMS = 8;

const RETRIED_STATUS = new Set([408, 429, 500, 502, 503, 504, 529]);

/**
 * Errors before a connection was made. A request that was written is not sent again when its connection breaks: the
 * model may have answered it, and it would be paid for twice.
 */
const NOT_SENT = new Set(["ECONNREFUSED", "EAI_AGAIN"]);

/** A user is waiting: if a provider asks for a longer wait, there is no retry, and the wait is passed on. */
const LONGEST_WAIT_SECONDS = 2;

class Tries {
  readonly #request: UpstreamRequest;
  readonly #clock: RetryClock;
  #tried = 1;
  #forms = 1;
  /** When the first byte of the answer is due, as `performance.now()`, for all tries together. */
  readonly deadline: number;

  constructor(request: UpstreamRequest) {
    this.#request = request;
    this.#clock = request.setup.clock ?? REAL_CLOCK;
    this.deadline = performance.now() + request.setup.limits.firstChunkMs;
  }

  /** Waits until another try is due, and resolves with `true`; with `false` at once if none can help. */
  async mayRepeat(failure: ApiError, signal: AbortSignal): Promise<boolean> {
    if (this.#forms < MAX_FORMS && isRefusedContent(failure.cause) && this.#request.adapt?.(failure.cause)) {
      this.#forms++;
      return true;
    }
    const wait = this.#wait(failure);
    if (wait === undefined || performance.now() + wait >= this.deadline) return false;
    this.#tried++;
    await this.#clock.wait(wait, signal);
    return true;
  }

  #wait({ retryable, retryAfter, cause }: ApiError): number | undefined {
    const most = isModelFault(cause) ? MODEL_TRIES : MAX_TRIES;
    if (this.#tried >= most || !retryable || !isTransient(cause)) return undefined;
    if (retryAfter === undefined) {
      // Full jitter, 250 ms and then 500 ms on average: clients that failed together do not return together.
      return this.#clock.random() * 500 * 2 ** (this.#tried - 1);
    }
    if (retryAfter > LONGEST_WAIT_SECONDS) return undefined;
    return retryAfter * 1000 + this.#clock.random() * 250;
  }
}

/** Whether the content of the request was refused: another form of it may be taken. */
export function isRefusedContent(cause: unknown): cause is UpstreamRefusal {
  return cause instanceof UpstreamRefusal && (cause.status === 400 || cause.status === 422) && !isModelFault(cause);
}

function isTransient(cause: unknown): boolean {
  if (cause instanceof UpstreamRefusal && cause.headers.get("x-should-retry") === "false") return false;
  if (isModelFault(cause)) return true;
  if (cause instanceof UpstreamFailure) return RETRIED_STATUS.has(statusOf(cause.detail));
  if (cause instanceof UpstreamRefusal) return RETRIED_STATUS.has(cause.status);
  return causeNames(cause).some((name) => NOT_SENT.has(name));
}

/** Lists to which the author's elements are added: if they were replaced, the agent's tools would be gone. */
const LISTS = new Set(["tools", "include"]);

/** Objects into which the author's fields are merged, because Parley sets some of their fields. */
const OBJECTS = new Set(["reasoning", "output_config", "stream_options"]);

/** The body of a request with the fields of the agent's `extraBody`, which win. */
export function withExtraBody(body: Json, extraBody: Json = {}): Record<string, unknown> {
  const merged = Object.entries(extraBody).map(([name, value]) => [name, mergeField(name, body[name], value)]);
  return { ...body, ...Object.fromEntries(merged) };
}

function mergeField(name: string, own: unknown, value: unknown): unknown {
  if (LISTS.has(name) && Array.isArray(own) && Array.isArray(value)) return [...own, ...value];
  return OBJECTS.has(name) && isRecord(own) && isRecord(value) ? { ...own, ...value } : value;
}
