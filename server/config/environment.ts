/** The environment of the server: the variables of the process, and files for those that are not set there. */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { ConfigError } from "../errors.ts";
import { emptySentence } from "./kinds.ts";
import { nearestName } from "./nearest-name.ts";
import { type Environment, SETTINGS } from "./settings.ts";

/**
 * A variable of the process overrides the file that `PARLEY_ENV_FILE` names, and that file overrides `.env` in the
 * project's folder. Both files are read again each time. @throws ConfigError
 */
export function readEnvironment(env: Environment, projectFolder: string | undefined): Environment {
  const projectFile = projectFolder === undefined ? undefined : join(projectFolder, ".env");
  const extraFile = env.PARLEY_ENV_FILE?.trim();
  if (extraFile === "") throw new ConfigError(emptySentence("PARLEY_ENV_FILE"));
  if (extraFile !== undefined && !existsSync(extraFile)) {
    throw new ConfigError(`PARLEY_ENV_FILE names a file that does not exist: ${extraFile}`);
  }
  checkProcessNames(env);
  return {
    ...(projectFile !== undefined && existsSync(projectFile) ? readEnvFile(projectFile) : {}),
    ...(extraFile === undefined ? {} : readEnvFile(extraFile)),
    ...env,
  };
}

/** The variables of a file in the form of `.env`. @throws ConfigError */
function readEnvFile(file: string): Environment {
  let content: string;
  try {
    content = readFileSync(file, "utf8");
  } catch (error) {
    throw new ConfigError(`${file} cannot be read: it must be a file with the right permissions.`, { cause: error });
  }
  if (content.includes("\0")) throw new ConfigError(`${file} is no text in UTF-8. Save it as UTF-8: it may be UTF-16.`);
  refuseOtherLines(file, content);
  const entries = Object.entries(parseEnv(content.replace(/^\uFEFF/, "")));
  // Node's parser takes a comment for a variable if the file ends with it.
  const variables = Object.fromEntries(entries.filter(([name]) => !name.startsWith("#")));
  checkFileNames(file, variables);
  return variables;
}

/** A comment, or a variable whose value may have several lines in quotes. */
const ENTRY = /^[^\S\n]*(?:#.*|[^=\n]*=[^\S\n]*(?:(["'`])[\s\S]*?\1.*|.*))$/gm;

/** Node's parser skips a line that sets nothing. @throws ConfigError that does not quote the line, which may be a secret */
function refuseOtherLines(file: string, content: string): void {
  const others = content.replace(ENTRY, (entry) => entry.replace(/[^\n]/g, ""));
  const index = others.split("\n").findIndex((line) => line.trim() !== "");
  if (index === -1) return;
  throw new ConfigError(`${file}: line ${index + 1} has no "=". Write NAME=value, or # before a comment.`);
}

const KNOWN = Object.values(SETTINGS).map(({ name }) => name);

/** Settings that protect the server: a typing mistake in one of them would silently leave it open. */
const PROTECTING = [
  SETTINGS.apiKeys,
  SETTINGS.chatKeys,
  SETTINGS.widgetKeys,
  SETTINGS.stateSecrets,
  SETTINGS.allowedOrigins,
].map(({ name }) => name);

/** A file may set variables of the project itself: only names that must have been meant for Parley are errors. */
function checkFileNames(file: string, variables: Environment): void {
  for (const name of Object.keys(variables).filter(isUnknown)) {
    const near = nearestName(name, KNOWN, 2);
    const isMisspelt = near?.includes("_") === true && variables[near] === undefined;
    if (!name.startsWith("PARLEY_") && !isMisspelt) continue;
    throw new ConfigError(`${file} sets ${unknownSentence(name)}`);
  }
}

/** Settings of the server that listens, its process and its files. */
const NOT_OF_AN_AGENT = [
  SETTINGS.port,
  SETTINGS.host,
  SETTINGS.envFile,
  SETTINGS.workers,
  SETTINGS.headerSeconds,
  SETTINGS.maxConnections,
  SETTINGS.metrics,
].map(({ name }) => name);

/** How to write a setting as a string, by the kind of value that was given. */
const HOW_TO_WRITE: Readonly<Record<string, string>> = {
  array: "Write one string, separated by commas.",
  boolean: 'Write "on" or "off".',
  number: "Write it in quotes.",
};

/**
 * The environment of an agent on a host's server: `given` overrides the variables of the process. Settings of the
 * server itself are left out, and no file is read. @throws ConfigError
 */
export function mountedEnvironment(env: Environment, given: Readonly<Record<string, unknown>>): Environment {
  for (const [name, value] of Object.entries(given)) {
    if (isUnknown(name)) throw new ConfigError(`settings has ${unknownSentence(name)}`);
    if (NOT_OF_AN_AGENT.includes(name)) {
      throw new ConfigError(`settings has ${name}, which is a matter of your own server. Take it out.`);
    }
    if (typeof value !== "string") {
      const kind = Array.isArray(value) ? "array" : typeof value;
      const advice = HOW_TO_WRITE[kind] ?? "Leave it out to use its default.";
      throw new ConfigError(`${name} in settings must be a string, but is ${typeof value}. ${advice}`);
    }
  }
  checkProcessNames(env);
  const inherited = Object.entries(env).filter(([name]) => !NOT_OF_AN_AGENT.includes(name));
  return { ...Object.fromEntries(inherited), ...(given as Environment) };
}

/** @throws ConfigError for a near miss of a name that protects the server */
function checkProcessNames(env: Environment): void {
  for (const name of Object.keys(env).filter(isUnknown)) {
    if (nearestName(name, PROTECTING, 2) !== undefined) {
      throw new ConfigError(`The environment sets ${unknownSentence(name)}`);
    }
  }
}

/** A sentence about each `PARLEY_…` variable of the process that is not a setting. */
export function unknownNames(env: Environment): string[] {
  return Object.keys(env)
    .filter((name) => name.startsWith("PARLEY_") && isUnknown(name) && !KUBERNETES.test(name))
    .map((name) => `The environment sets ${unknownSentence(name)}`);
}

/** What Kubernetes sets in each container for a service whose name is `parley` or begins with `parley-`. */
const KUBERNETES = /^PARLEY_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_\w+)?)?)$/;

function isUnknown(name: string): boolean {
  return !KNOWN.includes(name);
}

/** Completes "… sets". */
function unknownSentence(name: string): string {
  return `${name}, which is not a setting of Parley. Did you mean ${nearestName(name, KNOWN, Infinity)}?`;
}
