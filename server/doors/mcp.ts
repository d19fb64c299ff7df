/** `POST /mcp`: the agent as one tool of the Model Context Protocol, for clients of its 2026 version and of earlier ones. */

import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Agent } from "../agent/define.ts";
import type { ServedAgent } from "../agent/served-agent.ts";
import { digestOf } from "../agent/state.ts";
import type { Caller } from "../auth/access.ts";
import { withBody } from "../http/body.ts";
import { type RequestContext, traceHeaders } from "../http/request.ts";
import { sendEventStream, sendJson, whenClosed } from "../http/respond.ts";
import type { Routes } from "../http/routes.ts";
import type { MessageMemory } from "../limits/memory-budget.ts";
import { ApiError, type ErrorCode, invalidField } from "../protocol/errors.ts";
import { type DoneEvent, isTerminal, type NumberedEvent, type TerminalEvent } from "../protocol/events.ts";
import type { CitedSource } from "../protocol/sources.ts";
import type { McpMessage, RequestId } from "../routes/message.ts";
import { isGiven, messageRules } from "../routes/parse-message.ts";
import type { Service } from "../routes/service.ts";
import { admitMessage, admitReader, parseMessage, startMessage, visitOf } from "../routes/start-message.ts";
import type { StartedRun } from "../runs/run-registry.ts";
import { MemoryStateStore, type StateStore } from "../runs/state-store.ts";
import { inEnglish, waitingWords } from "./words.ts";

export const routesOf = (service: Service): Routes => ({
  "POST /mcp": { access: "operator", handle: mcp(service, service.states ?? new MemoryStateStore()) },
});

/** Since 2026 each request names its protocol version; before, a client proposes one when it connects. Newest first. */
const MODERN = ["2026-07-28"];
const OLDER = ["2025-11-25", "2025-06-18", "2025-03-26"] as const;

// Codes of JSON-RPC and of the specification. Other failures have their status as code.
const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;
const HEADER_MISMATCH = -32020;
const UNSUPPORTED_VERSION = -32022;
const CODE_OF: Partial<Record<ErrorCode, number>> = { invalid_json: -32700, invalid_request: -32600, internal: -32603 };

export function errorBody(error: ApiError, id: RequestId | null = null): object {
  const { code, message, retryable, status } = error;
  return { jsonrpc: "2.0", id, error: { code: CODE_OF[code] ?? status, message, data: { code, retryable } } };
}

interface Reply {
  status: number;
  /** Absent in reply to a notification. */
  body?: object;
  headers?: Readonly<Record<string, string>>;
}

/** A message, and the agent and the version of the server that answer it. */
interface Received {
  readonly message: McpMessage;
  readonly served: ServedAgent;
  readonly version: string;
}

/** A call of the tool. */
interface Ask extends Received {
  readonly memory: MessageMemory;
  readonly sender: Caller;
  /** Names the conversation, which may be a new one. */
  conversation: string;
  /** Version of the stored state that the call continues. */
  from?: string;
}

function mcp(service: Service, states: StateStore) {
  return async (context: RequestContext, caller: Caller): Promise<void> => {
    const { settings, limits } = service;
    const memory = service.memory.openMessage();
    let ask: Ask | undefined;
    const brought = { requestId: context.id, trace: traceHeaders(context.req), memory };
    const started = await startMessage(service, brought, (served) => {
      const rules = { limits, address: caller.address, maxBytes: settings.maxBodyBytes, memory };
      return withBody(context, rules, async (bytes) => {
        const rulesOf = () => messageRules(served, settings, caller);
        const message = await parseMessage(service, { parser: "mcp", bytes }, rulesOf);
        context.errorBody = (error) => errorBody(error, message.id);
        const received = { message, served, version: service.version() };
        const reply = replyTo(received, context.req);
        if (message.method === CANCELLED) await cancel(message, service, served, context, caller);
        if (reply !== undefined) return send(context, reply);
        // Other requests are answered with a few bytes: only calls of the tool count as messages.
        const sender = await admitMessage(service, served, caller, () => visitOf(context));
        ask = { ...received, memory, sender, conversation: conversationOf(message) ?? randomUUID() };
        return readAsk(ask, service, states, context);
      });
    });
    if (started !== undefined && ask !== undefined) await answer(service, states, context, started, ask);
  };
}

