/**
 * Sends requests to models with undici's `request`: `fetch` costs twice as much for a streamed answer, and on Node 20 it can
 * lose an abort after a garbage collection. Redirects are not followed, so that the key and the prompt reach no other address.
 */

import type { Readable } from "node:stream";
import { OpenAI } from "openai";
import { type Dispatcher, EnvHttpProxyAgent, request } from "undici";
import { isCompressed, UpstreamRefusal } from "../failures.ts";
import type { AnswerHead, SentRequest } from "../provider.ts";

/** The head of a streamed answer, and its body as a stream that is still to be read. */
export interface StreamedAnswer extends AnswerHead {
  readonly stream: Readable;
}

/** What every function that sends a request gets. */
export interface Sending {
  readonly signal: AbortSignal;
  /** Called before the request leaves. */
  readonly onSent?: ((request: SentRequest) => void) | undefined;
}

export interface StreamRequest extends Sending {
  method: string;
  headers: Readonly<Record<string, string>>;
  body: string | Uint8Array;
}

/** How long an idle connection is kept if its server names no shorter time; most proxies keep it longer. */
const IDLE_CONNECTION_MS = 60_000;

let dispatcher: Dispatcher | undefined;

/** `UpstreamResponse` sets the time limits: undici's own would also end an answer that waits for a slow client. */
export function upstreams(): Dispatcher {
  // Made with the first request, because the project's `.env` may name a proxy.
  dispatcher ??= new EnvHttpProxyAgent({
    headersTimeout: 0,
    bodyTimeout: 0,
    connectTimeout: 0,
    keepAliveTimeout: IDLE_CONNECTION_MS,
    keepAliveMaxTimeout: IDLE_CONNECTION_MS,
    keepAliveTimeoutThreshold: 1_000,
    proxyTunnel: false,
    noProxy: noProxy(process.env.no_proxy ?? process.env.NO_PROXY ?? ""),
  });
  return dispatcher;
}

/** A model on this machine is never behind a proxy. */
function noProxy(given: string): string {
  return given.trim() === "*" ? "*" : `${given},localhost,127.0.0.1,[::1]`;
}

/**
 * Resolves with an answer that is a stream of this media type; an event stream may also have another type.
 * @throws UpstreamRefusal for any other
 */
export async function requestStream(url: string, sent: StreamRequest, mediaType: string): Promise<StreamedAnswer> {
  const { method, body: sentBody, signal, onSent } = sent;
  const sentHeaders = { "accept-encoding": "identity", ...sent.headers };
  onSent?.({ url, method, headers: sentHeaders, body: sentBody });
  const { statusCode, headers, body } = await request(url, {
    dispatcher: upstreams(),
    method: method as Dispatcher.HttpMethod,
    headers: sentHeaders,
    body: sentBody,
    signal,
  });
  // Without a listener, an error of a body that is not read to its end would crash the process.
  body.on("error", () => {});
  const head = headersOf(headers);
  const isSuccess = statusCode >= 200 && statusCode < 300;
  const [type = ""] = (head.get("content-type") ?? "").split(";", 1);
  const start: Buffer[] = [];
  if (isSuccess && !isCompressed(head)) {
    const isNamed = type.trim().toLowerCase() === mediaType;
    if (isNamed || (mediaType === EVENT_STREAM && (await beginsAsEvents(body, start)))) {
      return { status: statusCode, headers: head, stream: body };
    }
  }
  throw new UpstreamRefusal(statusCode, head, await readStart(body, start, statusCode < 300));
}

export const EVENT_STREAM = "text/event-stream";

/** Enough for the first field name of an event stream, after a byte order mark and some blank lines. */
const BEGIN_BYTES = 64;

/**
 * Whether a body is an event stream, judged by its first bytes, although its type is another one or missing. The bytes
 * stay in the body if it is one; otherwise `start` has them.
 */
async function beginsAsEvents(body: Readable, start: Buffer[]): Promise<boolean> {
  for await (const packet of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    start.push(packet);
    const bytes = Buffer.concat(start);
    const text = bytes.toString("latin1", 0, BEGIN_BYTES).replace(/^(?:\xef\xbb\xbf)?[\r\n]*/, "");
    if (/^(?:data|event|id|retry)?:/.test(text)) {
      body.unshift(bytes);
      return true;
    }
    const mayBe =
      bytes.length < BEGIN_BYTES && ["data:", "event:", "id:", "retry:"].some((field) => field.startsWith(text));
    if (!mayBe) return false;
  }
  return false;
}

