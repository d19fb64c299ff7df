import type {
  BedrockRuntimeClient,
  ConverseStreamCommand,
  ConverseStreamOutput,
} from "@aws-sdk/client-bedrock-runtime";
import { UpstreamGarbage, UpstreamTimeout } from "../failures/failures.ts";
import type { ProviderTimes } from "../provider.ts";
import { MAX_REFUSAL_BYTES } from "../upstream/refusal.ts";
import { httpRefusal, sdkFailure } from "./failures.ts";

/** Largest stream of one model turn. Far beyond any answer: a bound against an endless one. */
const MAX_STREAM_BYTES = 64 * 1024 * 1024;

/** How long a stream that nobody reads on may take to end by itself, so that its connection can be used again. */
const LINGER_MS = 100;

/** A request as the package builds it and hands it to its HTTP client. */
interface BuiltRequest {
  method: string;
  protocol: string;
  hostname: string;
  port?: number;
  path: string;
  headers: Record<string, string>;
  body?: string | Uint8Array<ArrayBuffer>;
}

/**
 * One ConverseStream request and its answer. The package builds, signs and decodes; the bytes between are
 * sent and read here, over HTTP/1.1: its own HTTP/2 client has one limit for every wait, reads a refusal
 * without a bound, and cannot talk to the gateways and proxies that speak no HTTP/2. Each wait has its own
 * limit here, measured on raw bytes.
 */
export class BedrockConnection {
  readonly #signal: AbortSignal;
  readonly #times: ProviderTimes;
  /** When the first byte must be there: retries of one turn share it. */
  readonly #deadline: number;
  readonly #request = new AbortController();
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #events: AsyncIterator<ConverseStreamOutput> | undefined;
  #bytes = 0;
  #closed = false;
  #timer: NodeJS.Timeout | undefined;
  /** Why the bytes ended. Kept here, since the package writes into the errors that pass through it. */
  #failure: unknown;

  /** Aborting the signal closes the connection at once. `deadline` is a time of `performance.now()`. */
  constructor(times: ProviderTimes, deadline: number, signal: AbortSignal) {
    this.#times = times;
    this.#deadline = deadline;
    this.#signal = signal;
    signal.addEventListener("abort", this.#cut, { once: true });
  }

  /** Sends the request and waits for the answer to begin. */
  async start(client: BedrockRuntimeClient, command: ConverseStreamCommand): Promise<void> {
    this.#takeOver(command);
    // Finding credentials may take long too, and does not look at the signal.
    this.#watch();
    try {
      const sent = client.send(command, { abortSignal: this.#request.signal });
      const { stream } = await Promise.race([sent, rejection(this.#request.signal)]);
      this.#events = stream?.[Symbol.asyncIterator]();
    } catch (error) {
      throw this.#failure ?? sdkFailure(error, this.#reader !== undefined);
    } finally {
      clearTimeout(this.#timer);
    }
  }

  /** The next event of the stream; `undefined` at its end. */
  async read(): Promise<ConverseStreamOutput | undefined> {
    try {
      const next = await this.#events?.next();
      if (this.#failure !== undefined) throw this.#failure;
      if (next !== undefined && !next.done) return next.value;
      this.#closed = true;
      return undefined;
    } catch (error) {
      throw this.#failure ?? sdkFailure(error, true);
    }
  }

  /** Must be called in the end, whatever happened before. */
  close(): void {
    this.#signal.removeEventListener("abort", this.#cut);
    if (this.#closed) return;
    if (this.#reader === undefined) this.#cut();
    else void this.#linger(this.#reader);
  }

  /** Puts this connection in the place of the package's HTTP client, for this command only. */
  #takeOver(command: ConverseStreamCommand): void {
    command.middlewareStack.add(
      (next) => (args) => {
        const request = args.request as BuiltRequest;
        // Set for HTTP/2, and signed in the place of `Host`, which HTTP/1.1 demands.
        const { ":authority": host, ...headers } = request.headers;
        if (host !== undefined) request.headers = { ...headers, host };
        return next(args);
      },
      { step: "build", priority: "low", name: "signHost" },
    );
    command.middlewareStack.add(
      () => async (args) => ({ response: await this.#exchange(args.request as BuiltRequest) }),
      { step: "deserialize", priority: "low", name: "exchange" },
    );
  }

  async #exchange({ method, protocol, hostname, port, path, headers, body }: BuiltRequest) {
    // `fetch` derives these two by itself, as they were signed.
    const { host: _host, "content-length": _length, ...sent } = headers;
    const address = `${protocol}//${hostname}${port === undefined ? "" : `:${port}`}${path}`;
    const { signal } = this.#request;
    try {
      const init = {
        method,
        headers: sent,
        body: body ?? null,
        signal,
        redirect: "manual",
      } as const;
      const response = await fetch(address, init);
      this.#reader = response.body?.getReader();
      if (this.#closed) this.#cut();
      clearTimeout(this.#timer);
      const type = response.headers.get("content-type") ?? "";
      if (response.ok && /^application\/vnd\.amazon\.eventstream\b/i.test(type)) {
        const answer = {
          statusCode: response.status,
          headers: Object.fromEntries(response.headers),
        };
        return { ...answer, body: this.#body() };
      }
      throw httpRefusal(response.status, response.headers, await this.#readStart());
    } catch (error) {
      throw this.#fail(error);
    }
  }

  async *#body(): AsyncGenerator<Uint8Array, void> {
    for (;;) {
      const bytes = await this.#readBytes();
      if (bytes === undefined) return;
      yield bytes;
    }
  }

  /** The first bytes of a refusal; the rest is not read, and its connection is closed. */
  async #readStart(): Promise<string> {
    const decoder = new TextDecoder();
    let start = "";
    while (this.#bytes < MAX_REFUSAL_BYTES) {
      const bytes = await this.#readBytes();
      if (bytes === undefined) return start + decoder.decode();
      start += decoder.decode(bytes, { stream: true });
    }
    return start;
  }

  async #readBytes(): Promise<Uint8Array | undefined> {
    this.#watch();
    try {
      const bytes = (await this.#reader?.read())?.value;
      this.#bytes += bytes?.byteLength ?? 0;
      if (this.#bytes <= MAX_STREAM_BYTES) return bytes;
      throw new UpstreamGarbage(`the stream is longer than ${MAX_STREAM_BYTES} bytes`);
    } catch (error) {
      throw this.#fail(error);
    } finally {
      clearTimeout(this.#timer);
    }
  }

  #fail(cause: unknown): Error {
    this.#failure ??= cause;
    return new Error("the connection failed", { cause });
  }

  #watch(): void {
    clearTimeout(this.#timer);
    const started = this.#bytes > 0;
    const limit = started ? this.#times.idle : this.#deadline - performance.now();
    this.#timer = setTimeout(() => {
      const { idle, firstChunk } = this.#times;
      this.#failure ??= new UpstreamTimeout(started ? idle : firstChunk, started);
      this.#cut();
    }, limit);
  }

  /** `fetch` may lose an abort while nothing refers to its request: the reader is cancelled as well. */
  readonly #cut = (): void => {
    this.#closed = true;
    this.#request.abort(this.#signal.reason);
    this.#reader?.cancel().catch(() => {
      // The stream failed before: there is nothing left to close.
    });
  };

  async #linger(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    const timer = setTimeout(this.#cut, LINGER_MS);
    try {
      while (!(await reader.read()).done);
    } catch {
      // The connection broke after the last event that mattered.
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Never fulfilled: rejects when the signal, which belongs to one request only, is aborted. */
function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
