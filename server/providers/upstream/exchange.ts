import { type Agent, type IncomingMessage, request as requestHttp } from "node:http";
import { urlToHttpOptions } from "node:url";
import { httpAgent, httpsAgent } from "./agents.ts";
import { isCompressed, MAX_REFUSAL_BYTES, MAX_REFUSAL_MS, UpstreamRefusal } from "./refusal.ts";
import { lengthOf } from "./request-body.ts";

/** Where a request goes: of an address that many go to, taken out once. Node would do so with each, and copy all parts twice. */
export interface Destination {
  readonly protocol: string;
  readonly hostname: string | undefined;
  readonly port: number | string | undefined;
  readonly path: string;
}

/** The address has no name and no password in it: none is taken from the settings. */
export function destinationOf(address: string): Destination {
  const { protocol, hostname, port, path } = urlToHttpOptions(new URL(address));
  return {
    protocol: protocol ?? "",
    hostname: hostname ?? undefined,
    port: port ?? undefined,
    path: path ?? "/",
  };
}

/** A request as it is sent. */
export interface ExchangeRequest {
  method: string;
  headers: Readonly<Record<string, string>>;
  /** In pieces: sent as they are, one after the other. */
  body: string | Uint8Array | readonly Uint8Array[];
}

/**
 * Sends a request and resolves with the head of its answer, whose body is still to be read. Aborting the
 * signal closes the connection, also later.
 *
 * Not with `fetch`: that has limits of its own, five minutes for the head and for each piece, which would
 * bound the settings silently, and on Node 20 it can lose an abort after a garbage collection.
 */
export async function exchange(
  to: Destination,
  request: ExchangeRequest,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  // The agent says which protocol is spoken, so that both are asked for by the same function.
  const agent = to.protocol === "http:" ? httpAgent : await httpsAgent();
  for (;;) {
    signal.throwIfAborted();
    try {
      return await send(agent, to, request, signal);
    } catch (error) {
      // Each is gone from the pool with this, and in the end a new one is made.
      if (!(error instanceof StaleConnection)) throw error;
    }
  }
}

/** A connection from the pool turned out to be one that the other side was just closing. */
class StaleConnection extends Error {}

function send(
  agent: Agent,
  { protocol, hostname, port, path }: Destination,
  { method, headers, body }: ExchangeRequest,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    // An answer is read as it comes: none of its bytes may wait for others to be compressed with.
    // The line has limits of its own: the agent's, for connections that wait, is not to run while this one is in use.
    const sent = requestHttp({
      protocol,
      hostname,
      port,
      path,
      method,
      headers: { "accept-encoding": "identity", ...headers },
      timeout: 0,
      agent,
    });
    const abort = () => sent.destroy(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    sent.once("close", () => signal.removeEventListener("abort", abort));
    sent.on("error", (error: NodeJS.ErrnoException) => {
      const isStale = sent.reusedSocket && error.code === "ECONNRESET";
      reject(isStale ? new StaleConnection() : error);
    });
    // Nobody asked for another protocol; without this, Node drops the connection and says nothing.
    sent.once("upgrade", (answer, socket) => {
      socket.destroy();
      reject(new UpstreamRefusal(answer.statusCode ?? 0, headersOf(answer), ""));
    });
    sent.once("response", (answer) => {
      // Whoever reads is told by the end of the reading: an event that nobody listens to would end the process.
      answer.on("error", () => {});
      resolve(answer);
    });
    if (typeof body === "string" || body instanceof Uint8Array) sent.end(body);
    else {
      // Said here: with more than one piece Node would send chunks, which some servers of models do not take.
      sent.setHeader("content-length", lengthOf(body));
      for (const piece of body) sent.write(piece);
      sent.end();
    }
  });
}

/** The headers of an answer in the form that all of our code reads. */
export function headersOf(answer: IncomingMessage): Headers {
  const headers = new Headers();
  const raw = answer.rawHeaders;
  for (let at = 0; at + 1 < raw.length; at += 2) headers.append(raw[at] ?? "", raw[at + 1] ?? "");
  return headers;
}

/** Whether the answer is a success with a body of this media type that is not compressed. */
export function isStream({ statusCode = 0, headers }: IncomingMessage, mediaType: string): boolean {
  if (statusCode < 200 || statusCode >= 300 || isCompressed(headers["content-encoding"])) return false;
  const type = (headers["content-type"] ?? "").split(";", 1)[0] ?? "";
  return type.trim().toLowerCase() === mediaType;
}

/** The head of an event stream, whose body is still to be read. */
export interface StreamAnswer {
  readonly incoming: IncomingMessage;
}

/** The answer if it is an event stream. @throws UpstreamRefusal for any other */
export async function streamAnswer(asked: Promise<IncomingMessage>): Promise<IncomingMessage> {
  const answer = await asked;
  if (isStream(answer, "text/event-stream")) return answer;
  throw await refusalOf(answer);
}

/** An answer that is no stream: the start of its body is read, and its connection closed after that. */
export async function refusalOf(answer: IncomingMessage): Promise<UpstreamRefusal> {
  return new UpstreamRefusal(answer.statusCode ?? 0, headersOf(answer), await readStart(answer));
}

/** Of a refusal the status says the most: a body that is cut, or does not end in time, is taken as far as it came. */
async function readStart(answer: IncomingMessage): Promise<string> {
  const decoder = new TextDecoder();
  let saysEnough = (answer.statusCode ?? 0) >= 300;
  const timer = setTimeout(() => {
    saysEnough = true;
    answer.destroy();
  }, MAX_REFUSAL_MS);
  let start = "";
  let bytes = 0;
  try {
    for await (const piece of answer as AsyncIterable<Buffer>) {
      bytes += piece.byteLength;
      start += decoder.decode(piece, { stream: true });
      if (bytes >= MAX_REFUSAL_BYTES) return start;
    }
  } catch (error) {
    if (!saysEnough) throw error;
  } finally {
    clearTimeout(timer);
  }
  return start + decoder.decode();
}
