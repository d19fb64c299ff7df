import type { IncomingMessage } from "node:http";
import type { MessageMemory } from "../limits/memory-budget.ts";
import { ApiError } from "../protocol/errors.ts";
import type { RequestContext } from "./request.ts";
import { whenClosed } from "./respond.ts";
import { cutOff, LARGE_BYTES, Upload, type UploadRules } from "./upload.ts";

export interface BodyRules extends UploadRules {
  maxBytes: number;
  /** Of the client. */
  address: string;
  /** Counts the bytes of the body. */
  memory: MessageMemory;
}

/**
 * Reads a JSON body and hands its bytes to `use`; the slot of a large one is occupied until `use` is done. The body is
 * judged by its headers before a byte is read, and counted while it arrives. What is left of a refused body is thrown away,
 * so that the client can read the refusal.
 * @throws ApiError
 */
export async function withBody<Value>(
  { req, res }: RequestContext,
  rules: BodyRules,
  use: (body: Buffer) => Promise<Value>,
): Promise<Value> {
  refuseOtherMedia(req);
  const length = Number(req.headers["content-length"] ?? 0);
  if (length > rules.maxBytes) throw tooLarge(rules.maxBytes);
  const reader = new BodyReader(req, rules);
  whenClosed(res, () => reader.end());
  try {
    if (length > LARGE_BYTES) await reader.waitForSlot();
    rules.memory.expect(length);
    // The client may wait until the body is wanted.
    if (/^100-continue$/i.test(req.headers.expect ?? "")) res.writeContinue();
    return await use(await reader.read());
  } finally {
    reader.end();
  }
}

/** @throws ApiError `unsupported_media_type` */
function refuseOtherMedia({ headers }: IncomingMessage): void {
  const contentType = headers["content-type"] ?? "";
  const charset = /;\s*charset\s*=\s*"?([^\s;"]*)/i.exec(contentType)?.[1] ?? "utf-8";
  if (!/^\s*application\/json\s*(?:;|$)/i.test(contentType) || !/^(?:utf-?8|us-ascii)$/i.test(charset)) {
    throw unsupported("Send the body as JSON in UTF-8, with the header Content-Type: application/json.");
  }
  // Node decodes chunks only; a body in another coding would be taken as it is.
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

/** Collects one body. */
class BodyReader {
  readonly #req: IncomingMessage;
  readonly #rules: BodyRules;
  /** Of a large body. */
  #upload: Upload | undefined;
  /** Filled as the body arrives: to join the chunks of a large one at its end would hold up everything else. */
  #bytes = Buffer.alloc(0);
  #size = 0;
  #isRefused = false;
  #reject: (error: unknown) => void = () => {};

  constructor(req: IncomingMessage, rules: BodyRules) {
    this.#req = req;
    this.#rules = rules;
  }

  /** For a large body. @throws ApiError `overloaded` */
  waitForSlot(): Promise<void> {
    this.#upload ??= new Upload(this.#rules, this.#rules.address, (error) => this.#refuse(error));
    return this.#upload.begin();
  }

  end(): void {
    this.#upload?.end();
  }

  read(): Promise<Buffer> {
    const req = this.#req;
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      if (isCutOff(req)) {
        reject(cutOff());
        return;
      }
      req.on("data", (chunk: Buffer) => this.#add(chunk));
      req.on("end", async () => {
        this.#upload?.arrived();
        // The last chunk may be the one that made the body large.
        await this.#upload?.begin().catch(reject);
        resolve(this.#bytes.subarray(0, this.#size));
      });
      req.on("close", () => {
        if (isCutOff(req)) reject(cutOff());
      });
      // The client has broken off, or Node's parser answers by itself.
      req.on("error", () => reject(cutOff()));
    });
  }

  #add(chunk: Buffer): void {
    if (this.#isRefused) return;
    const { maxBytes, memory } = this.#rules;
    const at = this.#size;
    this.#size += chunk.length;
    this.#upload?.count(chunk.length);
    try {
      if (this.#size > maxBytes) throw tooLarge(maxBytes);
      memory.grow(chunk.length);
    } catch (error) {
      this.#refuse(error);
      return;
    }
    if (this.#size > this.#bytes.length) this.#grow();
    chunk.copy(this.#bytes, at);
    if (this.#size > LARGE_BYTES && this.#upload === undefined) this.#pauseForSlot();
  }

  /** The announced length is believed where there is a slot: those are few, and an announcement costs a client nothing. */
  #grow(): void {
    const announced = this.#upload === undefined ? 0 : Number(this.#req.headers["content-length"] ?? 0);
    const larger = Buffer.allocUnsafeSlow(Math.max(announced, 2 * this.#bytes.length, this.#size));
    this.#bytes.copy(larger);
    this.#bytes = larger;
  }

  /** A body in chunks does not say in advance that it is large. */
  #pauseForSlot(): void {
    this.#req.pause();
    this.waitForSlot().then(
      () => this.#req.resume(),
      (error: unknown) => this.#refuse(error),
    );
  }

  /** What still arrives is thrown away. */
  #refuse(error: unknown): void {
    this.#isRefused = true;
    this.#bytes = Buffer.alloc(0);
    this.#upload?.end();
    this.#reject(error);
    this.#req.resume();
  }
}

function tooLarge(maxBytes: number): ApiError {
  return new ApiError("request_too_large", `The request body is larger than ${maxBytes} bytes.`);
}

/** Whether the connection is gone, and not all of the body has been read. */
function isCutOff(req: IncomingMessage): boolean {
  return req.destroyed && !req.readableEnded;
}
