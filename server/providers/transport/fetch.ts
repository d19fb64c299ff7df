/**
 * Sends requests to models, by undici's `request`: `fetch` costs twice as much for a streamed answer, and on Node 20 it can
 * lose an abort after a garbage collection. No redirect is followed: the key and the prompt stay where they were sent.
 */

import type { Readable } from "node:stream";
import { OpenAI } from "openai";
import { type Dispatcher, EnvHttpProxyAgent, request } from "undici";
import { isCompressed, UpstreamRefusal } from "../failures.ts";
import type { AnswerHead, SentRequest } from "../provider.ts";

/** The head of an answer that is a stream, whose body is still to be read. */
export interface StreamedAnswer extends AnswerHead {
  readonly stream: Readable;
}

/** What every sender of a request gets. */
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

/** How long an idle connection is kept where its server does not say less: shorter than most proxies keep it. */
const IDLE_CONNECTION_MS = 60_000;

let dispatcher: Dispatcher | undefined;

/** `UpstreamResponse` has the time limits: undici's would also end an answer that waits for a slow client. */
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
 * Resolves with an answer that is a stream of this media type, or event stream under another type.
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
  // Without a listener, the error of a body that is not read to its end would end the process.
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

/** Longer than each line that may begin an event stream, after a byte order mark and some blank lines. */
const BEGIN_BYTES = 64;

/**
 * Whether a body is an event stream although its type is another one or missing: its first bytes say it. They stay in it if it
 * is one, and are put into `start` if not.
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

/** The status of a refusal says the most: a body that is cut, or does not end in time, is taken as far as it arrived. */
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

/** What the `openai` package itself sets. `OPENAI_CUSTOM_HEADERS` would add others to every provider's requests. */
const SENT_HEADERS =
  /^(?:accept|authorization|content-type|openai-organization|openai-project|user-agent|x-stainless-.*)$/;

/**
 * The `fetch` of the `openai` package, for requests that an event stream answers. The response has the whole of it in `answer`; the
 * package never reads it, because its own decoder hides that an answer was cut. @throws UpstreamRefusal for every other answer
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

/** The address of an OpenAI-compatible API, and the account that is billed. What is "" is not sent. */
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

/** For the package, the longest wait that a Node timer knows: the limits are ours. */
const NO_TIMEOUT = 2_147_483_647;

/**
 * Sends by the `openai` package. What it would otherwise read from the process's environment is set: keys and organizations
 * for OpenAI must not travel to another provider.
 */
export function openAiClient({ baseURL, apiKey, organization, project }: ApiAddress): PostStream {
  const client = new OpenAI({
    baseURL,
    // The package demands one; each request brings the header with the real one.
    apiKey: "none",
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    fetch: nodeFetch,
    logLevel: "off",
    // Its own back-off would sleep on after the client has gone.
    maxRetries: 0,
    timeout: NO_TIMEOUT,
  });
  return async (path, body, { signal, onSent }) => {
    const key = typeof apiKey === "function" ? await apiKey() : apiKey;
    // Here, because `OPENAI_CUSTOM_HEADERS` would win over the client's own fields.
    const headers = {
      authorization: key === "" ? null : `Bearer ${key}`,
      "openai-organization": organization || null,
      "openai-project": project || null,
    };
    // Handed on to our `fetch`.
    const fetchOptions = { onSent } as object;
    const response = await client.post(path, { body, signal, headers, fetchOptions, stream: true }).asResponse();
    return (response as Response & { answer: StreamedAnswer }).answer;
  };
}
