/**
 * Finds out who sends a message, or asks for a run, of an agent that knows its users: the project's `authenticate` is asked, within
 * the rates of key and address.
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

/** What `authenticate` decides by. */
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

  /** Lets a message in: counts it, and gives the caller with its user. @throws ApiError `rate_limited`, `login_required` */
  async admitMessage(authenticate: Authenticate, caller: Caller, visit: Visit): Promise<Caller> {
    const { limits } = this.#parts;
    await limits.admitMessage(caller);
    const known = await this.#known(authenticate, caller, visit);
    await limits.admitUser(known);
    return known;
  }

  /** As `admitMessage`, for a request that asks for a run: that counts as a message only if it is refused. @throws ApiError */
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
   * What `/api/info` says of a visitor: nothing yet beyond the rate of their address, where `authenticate` fails, and to what a page
   * of another site embeds, such as an image.
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
    // A socket has one request for all of its messages: what is put on it for one must not answer for the next.
    const raw: IncomingMessage = Object.assign(Object.create(given), { headers: { ...given.headers } });
    const { headers } = raw;
    try {
      return await userOf(authenticate, { headers, address, keyKind, token, raw }, maxMs);
    } catch (thrown) {
      if (isUnauthorized(thrown)) throw new ApiError("login_required", thrown.message);
      // Another thrown value may be the data of a user.
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

/** What an error of `authenticate` may quote; what is part of another comes after it. */
function secretsOf({ cookie = "", authorization = "" }: IncomingMessage["headers"], token = ""): string[] {
  const [credentials = ""] = authorization.split(" ").slice(-1);
  return [cookie, authorization, credentials, token].filter(({ length }) => length >= MIN_SECRET_CHARS);
}

/** What people read of a user, if `authenticate` says it. Only the user gets it. */
function nameOf({ name }: User): Pick<AgentInfo, "user_name"> {
  const shown = typeof name === "string" ? cutLine(plainText(name), MAX_NAME_CHARS) : "";
  return shown === "" ? {} : { user_name: shown };
}

/** The same after each start and each change of a secret. Only the user gets it. */
function publicId(agent: string, { id }: User): string {
  const text = JSON.stringify(["parley-user-1", agent, id]);
  return createHash("sha256").update(text).digest("base64url").slice(0, 22);
}