function headersOf(headers: Readonly<Record<string, string | string[] | undefined>>): Headers {
  const head = new Headers();
  for (const [name, value = []] of Object.entries(headers)) for (const each of [value].flat()) head.append(name, each);
  return head;
}

/** How much of a refusal's body is read, and for how long: enough to classify it. */
const MAX_REFUSAL_BYTES = 64 * 1024;
const MAX_REFUSAL_MS = 1_000;

/** The status of a refusal matters most: of a body that is cut off or late, only what has arrived is used. */
async function readStart(body: Readable, start: readonly Buffer[], needsAll: boolean): Promise<string> {
  const chunks = [...start];
  let bytes = Buffer.concat(chunks).length;
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    body.destroy();
  }, MAX_REFUSAL_MS);
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      bytes += chunk.byteLength;
      if (bytes >= MAX_REFUSAL_BYTES) break;
    }
  } catch (error) {
    if (needsAll && !isLate) throw error;
  } finally {
    clearTimeout(timer);
  }
  return new TextDecoder().decode(Buffer.concat(chunks));
}

/** The headers of the `openai` package itself. `OPENAI_CUSTOM_HEADERS` would add others to all providers' requests. */
const SENT_HEADERS =
  /^(?:accept|authorization|content-type|openai-organization|openai-project|user-agent|x-stainless-.*)$/;

/**
 * The `fetch` of the `openai` package, for requests that an event stream answers. The stream is in the response's `answer`; the
 * package never reads it: its own decoder hides that an answer was cut off. @throws UpstreamRefusal for any other answer
 */
async function nodeFetch(
  input: string | URL | Request,
  init: RequestInit & Pick<Sending, "onSent"> = {},
): Promise<Response> {
  const url = input instanceof Request ? input.url : String(input);
  const headers = [...(init.headers as Headers)].filter(([name]) => SENT_HEADERS.test(name));
  const sent = {
    method: init.method ?? "GET",
    headers: Object.fromEntries(headers),
    body: init.body as string,
    signal: init.signal ?? new AbortController().signal,
    onSent: init.onSent,
  };
  const answer = await requestStream(url, sent, EVENT_STREAM);
  return Object.assign(new Response(null), { answer });
}

/** The address of an OpenAI-compatible API, and the account that is billed. Values that are "" are not sent. */
export interface ApiAddress {
  /** As the `openai` package takes it: mostly ends in `/v1`. */
  baseURL: string;
  /** A function is called before each request. */
  apiKey: string | (() => Promise<string>);
  organization?: string;
  project?: string;
}

/** Posts a request whose answer is an event stream. */
export type PostStream = (path: string, body: object, sending: Sending) => Promise<StreamedAnswer>;

/** The longest delay of a Node timer, in milliseconds: Parley limits the time, and the package must not. */
const NO_TIMEOUT = 2_147_483_647;

/**
 * Sends with the `openai` package. Every option that it would read from the process's environment is set: keys and
 * organizations for OpenAI must not be sent to another provider.
 */
export function openAiClient({ baseURL, apiKey, organization, project }: ApiAddress): PostStream {
  const client = new OpenAI({
    baseURL,
    // The package demands a key; each request has a header with the real one.
    apiKey: "none",
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    fetch: nodeFetch,
    logLevel: "off",
    // The package's own back-off would continue after the client has disconnected.
    maxRetries: 0,
    timeout: NO_TIMEOUT,
  });
  return async (path, body, { signal, onSent }) => {
    const key = typeof apiKey === "function" ? await apiKey() : apiKey;
    // Set here, because `OPENAI_CUSTOM_HEADERS` would override headers of the client object.
    const headers = {
      authorization: key === "" ? null : `Bearer ${key}`,
      "openai-organization": organization || null,
      "openai-project": project || null,
    };
    // Passed on to `nodeFetch`.
    const fetchOptions = { onSent } as object;
    const response = await client.post(path, { body, signal, headers, fetchOptions, stream: true }).asResponse();
    return (response as Response & { answer: StreamedAnswer }).answer;
  };
}