/** The reply to a message; `undefined` for a call of the tool. */
function replyTo(received: Received, req: IncomingMessage): Reply | undefined {
  const { message, version } = received;
  const { agent, page } = received.served;
  const { id, method, name, proposed } = message;
  if (id === undefined) return { status: 202 };
  const isModern = message.version !== undefined;
  const result = (fields: object) => ({ status: 200, body: resultBody(received, fields) });
  const refused = versionProblem(message, req);
  if (refused !== undefined) return refused;
  if (method === "tools/call") {
    return name === TOOL ? undefined : refusal(id, 200, INVALID_PARAMS, `Unknown tool: ${name}`);
  }
  if (method === "tools/list")
    return result({ tools: [toolOf(agent, page?.plain.suggestions)], ...(isModern && KEPT) });
  const capabilities = { tools: {} };
  if (isModern && method === "server/discover") return result({ supportedVersions: MODERN, capabilities, ...KEPT });
  if (!isModern && method === "ping") return result({});
  if (!isModern && method === "initialize") {
    const protocolVersion = OLDER.find((one) => one === proposed) ?? OLDER[0];
    const serverInfo = serverInfoOf(agent, version);
    // The session id only helps to name runs: `notifications/cancelled` has nothing else that identifies the client.
    return { ...result({ protocolVersion, capabilities, serverInfo }), headers: { "mcp-session-id": randomUUID() } };
  }
  return refusal(id, isModern ? 404 : 200, METHOD_NOT_FOUND, `Unknown method: ${method}`);
}

/** How long clients may cache the server's description and its list of tools. */
const KEPT = { ttlMs: 5 * 60_000, cacheScope: "private" };

const CANCELLED = "notifications/cancelled";

const serverInfoOf = ({ id, agent }: Agent, version: string) => ({ name: id, title: agent, version });

/** `more` goes into `_meta`, for programs; models do not read it. */
function resultBody({ message, served, version }: Received, fields: object, more: object = {}): object {
  const { id, version: isModern } = message;
  const server = isModern && { "io.modelcontextprotocol/serverInfo": serverInfoOf(served.agent, version) };
  const type = isModern && { resultType: "complete" };
  return { jsonrpc: "2.0", id, result: { ...type, ...fields, _meta: { ...server, ...more } } };
}

function refusal(id: RequestId | undefined, status: number, code: number, message: string, data?: object): Reply {
  return { status, body: { jsonrpc: "2.0", id, error: { code, message, ...(data && { data }) } } };
}

/** The refusal of an unsupported version, or of headers that contradict the body. */
function versionProblem(message: McpMessage, { headers }: IncomingMessage): Reply | undefined {
  const { id, method, name, version, hasCapabilities } = message;
  const said = headers["mcp-protocol-version"]?.toString();
  const unsupported = (requested: string) =>
    refusal(id, 400, UNSUPPORTED_VERSION, "Unsupported protocol version", { supported: MODERN, requested });
  const mismatch = (header: string, right: string) =>
    refusal(id, 400, HEADER_MISMATCH, `The header ${header} must be "${right}", as in the body.`);
  const incomplete = () => refusal(id, 400, INVALID_PARAMS, "params._meta must have version and capabilities.");
  if (version === undefined) {
    if (said === undefined || OLDER.some((one) => one === said)) return undefined;
    return MODERN.includes(said) ? incomplete() : unsupported(said);
  }
  if (!hasCapabilities) return incomplete();
  if (said !== undefined && said !== version) return mismatch("MCP-Protocol-Version", version);
  if (!MODERN.includes(version)) return unsupported(version);
  if (said === undefined) return mismatch("MCP-Protocol-Version", version);
  if (headers["mcp-method"] !== method) return mismatch("Mcp-Method", method);
  const isNamed = method !== "tools/call" || decoded(headers["mcp-name"]?.toString()) === name;
  return isNamed ? undefined : mismatch("Mcp-Name", name ?? "");
}

/** Decodes a header; a text that cannot be a header's value is sent as `=?base64?…?=`. */
function decoded(header: string | undefined): string | undefined {
  const [, base64] = /^=\?base64\?(.*)\?=$/.exec(header ?? "") ?? [];
  return base64 === undefined ? header : Buffer.from(base64, "base64").toString();
}

const TOOL = "ask";

