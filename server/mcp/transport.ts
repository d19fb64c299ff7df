/** Transports to MCP servers: a program's pipes, or HTTP with the headers of the run that makes the request. */

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

/** Maximum size of the response to one request; a stream of notifications is opened again beyond it. */
const MAX_BYTES = 32 * 1024 * 1024;
/** Maximum number of pages of a list. */
const MAX_PAGES = 8;
/** Minimum delay before a broken stream is resumed; the server may ask for a longer one. */
const RESUME_MS = 250;
const TOKEN_MS = 10_000;
/** What servers built from the official examples answer, with status 400 in place of 404. */
const UNKNOWN_SESSION = "No valid session ID provided";
/** How long an HTTP server may take to show which era of the specification it supports. */
const PROBE_MS = 3_000;
/** How many of the last characters of a program's standard error are kept. */
const MAX_SAID = 500;

/** Error code of a request whose response was cut off. */
export const NO_ANSWER = -32_098;

/** Returns the headers of one request. */
export type GiveHeaders = () => Promise<Readonly<Record<string, string>>>;

/** On whose behalf requests are being made. */
interface Purpose {
  /** Requests of other connections do not use the headers. */
  readonly connection: object;
  readonly headers: GiveHeaders | undefined;
  /** Aborted when the tool call is over. */
  readonly call?: AbortSignal;
}

const PURPOSE = new AsyncLocalStorage<Purpose>();

/** Runs `work`, whose requests have this purpose. */
export const requesting = <Result>(purpose: Purpose, work: () => Result): Result => PURPOSE.run(purpose, work);

/** The server no longer knows the session, and has not processed the request. */
export class ForgottenSession extends Error {}

interface Made {
  readonly client: Client;
  readonly transport: Transport;
  /** The last line of a program's standard error, as a sentence. */
  lastWords(): string;
}

interface MadeFor {
  readonly connection: object;
  /** Whether each request belongs to a run, and has its headers. */
  readonly isOfOne: boolean;
}

export function createClient(sdk: Sdk, place: HttpPlace | ProgramPlace, madeFor: MadeFor): Made {
  const isHttp = "url" in place;
  const client = new sdk.Client(
    { name: "parley", version: "1" },
    {
      capabilities: {},
      ...(isHttp && { versionNegotiation: { mode: "auto", probe: { timeoutMs: PROBE_MS } } }),
      // Results are text for people and the model, so they need not match the schema that the server has announced.
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
    // The program may have ended already.
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
  // Some requests come from a timer or an abort, outside of their run: they use the latest headers.
  let latest: GiveHeaders | undefined;
  const ask = async (address: string | URL, init: RequestInit = {}): Promise<Response> => {
    const headers = new Headers(init.headers);
    // The server may name other addresses, which give tokens.
    const isServer = String(address) === url;
    if (isServer) {
      const purpose = PURPOSE.getStore();
      if (isOfOne && purpose?.connection === connection) latest = purpose.headers;
      for (const [name, value] of Object.entries({ ...fixed, ...(await latest?.()) })) headers.set(name, value);
      // A stream that belongs to no request would belong to no run.
      if (isOfOne && init.method === "GET" && !headers.has("last-event-id")) return new Response(null, { status: 405 });
    }
    const limit = isServer ? {} : { signal: AbortSignal.timeout(TOKEN_MS) };
    const response = bounded(await send(address, { ...init, ...limit, headers }));
    // The package would quote the whole response, which would be logged.
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
    // A server may ask for attempts without a delay.
    reconnectionScheduler(reconnect, ms) {
      const timer = setTimeout(reconnect, Math.max(ms, RESUME_MS)).unref();
      return () => clearTimeout(timer);
    },
    ...(authProvider && { authProvider }),
  });
  const start = transport.start.bind(transport);
  transport.start = async () => {
    // The package would ask for a token only after a refusal, but a server may have fewer tools without a token.
    if (authProvider) await sdk.auth(authProvider, { serverUrl: url, fetchFn: ask });
    return start();
  };
  const post = transport.send.bind(transport);
  transport.send = (message, options) => {
    const isCall = "method" in message && message.method === "tools/call";
    const call = isCall ? PURPOSE.getStore()?.call : undefined;
    const error = { code: NO_ANSWER, message: "The connection ended before the answer." };
    // The package would wait for a response that can no longer come.
    const onRequestStreamEnd = () => {
      if ("method" in message && "id" in message) transport.onmessage?.({ jsonrpc: "2.0", id: message.id, error });
    };
    return post(message, { ...options, onRequestStreamEnd, ...(call && { requestSignal: call }) });
  };
  return transport;
}

/** Sends as requests to models are sent: through the proxies of the environment, and without time limits of its own. */
async function send(address: string | URL, init: RequestInit): Promise<Response> {
  const sent = { ...init, redirect: "error", dispatcher: upstreams() } as Parameters<typeof fetch>[1];
  return (await fetch(address, sent)) as unknown as Response;
}

/** The response, whose body fails beyond `MAX_BYTES`. */
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

/** OAuth's client credentials. The secret is sent only to the author's `tokenUrl` or, without it, to the server's origin. */
function providerOf(sdk: Sdk, { tokenUrl, ...client }: McpHttpServer["auth"] & {}, url: string): OAuthClientProvider {
  const issuer = new URL(tokenUrl ?? url).origin;
  const provider: OAuthClientProvider = new sdk.ClientCredentialsProvider({ ...client, expectedIssuer: issuer });
  if (tokenUrl === undefined) return provider;
  // What the package would otherwise request from the server.
  const authorizationServerMetadata = {
    issuer,
    authorization_endpoint: tokenUrl,
    token_endpoint: tokenUrl,
    response_types_supported: [],
    token_endpoint_auth_methods_supported: ["client_secret_basic"],
  };
  provider.discoveryState = () => ({ authorizationServerUrl: issuer, authorizationServerMetadata });
  // The server may name other scopes.
  provider.prepareTokenRequest = () =>
    new URLSearchParams({ grant_type: "client_credentials", ...(client.scope && { scope: client.scope }) });
  return provider;
}
