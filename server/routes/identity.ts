/**
 * Identifies the user who sends a message or requests a run, for agents that know their users: calls the project's
 * `authenticate`, within the rate limits of key and address.
 */

import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { cutLine, plainText } from "../agent/plain-text.ts";
import type { Access, Caller, User } from "../auth/access.ts";
import { type Authenticate, isUnauthorized, removeKey, userOf, withoutAmbient } from "../auth/authenticate.ts";
import type { Origins } from "../auth/origins.ts";
import { MIN_SECRET_CHARS } from "../config/secrets.ts";
import type { MessageLimits } from "../limits/message-limits.ts";
import type { Log } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { AgentInfo } from "../protocol/chat.ts";
import { ApiError } from "../protocol/errors.ts";

/** What `authenticate` bases its decision on. */
export interface Visit {
  readonly req: IncomingMessage;
  readonly requestId: string;
  readonly token: string | undefined;
}

export interface IdentityParts {
  readonly access: Access;
  readonly origins: Origins;
  readonly limits: MessageLimits;
  readonly log: Log;
  readonly metrics: Metrics;
  /** How long `authenticate` may take. */
  readonly maxMs: number;
}

export class Identity {
  readonly #parts: IdentityParts;

  constructor(parts: IdentityParts) {
    this.#parts = parts;
  }

  /** Counts a message, and returns the caller with its user. @throws ApiError `rate_limited`, `login_required` */
  async admitMessage(authenticate: Authenticate, caller: Caller, visit: Visit): Promise<Caller> {
    const { limits } = this.#parts;
    await limits.admitMessage(caller);
    const known = await this.#known(authenticate, caller, visit);
    await limits.admitUser(known);
    return known;
  }

  /** Like `admitMessage`, for a request for a run, which counts as a message only if it is refused. @throws ApiError */
  async admitReader(authenticate: Authenticate, caller: Caller, visit: Visit): Promise<Caller> {
    const { limits } = this.#parts;
    await limits.admitReader(caller);
    try {
      return await this.#known(authenticate, caller, visit);
    } catch (refusal) {
      await limits.countAsMessage(caller);
      throw refusal;
    }
  }

  /**
   * What `/api/info` tells about a visitor. It is only `user_pending` above the rate limit of their address, if `authenticate`
   * fails, and for a request that a page of another site embeds, such as an image.
   */
  async describe(
    authenticate: Authenticate,
    agent: string,
    address: string,
    visit: Visit,
  ): Promise<Pick<AgentInfo, "user" | "user_name" | "login_required" | "user_pending">> {
    const caller: Caller = { keyKind: "none", keyId: "", address };
    const { limits, origins } = this.#parts;
    const isEmbedded = visit.req.headers.origin === undefined && !origins.isTrusted(visit.req);
    if (isEmbedded || !(await limits.takeInfo(address))) return { user_pending: true };
    try {
      const user = await this.#identify(authenticate, caller, visit);
      return user === undefined ? {} : { user: publicId(agent, user), ...nameOf(user) };
    } catch (error) {
      return isLoginRequired(error) ? { login_required: true } : { user_pending: true };
    }
  }

  /** The caller with its user. @throws ApiError as `#identify` does */
  async #known(authenticate: Authenticate, caller: Caller, visit: Visit): Promise<Caller> {
    try {
      return { ...caller, user: await this.#identify(authenticate, caller, visit) };
    } catch (error) {
      if (isLoginRequired(error)) this.#parts.metrics.loginRefused();
      throw error;
    }
  }

  /** @throws ApiError `login_required`, or `internal`, which is logged here */
  async #identify(
    authenticate: Authenticate,
    { address, keyKind }: Caller,
    { req, requestId, token }: Visit,
  ): Promise<User | undefined> {
    const { access, origins, log, maxMs } = this.#parts;
    removeKey(req, access.isKey);
    const given = origins.isTrusted(req) ? req : withoutAmbient(req);
    // A socket has one request for all its messages: fields that are set on it for one must not affect the next.
    const raw: IncomingMessage = Object.assign(Object.create(given), { headers: { ...given.headers } });
    const { headers } = raw;
    try {
      return await userOf(authenticate, { headers, address, keyKind, token, raw }, maxMs);
    } catch (thrown) {
      if (isUnauthorized(thrown)) throw new ApiError("login_required", thrown.message);
      // A thrown value that is no Error may contain a user's data.
      const error = thrown instanceof Error ? thrown : new TypeError("authenticate threw something that is no Error.");
      log.failure(error, { requestId }, secretsOf(given.headers, token));
      throw new ApiError("internal", "The server could not check who you are. Please try again.", {
        detail: "authenticate failed",
      });
    }
  }
}

function isLoginRequired(error: unknown): boolean {
  return error instanceof ApiError && error.code === "login_required";
}

const MAX_NAME_CHARS = 100;

/** Secrets that an error of `authenticate` may quote. A secret that is part of another one comes after it. */
function secretsOf({ cookie = "", authorization = "" }: IncomingMessage["headers"], token = ""): string[] {
  const [credentials = ""] = authorization.split(" ").slice(-1);
  return [cookie, authorization, credentials, token].filter(({ length }) => length >= MIN_SECRET_CHARS);
}

/** The user's name as shown, if `authenticate` returns one. Only the user gets it. */
function nameOf({ name }: User): Pick<AgentInfo, "user_name"> {
  const shown = typeof name === "string" ? cutLine(plainText(name), MAX_NAME_CHARS) : "";
  return shown === "" ? {} : { user_name: shown };
}

/** Does not change when the server restarts or a secret is changed. Only the user gets it. */
function publicId(agent: string, { id }: User): string {
  const text = JSON.stringify(["parley-user-1", agent, id]);
  return createHash("sha256").update(text).digest("base64url").slice(0, 22);
}