/** The definition of the tool, which models read. */
function toolOf({ agent }: Agent, suggestions: readonly string[] = []): object {
  const examples = suggestions.slice(0, 3).map((text) => `"${text}"`);
  const example = examples.length === 0 ? "" : ` For example: ${examples.join(", ")}.`;
  const id = { type: "string", description: "`conversation` of an earlier answer, to go on from there." };
  return {
    name: TOOL,
    title: agent,
    description: `Sends a message to the assistant "${agent}" and gives its answer.${example} It knows nothing of you but your messages. Send the messages of one conversation one after the other; it is kept for an hour after the last.`,
    inputSchema: {
      type: "object",
      properties: { message: { type: "string", description: "What to say, in plain text." }, conversation: id },
      required: ["message"],
    },
    outputSchema: {
      type: "object",
      properties: {
        ...{ answer: { type: "string" }, conversation: { type: "string" } },
        sources: { type: "array", items: { type: "object" } },
      },
      required: ["answer", "conversation"],
    },
  };
}

/** Cancels the run of an older client's request: such a client does not close the connection. */
async function cancel(
  { cancels }: McpMessage,
  service: Service,
  served: ServedAgent,
  context: RequestContext,
  caller: Caller,
): Promise<void> {
  const name = runNameOf(context.req, cancels);
  if (name === undefined) return;
  const sender = await admitReader(service, served, caller, () => visitOf(context));
  await service.runs.cancel(sender, name).catch((error) => {
    // The run had ended already.
    if (!(error instanceof ApiError)) throw error;
  });
}

/** `undefined` without a session: clients of the 2026 version have none, and close the connection. */
function runNameOf({ headers }: IncomingMessage, id: RequestId | undefined): string | undefined {
  const session = headers["mcp-session-id"];
  return session === undefined || id === undefined ? undefined : digestOf([session, id]);
}

/** Bound to the key and to the user. */
const keyOf = ({ conversation, sender: { keyId, user } }: Ask) => digestOf([keyId, user?.id ?? null, conversation]);

/** Models may also send an empty text. */
function conversationOf({ arguments: { conversation } }: McpMessage): string | undefined {
  return typeof conversation === "string" && conversation !== "" ? conversation : undefined;
}

/** Failures that are results of the call: a model can do something about them. */
const FOR_MODELS: readonly ErrorCode[] = [
  "invalid_request",
  "request_too_large",
  "invalid_state",
  "conversation_expired",
];

/** Parses the message of a call; `undefined` if a refusal was sent, or the client has disconnected. @throws ApiError */
async function readAsk(ask: Ask, service: Service, states: StateStore, context: RequestContext) {
  const { message, served, sender } = ask;
  if (context.res.destroyed) return undefined;
  try {
    const state = await stateOf(ask, states);
    const body = JSON.stringify({
      message: textOf(message.arguments),
      stream: false,
      run: runNameOf(context.req, message.id),
    });
    const bytes = Buffer.from(`${body.slice(0, -1)},"state":${state}}`);
    ask.memory.growTo(bytes.length);
    const rulesOf = () => messageRules(served, service.settings, sender);
    const parsed = await parseMessage(service, { parser: "chat", bytes }, rulesOf);
    if (context.res.destroyed) return undefined;
    return { ...parsed, sender, transport: "mcp" as const, isStreamed: false };
  } catch (error) {
    if (!(error instanceof ApiError) || !FOR_MODELS.includes(error.code)) throw error;
    send(context, { status: 200, body: failedBody(ask, error.code, error.message) });
    return undefined;
  }
}

/** @throws ApiError `invalid_request` for arguments that do not fit */
function textOf({ message, conversation }: McpMessage["arguments"]): string {
  if (isGiven(conversation) && typeof conversation !== "string") {
    throw invalidField("/conversation", "must be the text that came with an earlier answer, or absent");
  }
  if (typeof message === "string" && message.trim() !== "") return message;
  throw invalidField("/message", "must be a text that is not empty");
}

/** JSON of the state that a call continues. @throws ApiError `conversation_expired` */
async function stateOf(ask: Ask, states: StateStore): Promise<string> {
  if (conversationOf(ask.message) === undefined) return "{}";
  const kept = await states.load(keyOf(ask));
  if (kept === undefined) throw new ApiError("conversation_expired", "");
  ask.from = kept.version;
  return kept.json;
}

/** If another answer of the same conversation was stored first, this one becomes a separate conversation: both are kept. */
async function keepState(ask: Ask, states: StateStore, state: string): Promise<void> {
  if (await states.save(keyOf(ask), state, ask.from)) return;
  ask.conversation = randomUUID();
  await states.save(keyOf(ask), state);
}

