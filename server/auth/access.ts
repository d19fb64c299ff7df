/** Finds the key of a request, and decides whether it may be used for that request. */

import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Settings } from "../config/settings.ts";
import { ApiError } from "../protocol/errors.ts";
import { addressGroup, clientAddress, isTrustedPeer } from "./client-address.ts";
import { type OriginHeaders, type Origins, type OriginVerdict, originRefused } from "./origins.ts";

/**
 * A project declares here the type of its users:
 * `declare module "parley-agent" { interface Register { user: MyUser } }`
 */
// biome-ignore lint/suspicious/noEmptyInterface: projects merge their own fields into it.
export interface Register {}

/** A user, as the project's `authenticate` returns them. */
export type User = Register extends { user: infer Own extends { id: string } } ? Own : KnownUser;

interface KnownUser {
  /** 1 to 200 characters. */
  readonly id: string;
  readonly [field: string]: unknown;
}

export type KeyKind = "api" | "chat" | "widget";

export interface Caller {
  keyKind: KeyKind | "none";
  /** A hash of the key, the same in every process; "" without one. Leaves the process only when hashed again. */
  keyId: string;
  /** The client's address, as far as it can be known behind proxies. */
  address: string;
  /** `undefined` if the user is not known. */
  user?: User | undefined;
}

/**
 * What a request is for: a message over HTTP; a socket; a run, whose id is a secret that the client knows; or something
 * that concerns all runs, such as the metrics.
 */
export type Purpose = "message" | "socket" | "run" | "operator";

/** What decides on a request's access. */
export interface Credentials extends OriginHeaders {
  /** A hash of the key; `undefined` without one. */
  keyDigest: Buffer | undefined;
  address: string;
}

export type Access = ReturnType<typeof createAccess>;

type AllowedPages = Record<KeyKind, readonly OriginVerdict[]>;

/** With `none`, since a page sends no Origin with a GET to its own server. */
const CONNECTION: AllowedPages = {
  api: ["none", "own", "allowed"],
  chat: ["none", "own"],
  widget: ["none", "own", "allowed"],
};

/** For each purpose and kind of key, the pages from which it may be used. */
const ALLOWED: Record<Purpose, AllowedPages> = {
  // The chat page always sends its Origin with a POST; a request without one comes from a program.
  message: { api: ["none", "own", "allowed"], chat: ["own"], widget: ["own", "allowed"] },
  socket: CONNECTION,
  run: CONNECTION,
  operator: { api: ["none", "own", "allowed"], chat: [], widget: [] },
};

const MISSING_KEY = {
  http: "This server needs a key: send the header Authorization: Bearer KEY.",
  socket: "This server needs a key: connect with ?key=KEY.",
} as const;

interface KnownKey {
  kind: KeyKind;
  digest: Buffer;
  id: string;
}

/** A Unix socket has no addresses: its peer is a program of this machine. A closed connection has none either. */
function peerOf({ remoteAddress, localAddress, destroyed }: Socket): string | undefined {
  return remoteAddress ?? (localAddress === undefined && !destroyed ? "127.0.0.1" : undefined);
}

/**
 * The settings are read with each request, since keys and origins can change while the server runs. `warn` gets a sentence
 * for the operator.
 */
