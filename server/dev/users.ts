/** The users that a developer tries an agent as: what its module exports as `devUsers`. */

import type { AgentModule } from "../agent/define.ts";
import type { User } from "../auth/access.ts";
import { isUser, MAX_ID_CHARS } from "../auth/authenticate.ts";
import { ConfigError } from "../errors.ts";

/** One of the users, as the bar of the page offers them. */
export interface UserChoice {
  /** What the page sends as the user's token. */
  readonly token: string;
  readonly label: string;
}

/** A module under `parley dev`. */
export interface DevelopedModule extends AgentModule {
  /** Absent without `devUsers`. */
  readonly choices?: readonly UserChoice[];
}

/**
 * Puts `devUsers` in the place of `authenticate`: the token of a request names one of them by its id, else the first one asks.
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
