import type {
  BedrockRuntimeClient,
  ConverseStreamCommand,
  ConverseStreamOutput,
} from "@aws-sdk/client-bedrock-runtime";
import type { OnAnswer } from "../provider.ts";
import { destinationOf, exchange, headersOf, isStream, refusalOf } from "../upstream/exchange.ts";
import type { UpstreamLine } from "../upstream/line.ts";
import { tell } from "../upstream/request-id.ts";
import { httpRefusal, sdkFailure } from "./failures.ts";
import { FrameLengths } from "./frame-lengths.ts";

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
 * without a bound, and cannot talk to the gateways and proxies that speak no HTTP/2.
 */
export class BedrockConnection {
  readonly #line: UpstreamLine;
  readonly #onAnswer: OnAnswer | undefined;
  #events: AsyncIterator<ConverseStreamOutput> | undefined;
  /** A refusal. Kept here, since the package writes into the errors that pass through it. */
  #refusal: unknown;

  constructor(line: UpstreamLine, onAnswer: OnAnswer | undefined) {
    this.#line = line;
    this.#onAnswer = onAnswer;
  }

  /** Sends the request and waits for the answer to begin. */
  async start(client: BedrockRuntimeClient, command: ConverseStreamCommand): Promise<void> {
    this.#takeOver(command);
    try {
      // Finding credentials may take long too, and does not look at the signal.
      const { stream } = await this.#line.open((abortSignal) => client.send(command, { abortSignal }));
      this.#events = stream?.[Symbol.asyncIterator]();
    } catch (error) {
      throw this.#causeOf(error, this.#line.isAnswered);
    }
  }

  /** The next event of the stream; `undefined` at its end. */
  async read(): Promise<ConverseStreamOutput | undefined> {
    try {
      const next = await this.#events?.next();
      if (this.#line.failure !== undefined) throw this.#line.failure;
      return next === undefined || next.done ? undefined : next.value;
    } catch (error) {
      throw this.#causeOf(error, true);
    }
  }

  #causeOf(error: unknown, answered: boolean): unknown {
    return this.#line.failure ?? this.#refusal ?? sdkFailure(error, answered);
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

  async #exchange({ method, protocol, hostname, port, path, headers, body = "" }: BuiltRequest) {
    const address = `${protocol}//${hostname}${port === undefined ? "" : `:${port}`}${path}`;
    const to = destinationOf(address);
    try {
      const answer = await exchange(to, { method, headers, body }, this.#line.signal);
      tell(this.#onAnswer, answer.headers);
      if (!isStream(answer, "application/vnd.amazon.eventstream")) {
        throw httpRefusal(await refusalOf(answer));
      }
      this.#line.take(answer);
      const { statusCode = 200 } = answer;
      return { statusCode, headers: Object.fromEntries(headersOf(answer)), body: this.#body() };
    } catch (cause) {
      this.#refusal = cause;
      throw new Error("the connection failed", { cause });
    }
  }

  async *#body(): AsyncGenerator<Uint8Array, void> {
    const lengths = new FrameLengths();
    for (;;) {
      const bytes = await this.#line.read();
      if (bytes === undefined) return;
      try {
        lengths.pass(bytes);
      } catch (error) {
        this.#refusal = error;
        throw error;
      }
      yield bytes;
    }
  }
}