/** Sends the answer of a run; to a client that accepts a stream, with notifications of progress before it. */
async function answer(
  { settings, log }: Service,
  states: StateStore,
  { req, res, ...context }: RequestContext,
  { run, reader }: StartedRun,
  ask: Ask,
): Promise<void> {
  whenClosed(res, () => reader.close());
  await run.started;
  if (res.destroyed) return;
  res.setHeader("x-run-id", run.id);
  const batches = keepingState(reader, (state) => keepState(ask, states, state).catch(log.failure));
  if (/\btext\/event-stream\b|^$/.test(req.headers.accept ?? "")) {
    const times = { keepAliveMs: settings.keepAliveSeconds * 1000, sendMs: settings.sendSeconds * 1000 };
    await sendEventStream(res, times, batches, encoder(ask));
    return;
  }
  let last: TerminalEvent | undefined;
  for await (const events of batches) last = events.find(isTerminal);
  if (last === undefined) throw new ApiError("run_expired", "This run was ended without an answer.");
  send({ res, ...context }, { status: 200, body: resultOf(ask, last) });
}

/** Stores the state before the client gets the end: its next message may come at once. */
async function* keepingState(
  reader: AsyncIterable<NumberedEvent[]>,
  save: (state: string) => Promise<void>,
): AsyncGenerator<NumberedEvent[], void> {
  for await (const events of reader) {
    const last = events.find(isTerminal);
    if (last?.state !== undefined) await save(JSON.stringify(last.state));
    yield events;
  }
}

/** The least time before a notification of progress that has no message. */
const QUIET_MS = 1000;

const frameOf = (message: object) => `event: message\ndata: ${JSON.stringify(message)}\n\n`;

function encoder(ask: Ask): (event: NumberedEvent) => string {
  const { progressToken } = ask.message;
  let progress = 0;
  let saidAt = Number.NEGATIVE_INFINITY;
  return (event) => {
    if (isTerminal(event)) return frameOf(resultOf(ask, event));
    const message = doing(event);
    if (progressToken === undefined || (message === undefined && performance.now() - saidAt < QUIET_MS)) return "";
    saidAt = performance.now();
    const params = { progressToken, progress: ++progress, ...(message !== undefined && { message }) };
    return frameOf({ jsonrpc: "2.0", method: "notifications/progress", params });
  };
}

/** The message of a progress notification for an event, if there is one. */
function doing(event: NumberedEvent): string | undefined {
  if (event.type === "tool_call") return inEnglish(event.data.title ?? event.data.tool);
  return event.type === "tool_progress" ? event.data.text : undefined;
}

const resultOf = (ask: Ask, event: TerminalEvent): object =>
  event.type === "done"
    ? toolResult(ask, wordsOf(event), { sources: event.sources })
    : failedBody(ask, event.code, event.data, event.state !== undefined);

const START_AGAIN =
  "This conversation is no longer kept. Start a new one: send the message without conversation, with all that it needs.";

/** `isKept`: whether the conversation can be continued. */
function failedBody(ask: Ask, code: ErrorCode, sentence: string, isKept = false): object {
  const isGone = code === "conversation_expired" || code === "invalid_state";
  return toolResult(ask, isGone ? START_AGAIN : sentence, { code, isKept });
}

/** `code` is present if the call has failed. */
interface Outcome {
  code?: ErrorCode;
  isKept?: boolean;
  sources?: CitedSource[] | undefined;
}

function toolResult(ask: Ask, answer: string, { code, isKept = true, sources }: Outcome): object {
  const { conversation } = ask;
  // Many clients pass only the texts to their models.
  const texts = isKept ? [answer, `conversation: ${conversation}`] : [answer];
  const fields = {
    content: texts.map((text) => ({ type: "text", text })),
    ...(isKept && { structuredContent: { answer, conversation, ...(sources && { sources }) } }),
    isError: code !== undefined,
  };
  return resultBody(ask, fields, code && { code });
}

/** The answer, and the approvals and questions that wait for a person. */
const wordsOf = (event: DoneEvent): string => [event.data, ...waitingWords(event, event.data)].join("\n\n");

function send({ res }: Pick<RequestContext, "res">, { status, body, headers = {} }: Reply): undefined {
  for (const header of Object.entries(headers)) res.setHeader(...header);
  if (body === undefined) res.writeHead(status).end();
  else sendJson(res, status, body);
  return undefined;
}
