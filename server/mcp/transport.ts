/** How MCP servers are reached: a program's pipes, or HTTP with the headers of the run that asks. */

import { AsyncLocalStorage } from "node:async_hooks";
import type { Client, OAuthClientProvider, Transport } from "@modelcontextprotocol/client";
import { fetch } from "undici";
import type { HttpPlace, McpHttpServer, ProgramPlace } from "../agent/mcp-definition.ts";
import { upstreams } from "../providers/transport/fetch.ts";
import { keep } from "./keeper.ts";

/** The package, loaded. */
export interface Sdk
  extends Pick<
    typeof import("@modelcontextprotocol/client"),
    "Client" | "StreamableHTTPClientTransport" | "ClientCredentialsProvider" | "auth"
  > {
  readonly StdioClientTransport: typeof import("@modelcontextprotocol/client/stdio").StdioClientTransport;
}

/** What a server sends in answer to one request, at most; for news it is asked again then. */
const MAX_BYTES = 32 * 1024 * 1024;
/** A list has at most so many pages. */
const MAX_PAGES = 8;
/** At least so long after a stream broke the rest of its answer is asked for; else when the server says. */
const RESUME_MS = 250;
const TOKEN_MS = 10_000;
/** What servers by the official examples answer, with the status 400, in place of 404. */
const UNKNOWN_SESSION = "No valid session ID provided";
/** For HTTP, to find out which era of the specification the server speaks. */
const PROBE_MS = 3_000;
/** What a program has said last on its standard error. */
const MAX_SAID = 500;

/** The code of the error that a request ends with whose answer was cut off. */
export const NO_ANSWER = -32_098;

/** Gives the headers of one request. */
export type GiveHeaders = () => Promise<Readonly<Record<string, string>>>;

/** What requests are for that are made now. */
interface Purpose {
  /** Requests of another connection have nothing of it. */
  readonly connection: object;
  readonly headers: GiveHeaders | undefined;
  /** Aborted when the call is over that is made. */
  readonly call?: AbortSignal;
}

const PURPOSE = new AsyncLocalStorage<Purpose>();

/** Does work whose requests are for this. */
export const requesting = <Result>(purpose: Purpose, work: () => Result): Result => PURPOSE.run(purpose, work);

/** The server does not know our session any more: it has not looked at the request. */
export class ForgottenSession extends Error {}

interface Made {
  readonly client: Client;
  readonly transport: Transport;
  /** What a program has said last on its standard error, as a sentence. */
  lastWords(): string;
}

interface MadeFor {
  readonly connection: object;
  /** Whether each request is one of a run, whose headers it has. */
  readonly isOfOne: boolean;
}

export function createClient(sdk: Sdk, place: HttpPlace | ProgramPlace, madeFor: MadeFor): Made {
  const isHttp = "url" in place;
  const client = new sdk.Client(
    { name: "parley", version: "1" },
    {
      capabilities: {},
      ...(isHttp && { versionNegotiation: { mode: "auto", probe: { timeoutMs: PROBE_MS } } }),
      // What it returns is text for people and the model, whatever it has announced.
      jsonSchemaValidator: {
        getValidator: () => (data) => ({ valid: true, data: data as never, errorMessage: undefined }),
      },
      listMaxPages: MAX_PAGES,
    },
  );
  if (isHttp) return { client, transport: httpTransport(sdk, place, madeFor), lastWords: () => "" };
  return { client, ...programTransport(sdk, place) };
}

function programTransport(sdk: Sdk, place: ProgramPlace): Omit<Made, "client"> {
  const transport = new sdk.StdioClientTransport({ ...(place as ProgramPlace & { args: string[] }), stderr: "pipe" });
  let said = "";
  transport.stderr?.on("data", (chunk: Buffer) => {
    said = (said + chunk).slice(-MAX_SAID);
  });
  const start = transport.start.bind(transport);
  transport.start = async () => {
    await start();
    const { pid, onclose: closed } = transport;
    // It may have ended.
    if (pid === null) return;
    keep(pid, true);
    transport.onclose = () => {
      keep(pid, false);
      closed?.();
    };
  };
  const lastLine = () => said.trim().split("\n").at(-1) ?? "";
  return { transport, lastWords: () => lastLine() && `It said last: ${lastLine()}` };
}

