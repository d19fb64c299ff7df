import type { IncomingMessage } from "node:http";
import type { MessageMemory } from "../limits/memory-budget.ts";
import type { MessageLimits, Release } from "../limits/message-limits.ts";
import { ApiError } from "../protocol/errors.ts";
import type { RequestContext } from "./request.ts";
import { whenClosed } from "./respond.ts";

/** A message with more bytes than this is large, and needs a slot. */
export const LARGE_BYTES = 1024 * 1024;

export interface UploadRules {
  limits: Pick<MessageLimits, "admitUpload">;
}

export interface BodyRules extends UploadRules {
  maxBytes: number;
  address: string;
  /** Counts the bytes of the body. */
  memory: MessageMemory;
}

/**
 * Reads a JSON body and passes its bytes to `use`; a large body keeps its slot until `use` is done. The headers are
 * checked before a byte is read, and the bytes are counted as they arrive. The rest of a refused body is discarded, so
 * that the client can read the error.
 * @throws ApiError
 */
export async function withBody<Value>(
  { req, res }: RequestContext,
  rules: BodyRules,
  use: (body: Buffer) => Promise<Value>,
): Promise<Value> {
  refuseOtherMedia(req);
  if (req.readableDidRead) throw alreadyRead();
  const length = Number(req.headers["content-length"] ?? 0);
  if (length > rules.maxBytes) throw tooLarge(rules.maxBytes);
  let upload: Upload | undefined;
  const waitForSlot = () => {
    upload ??= new Upload(rules, rules.address);
    return upload.begin();
  };
  whenClosed(res, () => upload?.end());
  try {
    if (length > LARGE_BYTES) await waitForSlot();
    rules.memory.expect(length);
    // The client may be waiting for this before it sends the body.
    if (/^100-continue$/i.test(req.headers.expect ?? "")) res.writeContinue();
    return await use(await readBytes(req, length, rules, waitForSlot));
  } finally {
    upload?.end();
  }
}

/** `length` is the announced Content-Length, or 0. `waitForSlot` is called for a large body. */
async function readBytes(
  req: IncomingMessage,
  length: number,
  { maxBytes, memory }: BodyRules,
  waitForSlot: () => Promise<void>,
): Promise<Buffer> {
  // Filled as chunks arrive: joining the chunks of a large body at its end would block everything else.
  let bytes = Buffer.alloc(0);
  let size = 0;
  for await (const chunk of chunksOf(req)) {
    const next = size + chunk.length;
    if (next > maxBytes) throw tooLarge(maxBytes);
    memory.growTo(next);
    // A chunked body does not announce that it is large.
    if (next > LARGE_BYTES) await waitForSlot();
    if (next > bytes.length) {
      // Only a body with a slot gets memory for its announced length: any client can announce much and send nothing.
      const announced = length > LARGE_BYTES ? length : 0;
      const larger = Buffer.allocUnsafeSlow(Math.max(announced, 2 * bytes.length, next));
      bytes.copy(larger);
      bytes = larger;
    }
    chunk.copy(bytes, size);
    size = next;
  }
  return bytes.subarray(0, size);
}

/** Leaving the loop early keeps the connection open. @throws ApiError if the client has disconnected */
async function* chunksOf(req: IncomingMessage): AsyncGenerator<Buffer, void> {
  try {
    for await (const chunk of req.iterator({ destroyOnReturn: false })) yield chunk;
  } catch {
    // If Node's parser found an error in the body, the server's `clientError` listener answers.
    throw cutOff();
  } finally {
    // Node skips the rest of a body only if none of it was read, and the next request follows behind it.
    req.resume();
  }
}

/** @throws ApiError `unsupported_media_type` */
function refuseOtherMedia({ headers }: IncomingMessage): void {
  const contentType = headers["content-type"] ?? "";
  const charset = /;\s*charset\s*=\s*"?([^\s;"]*)/i.exec(contentType)?.[1] ?? "utf-8";
  if (!/^\s*application\/json\s*(?:;|$)/i.test(contentType) || !/^(?:utf-?8|us-ascii)$/i.test(charset)) {
    throw unsupported("Send the body as JSON in UTF-8, with the header Content-Type: application/json.");
  }
  // Node decodes `chunked` only; a body in another transfer coding would be read undecoded.
  if (!/^(?:chunked)?$/i.test(headers["transfer-encoding"]?.trim() ?? "")) {
    throw unsupported("Send the body without Transfer-Encoding, or chunked.");
  }
  if ((headers["content-encoding"] ?? "identity").toLowerCase() !== "identity") {
    throw unsupported("Send the body without Content-Encoding.");
  }
}

function unsupported(message: string): ApiError {
  return new ApiError("unsupported_media_type", message);
}

/** On a host's server, middleware before Parley may have read the body. */
function alreadyRead(): ApiError {
  return new ApiError(
    "internal",
    "Another part of this server has read the message's body. Its operator has to call parley.handle before express.json() or whatever else parses bodies.",
    { detail: "the body was read before Parley" },
  );
}

function tooLarge(maxBytes: number): ApiError {
  return new ApiError("request_too_large", `The request body is larger than ${maxBytes} bytes.`);
}

/** A large message being received, as a body or over a socket: waits for a slot and keeps it until `end` is called. */
export class Upload {
  readonly #rules: UploadRules;
  readonly #address: string;
  readonly #ended = new AbortController();
  #slot: Promise<void> | undefined;
  #release: Release | undefined;

  constructor(rules: UploadRules, address: string) {
    this.#rules = rules;
    this.#address = address;
  }

  /** Waits for a slot; a second call waits for the same one. @throws ApiError `overloaded` */
  begin(): Promise<void> {
    this.#slot ??= this.#occupySlot();
    return this.#slot;
  }

  /** Releases the slot, or stops waiting for it. */
  end(): void {
    if (!this.#ended.signal.aborted) this.#ended.abort(cutOff());
    this.#release?.();
  }

  async #occupySlot(): Promise<void> {
    this.#release = await this.#rules.limits.admitUpload(this.#address, this.#ended.signal);
    if (this.#ended.signal.aborted) this.#release();
  }
}

function cutOff(): ApiError {
  return new ApiError("invalid_request", "The request body ended too early.");
}
