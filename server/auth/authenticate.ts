/** The users of an agent: the request that a project's `authenticate` gets, and the answers that it may give. */

import { IncomingMessage } from "node:http";
import { Late, within } from "../config/within.ts";
import { isRecord } from "../protocol/json.ts";
import type { Caller, User } from "./access.ts";

/** A message, or another request that needs the user. No part of it has the key. */
export interface AuthRequest {
  /** The headers of the request, or of the socket's upgrade, with names in lower case. */
  readonly headers: IncomingMessage["headers"];
  /** The client's address, as far as it can be known behind proxies. */
  readonly address: string;
  readonly keyKind: Caller["keyKind"];
  /** What the client sent as `x-user-token`, or on a socket with its last `authenticate`. */
  readonly token: string | undefined;
  /**
   * Created for each message, with the request or the socket's upgrade as its prototype: it has the fields that other
   * code of the server has added there, such as a session. Fields that `authenticate` adds are lost after the message.
   */
  readonly raw: IncomingMessage;
}

/**
 * Says who sends a request: a user, or `undefined` for an unknown person who may chat; or throws `Unauthorized`.
 * Anything else that it throws is a failure of the server.
 */
export type Authenticate = (request: AuthRequest) => User | undefined | Promise<User | undefined>;

/** Global, because the project may have another copy of this package than the server. */
const UNAUTHORIZED = Symbol.for("parley-agent.Unauthorized");

/** The user has to sign in. They see the message. */
export class Unauthorized extends Error {
  override readonly name: string = "Unauthorized";
  readonly [UNAUTHORIZED] = true;

  constructor(message = "", options?: ErrorOptions) {
    super(message || "Please sign in.", options);
  }
}

export function isUnauthorized(thrown: unknown): thrown is Unauthorized {
  return thrown instanceof Error && UNAUTHORIZED in thrown;
}

/** The longest id of a user, in UTF-16 units. */
export const MAX_ID_CHARS = 200;

/** Rejects with what `authenticate` throws, if it takes longer than `ms`, and if it returns neither a user nor `undefined`. */
export async function userOf(authenticate: Authenticate, request: AuthRequest, ms: number): Promise<User | undefined> {
  const answer: unknown = await within(() => authenticate(request), ms).catch((thrown: unknown) => {
    throw thrown instanceof Late ? new Error(`authenticate ${thrown.message}.`) : thrown;
  });
  if (answer === undefined || isUser(answer)) return answer;
  // The returned value is not quoted: it may be anybody's data.
  const advice = isRecord(answer) && typeof answer.id === "number" ? " The id is a number: return String(id)." : "";
  throw new TypeError(
    `authenticate must return a user with an id, a string of 1 to ${MAX_ID_CHARS} characters, or undefined, or throw Unauthorized.${advice}`,
  );
}

export function isUser(answer: unknown): answer is User {
  if (!isRecord(answer)) return false;
  const { id } = answer;
  // Ids are hashed as UTF-8, in which all lone surrogates are the same: two users would be one.
  return typeof id === "string" && id !== "" && id.length <= MAX_ID_CHARS && id.isWellFormed();
}

/** Headers that a browser sends by itself, whichever page makes the request. */
const AMBIENT = ["cookie", "authorization"];

/** A copy without the headers that a browser adds by itself, and without the fields that other code has derived from them. */
export function withoutAmbient(req: IncomingMessage): IncomingMessage {
  const { method, url, httpVersion, httpVersionMajor, httpVersionMinor } = req;
  const copy = new IncomingMessage(req.socket);
  const headers = Object.fromEntries(Object.entries(req.headers).filter(([name]) => !AMBIENT.includes(name)));
  Object.assign(copy, { method, url, httpVersion, httpVersionMajor, httpVersionMinor, headers });
  for (const [name, value] of Object.entries(headers)) {
    for (const one of [value].flat()) copy.rawHeaders.push(name, String(one));
  }
  return copy;
}

/** Removes the key from an authorized request: nothing else needs it. */
export function removeKey(
  req: IncomingMessage & { originalUrl?: string },
  isKey: (authorization: string) => boolean,
): void {
  const { headers, rawHeaders } = req;
  if (isKey(headers.authorization ?? "")) delete headers.authorization;
  // There may be several, of which Node uses the first. Node relies on the length of this array.
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const [name = "", value = ""] = rawHeaders.slice(index, index + 2);
    if (/^authorization$/i.test(name) && isKey(value)) rawHeaders[index + 1] = "";
  }
  if (req.url !== undefined) req.url = withoutKey(req.url);
  if (req.originalUrl !== undefined) req.originalUrl = withoutKey(req.originalUrl);
}

/** A socket's key may be in the query. */
function withoutKey(target: string): string {
  const [path = "", search = ""] = target.split(/\?(.*)/s);
  const query = new URLSearchParams(search);
  if (!query.has("key")) return target;
  query.delete("key");
  return query.size === 0 ? path : `${path}?${query}`;
}