function httpTransport(
  sdk: Sdk,
  { url, headers: fixed, auth }: HttpPlace,
  { connection, isOfOne }: MadeFor,
): Transport {
  // Some requests follow from a timer or an abort, outside of the run that they belong to.
  let latest: GiveHeaders | undefined;
  const ask = async (address: string | URL, init: RequestInit = {}): Promise<Response> => {
    const headers = new Headers(init.headers);
    // The server may name others, which give tokens.
    const isServer = String(address) === url;
    if (isServer) {
      const purpose = PURPOSE.getStore();
      if (isOfOne && purpose?.connection === connection) latest = purpose.headers;
      for (const [name, value] of Object.entries({ ...fixed, ...(await latest?.()) })) headers.set(name, value);
      // A stream that belongs to no request would be one of no run.
      if (isOfOne && init.method === "GET" && !headers.has("last-event-id")) return new Response(null, { status: 405 });
    }
    const limit = isServer ? {} : { signal: AbortSignal.timeout(TOKEN_MS) };
    const response = bounded(await send(address, { ...init, ...limit, headers }));
    // The package would say all of the answer, which goes into the log.
    if (!isServer && init.method === "POST" && !response.ok) {
      throw new Error(`${address} gave no token, but the status ${response.status}.`);
    }
    if (headers.has("mcp-session-id") && (response.status === 404 || response.status === 400)) {
      const text = await response.text();
      if (response.status === 404 || text.includes(UNKNOWN_SESSION)) throw new ForgottenSession();
      return new Response(text, response);
    }
    return response;
  };
  const authProvider = auth && providerOf(sdk, auth, url);
  const transport: Transport = new sdk.StreamableHTTPClientTransport(new URL(url), {
    fetch: ask,
    requestInit: { redirect: "error" },
    onInsufficientScope: "throw",
    // A server may ask for no time between its attempts.
    reconnectionScheduler(reconnect, ms) {
      const timer = setTimeout(reconnect, Math.max(ms, RESUME_MS)).unref();
      return () => clearTimeout(timer);
    },
    ...(authProvider && { authProvider }),
  });
  const start = transport.start.bind(transport);
  transport.start = async () => {
    // The package would wait for a refusal, and a server may have fewer tools for requests without a token.
    if (authProvider) await sdk.auth(authProvider, { serverUrl: url, fetchFn: ask });
    return start();
  };
  const post = transport.send.bind(transport);
  transport.send = (message, options) => {
    const isCall = "method" in message && message.method === "tools/call";
    const call = isCall ? PURPOSE.getStore()?.call : undefined;
    const error = { code: NO_ANSWER, message: "The connection ended before the answer." };
    // The package would wait for an answer that cannot come any more.
    const onRequestStreamEnd = () => {
      if ("method" in message && "id" in message) transport.onmessage?.({ jsonrpc: "2.0", id: message.id, error });
    };
    return post(message, { ...options, onRequestStreamEnd, ...(call && { requestSignal: call }) });
  };
  return transport;
}

/** As requests to models are sent: by the proxies of the environment, and without time limits of its own. */
async function send(address: string | URL, init: RequestInit): Promise<Response> {
  const sent = { ...init, redirect: "error", dispatcher: upstreams() } as Parameters<typeof fetch>[1];
  return (await fetch(address, sent)) as unknown as Response;
}

/** A response that fails where it goes on for too long. */
function bounded(response: Response): Response {
  if (response.body === null) return response;
  let room = MAX_BYTES;
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      room -= chunk.length;
      if (room >= 0) controller.enqueue(chunk);
      else controller.error(new Error(`The answer is larger than ${MAX_BYTES} bytes.`));
    },
  });
  return new Response(response.body.pipeThrough(limit), response);
}

/** OAuth's client credentials. The secret goes to the address that the author names, else to the server's own origin alone. */
function providerOf(sdk: Sdk, { tokenUrl, ...client }: McpHttpServer["auth"] & {}, url: string): OAuthClientProvider {
  const issuer = new URL(tokenUrl ?? url).origin;
  const provider: OAuthClientProvider = new sdk.ClientCredentialsProvider({ ...client, expectedIssuer: issuer });
  if (tokenUrl === undefined) return provider;
  // What the package would ask the server for.
  const authorizationServerMetadata = {
    issuer,
    authorization_endpoint: tokenUrl,
    token_endpoint: tokenUrl,
    response_types_supported: [],
    token_endpoint_auth_methods_supported: ["client_secret_basic"],
  };
  provider.discoveryState = () => ({ authorizationServerUrl: issuer, authorizationServerMetadata });
  // The server may name others.
  provider.prepareTokenRequest = () =>
    new URLSearchParams({ grant_type: "client_credentials", ...(client.scope && { scope: client.scope }) });
  return provider;
}