export function createAccess(settings: Settings, origins: Origins, warn: (sentence: string) => void) {
  const keysOf = keyReader();
  const addressOf = addressReader(settings, warn);

  return {
    credentials(req: IncomingMessage, query: URLSearchParams, purpose: Purpose): Credentials {
      const bearer = bearerToken(req.headers.authorization);
      // A browser cannot set headers of a WebSocket's request, so the key may be in the query there.
      const key = purpose === "socket" ? query.get("key") || bearer : bearer;
      const { origin, host } = req.headers;
      return { keyDigest: key === undefined ? undefined : digestOf(key), origin, host, address: addressOf(req) };
    },

    /** @throws ApiError `unauthorized` or `forbidden` */
    authorize({ keyDigest, address, ...headers }: Credentials, purpose: Purpose): Caller {
      const verdict = origins.judge(headers);
      if (!settings.requiresKey) {
        if (verdict === "refused") throw originRefused(headers.origin);
        if (purpose === "operator") origins.refuseRebound(headers);
        return { keyKind: "none", keyId: "", address };
      }
      if (keyDigest === undefined) {
        throw new ApiError("unauthorized", MISSING_KEY[purpose === "socket" ? "socket" : "http"], { detail: "no key" });
      }
      const key = matchOf(keysOf(settings), keyDigest);
      if (key === undefined) {
        throw new ApiError("unauthorized", "The server does not know this key.", { detail: "unknown key" });
      }
      if (ALLOWED[purpose][key.kind].includes(verdict)) return { keyKind: key.kind, keyId: key.id, address };
      if (verdict === "refused") throw originRefused(headers.origin);
      const detail = `a ${key.kind} key does not open this address for this origin`;
      throw new ApiError("forbidden", sentenceOf(key.kind, purpose), { detail });
    },

    /** Whether a header `Authorization` holds a key of this server. */
    isKey(authorization: string): boolean {
      const key = bearerToken(authorization);
      return key !== undefined && matchOf(keysOf(settings), digestOf(key)) !== undefined;
    },

    /** Whether a caller that was authorized earlier still would be: its key may have been removed since. */
    isKnown({ keyId }: Caller): boolean {
      if (keyId === "") return !settings.requiresKey;
      return keysOf(settings).some(({ id }) => id === keyId);
    },
  };
}

/** Reads the address of a request's client. Warns once about a proxy that no setting names. */
function addressReader(settings: Settings, warn: (sentence: string) => void): (req: IncomingMessage) => string {
  let hasWarned = false;
  return ({ socket, headers }) => {
    const peer = peerOf(socket);
    const forwarded = headers[settings.forwardedHeader];
    const header = typeof forwarded === "string" ? forwarded : undefined;
    const address = clientAddress(peer, header, settings);
    if (header !== undefined && !hasWarned && !isTrustedPeer(peer, settings)) {
      hasWarned = true;
      warn(
        `A request from ${address} names another client in ${settings.forwardedHeader}. If that is your proxy, name it in PARLEY_TRUSTED_PROXIES; until then ${untilNamed(address)}.`,
      );
    }
    return address;
  };
}

/** Reads the keys of the settings, and again only when one of the lists has changed. */
function keyReader(): (settings: Settings) => readonly KnownKey[] {
  let known: readonly KnownKey[] = [];
  let lists: readonly (readonly string[])[] = [];
  return ({ apiKeys, chatKeys, widgetKeys }) => {
    if (lists[0] === apiKeys && lists[1] === chatKeys && lists[2] === widgetKeys) return known;
    lists = [apiKeys, chatKeys, widgetKeys];
    const ofKind = (kind: KeyKind, keys: readonly string[]) =>
      keys.map((key) => ({ kind, digest: digestOf(key), id: digestOf(key).toString("base64url") }));
    known = [...ofKind("api", apiKeys), ...ofKind("chat", chatKeys), ...ofKind("widget", widgetKeys)];
    return known;
  };
}

/** Both sides are hashed and every key is compared, so that the time does not show which key matched, nor how far. */
function matchOf(known: readonly KnownKey[], digest: Buffer): KnownKey | undefined {
  const matches = known.map((key) => timingSafeEqual(key.digest, digest));
  return known[matches.indexOf(true)];
}

/** How the limits work as long as no setting names the proxy at this address. */
function untilNamed(address: string): string {
  return addressGroup(address) === undefined
    ? "no limit per address holds for its clients and their user tokens, and wrong keys of one of them lock out all"
    : "all its clients count as one address";
}

export function digestOf(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}

/** The token of `Authorization: Bearer …`; the scheme may be in any case (RFC 9110, 11.1). */
function bearerToken(authorization: string | undefined): string | undefined {
  return /^bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
}

function sentenceOf(kind: KeyKind, purpose: Purpose): string {
  if (purpose === "operator") return "This address needs a key from PARLEY_API_KEY.";
  return kind === "chat"
    ? "This key works only from the chat page of this server."
    : "This key works only from web pages of allowed sites.";
}
