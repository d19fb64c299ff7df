/** Who may chat: keys and origins, judged in one place for REST and for the socket. */

import { hasKeys, type KeyPools } from "./config.ts";
import type { Caller, KeyKind } from "./http/caller.ts";
import { crypto } from "./node/crypto.ts";
import { judgeOrigin, type OriginPolicy, type OriginVerdict } from "./origins.ts";
import { ApiError } from "./protocol/api-error.ts";

export interface AccessPolicy {
  readonly keys: KeyPools;
  readonly origins: OriginPolicy;
  /** What ids of keys are made with: should an id come to light, no key can be guessed by it. */
  readonly idSecret: () => Buffer;
}

export interface Visitor {
  /** "run": REST for a run whose secret id the visitor knows. "operator": REST for what concerns all runs. */
  transport: "rest" | "socket" | "run" | "operator";
  key: string | undefined;
  origin: string | undefined;
  /** The request's `Host`. */
  host: string | undefined;
  /** Where the client is. */
  address: string;
}

/** Where each kind of key opens, by the page that the request comes from. */
const OPENS: Record<Visitor["transport"], Record<KeyKind, readonly OriginVerdict[]>> = {
  rest: {
    api: ["none", "own", "allowed"],
    // The chat page always sends its Origin with a POST; a program does not, and is not the chat page.
    chat: ["own"],
    widget: ["own", "allowed"],
  },
  socket: {
    api: ["none", "own", "allowed"],
    chat: ["none", "own"],
    widget: ["none", "own", "allowed"],
  },
  // A page does not send its Origin with a GET to its own server. Whoever knows the id was let in before.
  run: {
    api: ["none", "own", "allowed"],
    chat: ["none", "own"],
    widget: ["none", "own", "allowed"],
  },
  operator: { api: ["none", "own", "allowed"], chat: [], widget: [] },
};

/** Lets a visitor in and says who that is. @throws ApiError `unauthorized` or `forbidden`. */
export function authorize(policy: AccessPolicy, visitor: Visitor): Caller {
  const verdict = judgeOrigin(policy.origins, visitor.origin, visitor.host);
  if (!hasKeys(policy.keys)) {
    if (verdict === "refused") throw originRefused(visitor.origin);
    return anonymous(visitor);
  }
  if (visitor.key === undefined) throw new ApiError("unauthorized", "A key is needed here.");
  const kinds = kindsOf(policy.keys, visitor.key);
  if (kinds.length === 0) throw new ApiError("unauthorized", "This key is not known.");
  const kind = kinds.find((one) => OPENS[visitor.transport][one].includes(verdict));
  if (kind !== undefined) {
    return { kind, keyId: keyIdOf(policy.idSecret, visitor.key), address: visitor.address };
  }
  if (verdict === "refused") throw originRefused(visitor.origin);
  if (visitor.transport === "operator") {
    throw new ApiError("forbidden", "This address takes a key of PARLEY_API_KEY.");
  }
  throw new ApiError("forbidden", placeOf(kinds));
}

/** A visitor of whom no key was asked. */
export function anonymous({ address }: Visitor): Caller {
  return { kind: "none", keyId: undefined, address };
}

function keyIdOf(idSecret: () => Buffer, key: string): string {
  return crypto().createHmac("sha256", idSecret()).update(key).digest("base64url");
}

/** The ids of all keys that are in use. */
export function knownKeyIds({ keys, idSecret }: Pick<AccessPolicy, "keys" | "idSecret">): ReadonlySet<string> {
  return new Set(Object.values(keys).flatMap((pool) => pool.map((key) => keyIdOf(idSecret, key))));
}

/**
 * Every kind that a key belongs to, the one that opens most first. Hashing makes the lengths equal, and every key is compared: neither
 * length nor position of a match shows in the time.
 */
export function kindsOf(keys: KeyPools, given: string): KeyKind[] {
  const { timingSafeEqual } = crypto();
  const wanted = digest(given);
  return (Object.keys(keys) as KeyKind[]).filter(
    (kind) => keys[kind].map((key) => timingSafeEqual(digest(key), wanted)).filter(Boolean).length > 0,
  );
}

function digest(text: string): Buffer {
  return crypto().createHash("sha256").update(text).digest();
}

/** Says which setting would let the site in. */
export function originRefused(origin: string | undefined): ApiError {
  return new ApiError(
    "forbidden",
    `Pages of ${origin} may not use this server. Its operator can allow them with PARLEY_ALLOWED_ORIGINS.`,
  );
}

function placeOf(kinds: readonly KeyKind[]): string {
  return kinds.includes("chat")
    ? "This key works only from the chat page of this server."
    : "This key works only from web pages that may use this server.";
}

/** The token of `Authorization: Bearer …`; the scheme's case does not matter (RFC 9110, 11.1). */
export function bearerToken(authorization: string | undefined): string | undefined {
  return /^bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
}
