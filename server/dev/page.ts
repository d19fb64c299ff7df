/**
 * The chat page under `parley dev`: the token for `/dev/`, the events about the agent's files there, and the users as
 * whom a developer tries the agent, which its module exports as `devUsers`.
 */

import { randomBytes, timingSafeEqual } from "node:crypto";
import { EventEmitter, on } from "node:events";
import type { IncomingMessage } from "node:http";
import type { AgentModule } from "../agent/define.ts";
import { digestOf, type User } from "../auth/access.ts";
import { isUser, MAX_ID_CHARS } from "../auth/authenticate.ts";
import { isLoopbackHost } from "../config/settings.ts";
import { ConfigError } from "../errors.ts";
import type { RequestContext } from "../http/request.ts";
import { sendEventStream, whenClosed } from "../http/respond.ts";
import type { Routes } from "../http/routes.ts";
import { ApiError } from "../protocol/errors.ts";

type DevEvent = (
  | { readonly type: "reloaded" }
  /** The agent cannot be loaded; `sentence` says where and why. */
  | { readonly type: "broken"; readonly sentence: string }
) & { readonly users?: readonly UserChoice[] };

const TIMES = { keepAliveMs: 15_000, sendMs: 30_000 };

export class DevPage {
  /** Gives access to `/dev/` until the command ends. */
  readonly token: string;
  readonly #digest: Buffer;
  readonly #events = new EventEmitter().setMaxListeners(0);
  readonly #end = new AbortController();
  /** The users as whom the page can ask, if the agent's module names them. */
  choices: readonly UserChoice[] | undefined;
  #last: DevEvent = { type: "reloaded" };

  /** A process that replaces another one keeps its token, so that open pages still work. */
  constructor(token = randomBytes(24).toString("base64url")) {
    this.token = token;
    this.#digest = digestOf(token);
  }

  readonly routes: Routes = {
    "GET /dev/events": { access: "open", handle: (context) => this.#stream(context) },
  };

  /** Answers a request without access as if the address did not exist. @throws ApiError */
  readonly guard = ({ path, req }: RequestContext): void => {
    if (!/^\/dev(?:\/|$)/.test(path) || this.#mayEnter(req)) return;
    throw new ApiError("not_found", "There is nothing at this address.");
  };

  say(event: DevEvent): void {
    this.#last = event;
    this.#events.emit("said", this.#complete(event));
  }

  /** Ends all streams, which the server would wait for. */
  close(): void {
    this.#end.abort();
  }

  /** A page of another site can make its name resolve to this machine, but sends that name as `Host`. */
  #mayEnter({ headers }: IncomingMessage): boolean {
    const { authorization = "", host = "", origin } = headers;
    const url = `http://${host}`;
    const isLoopback = URL.canParse(url) && isLoopbackHost(new URL(url).hostname);
    const isOwnPage = origin === undefined || origin === url;
    const isKnown = timingSafeEqual(digestOf(authorization.replace(/^Bearer /i, "")), this.#digest);
    return isLoopback && isOwnPage && isKnown;
  }

  async #stream({ res, method }: RequestContext): Promise<void> {
    const gone = new AbortController();
    whenClosed(res, () => gone.abort());
    const signal = AbortSignal.any([gone.signal, this.#end.signal]);
    if (method === "HEAD") res.end();
    else await sendEventStream(res, TIMES, this.#follow(signal), (event) => `data: ${JSON.stringify(event)}\n\n`);
  }

  async *#follow(signal: AbortSignal): AsyncGenerator<DevEvent[]> {
    const said = on(this.#events, "said", { signal });
    try {
      yield [this.#complete(this.#last)];
      yield* said;
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  #complete(event: DevEvent): DevEvent {
    return this.choices === undefined ? event : { ...event, users: this.choices };
  }
}

/** One of the users, as the bar of the page offers them. */
export interface UserChoice {
  /** What the page sends as the user's token. */
  readonly token: string;
  readonly label: string;
}

/** A module under `parley dev`. */
interface DevelopedModule extends AgentModule {
  /** Absent without `devUsers`. */
  readonly choices?: readonly UserChoice[];
}

/**
 * Replaces `authenticate` by `devUsers`: the token of a request names one of them by its id; otherwise it is the first one.
 * @throws ConfigError
 */
export function withDevUsers({ devUsers, ...module }: AgentModule): DevelopedModule {
  if (devUsers === undefined) return module;
  const users = checked(devUsers);
  const namedBy = (token?: string) =>
    users.findIndex((user) => token === tokenOf(user) || token === decodeURIComponent(tokenOf(user)));
  return {
    ...module,
    authenticate: ({ token }) => users[Math.max(namedBy(token), 0)],
    choices: users.map((user) => ({ token: tokenOf(user), label: labelOf(user) })),
  };
}

/** @throws ConfigError */
function checked(devUsers: unknown): readonly (User | undefined)[] {
  const isList = Array.isArray(devUsers) && devUsers.length > 0;
  if (!isList || !devUsers.every((user) => user === undefined || isUser(user))) {
    throw new ConfigError(
      `devUsers must be a list of users, each an object with an id, a string of 1 to ${MAX_ID_CHARS} characters, or undefined for somebody unknown.`,
    );
  }
  const tokens = devUsers.map(tokenOf);
  const twice = devUsers.find((user, index) => tokens.indexOf(tokenOf(user)) < index);
  if (devUsers.length > new Set(tokens).size) {
    throw new ConfigError(`devUsers has "${twice?.id}" twice. Give each user an id of their own.`);
  }
  return devUsers;
}

/** The id, as a header can carry it; somebody unknown is "undefined". */
function tokenOf(user: User | undefined): string {
  return encodeURIComponent(String(user?.id));
}

function labelOf(user: User | undefined): string {
  if (user === undefined) return "nobody";
  return typeof user.name === "string" && user.name !== user.id ? `${user.name} (${user.id})` : user.id;
}
