/** Starts messages of all transports: the current agent reads each by its own rules, and answers it. */

import type { IncomingMessage } from "node:http";
import type { ServedAgent } from "../agent/served-agent.ts";
import type { Caller } from "../auth/access.ts";
import { type BodyRules, withBody } from "../http/body.ts";
import type { RequestContext } from "../http/request.ts";
import type { StartedRun, StartOptions } from "../runs/run-registry.ts";
import type { Visit } from "./identity.ts";
import type { Asked, MessageRules, Parsed, ParserName, RememberedState } from "./message.ts";
import { parseJson } from "./parse-json.ts";
import { continuesRemembered, PARSERS } from "./parse-message.ts";
import type { Service } from "./service.ts";

/** What is known of a message before it is read. */
type Brought = Pick<StartOptions, "requestId" | "trace" | "memory">;

/** A message that was read, with its sender. */
export type ReadMessage = Omit<StartOptions, keyof Brought | "served"> & { sender: Caller; asked?: Asked | undefined };

export interface StartedMessage extends StartedRun, Pick<ReadMessage, "isStreamed" | "asked"> {
  /** Id of the agent. */
  agent: string;
  /** Whether the run begins a new conversation. */
  isNew: boolean;
  /** Id of the sender, if the agent knows its users. */
  user: string | undefined;
}

/** Starts a run for the message that `read` returns; without a message, nothing is started. @throws ApiError */
export function startMessage(
  { runtime, runs }: Pick<Service, "runtime" | "runs">,
  brought: Brought,
  read: (served: ServedAgent) => Promise<ReadMessage | undefined>,
): Promise<StartedMessage | undefined> {
  return runtime.use(async (served) => {
    const release = brought.memory.share();
    try {
      const message = await read(served);
      if (message === undefined) return undefined;
      const { sender, isStreamed, request, asked } = message;
      const started = await runs.start(sender, { ...message, ...brought, served });
      const isNew = Object.keys(request.state).length === 0;
      return { ...started, isStreamed, asked, agent: served.agent.id, isNew, user: sender.user?.id };
    } finally {
      release();
    }
  });
}

/** Admits the sender of a request, and reads its body. `undefined` if the client has gone. @throws ApiError */
export async function readBody<Value>(
  service: Pick<Service, "identity" | "limits">,
  served: ServedAgent,
  context: RequestContext,
  { caller, ...rules }: Pick<BodyRules, "maxBytes" | "memory"> & { caller: Caller },
  read: (body: Buffer, sender: Caller) => Promise<Value>,
): Promise<Value | undefined> {
  const sender = await admitMessage(service, served, caller, () => visitOf(context));
  if (context.res.destroyed) return undefined;
  const { limits } = service;
  return withBody(context, { ...rules, limits, address: caller.address }, (body) => read(body, sender));
}

/** Up to this size, parsing takes about a millisecond. */
const SMALL_BYTES = 256 * 1024;

/** A message to parse. */
interface Unparsed<Name extends ParserName> {
  readonly parser: Name;
  readonly bytes: Buffer;
  /** The state that its socket continues from, and about how much memory that takes. */
  readonly remembered?: { readonly value: RememberedState; readonly bytes: number };
}

/**
 * Reads a message with the named parser. `rulesOf` returns the rules for its sender. It is called before the state is checked,
 * with the parsed JSON, or with `undefined` if the message is large. @throws ApiError
 */
export async function parseMessage<Name extends ParserName>(
  { settings, largeMessages }: Pick<Service, "settings" | "largeMessages">,
  { parser, bytes, remembered = { value: {}, bytes: 0 } }: Unparsed<Name>,
  rulesOf: (body: unknown) => MessageRules | Promise<MessageRules>,
): Promise<Parsed<Name>> {
  const isSmall = bytes.length <= SMALL_BYTES;
  const body = isSmall ? parseJson(bytes, settings.maxJsonDepth) : undefined;
  const rules = await rulesOf(body);
  // A large state takes as long to check as a large message.
  const isParsedHere = isSmall && (remembered.bytes <= SMALL_BYTES || !continuesRemembered(body));
  const parsed = isParsedHere
    ? PARSERS[parser](body, rules, remembered.value)
    : await largeMessages.parse({ parser, bytes, rules, remembered: remembered.value });
  return parsed as Parsed<Name>;
}

/** Counts a message, and returns the caller with its user. @throws ApiError as `Identity.admitMessage` does */
export async function admitMessage(
  { identity, limits }: Pick<Service, "identity" | "limits">,
  { authenticate }: ServedAgent,
  caller: Caller,
  visit: () => Visit,
): Promise<Caller> {
  if (authenticate !== undefined) return (await identity()).admitMessage(authenticate, caller, visit());
  await limits.admitMessage(caller);
  return caller;
}

/** Admits a request for a run, and returns the caller with its user. @throws ApiError as `Identity.admitReader` does */
export async function admitReader(
  { identity }: Pick<Service, "identity">,
  { authenticate }: ServedAgent,
  caller: Caller,
  visit: () => Visit,
): Promise<Caller> {
  return authenticate === undefined ? caller : (await identity()).admitReader(authenticate, caller, visit());
}

export function visitOf({ req, id }: RequestContext): Visit {
  return { req, requestId: id, token: tokenOf(req) };
}

/** The token that a request, or a socket's upgrade, brings. */
export function tokenOf({ headers }: IncomingMessage): string | undefined {
  const token = headers["x-user-token"];
  return typeof token === "string" && token !== "" ? token : undefined;
}
