/** How an agent's author defines MCP servers, and how that is checked. Loaded only if an agent has MCP servers. */

import { isLoopbackHost } from "../config/settings.ts";
import { ConfigError } from "../errors.ts";
import { isRecord } from "../protocol/json.ts";
import { fieldNames, isFunction, meantField, requiredText } from "./fields.ts";
import type { RunContext } from "./run-context.ts";

/** Fields of both kinds of MCP servers. */
interface AnyMcpServer {
  /** Names of its tools that the agent gets; a `*` at the end stands for any characters. Default: all. */
  tools?: string[];
  /**
   * Which calls a person has to approve: all, those of the named tools (as in `tools`), or those of tools that the
   * server does not mark as read-only. The last trusts the server.
   */
  needsApproval?: boolean | string[] | "unless-read-only";
  /** Milliseconds until a call fails, counted from the last progress that the server reported. Default 30,000. */
  timeoutMs?: number;
  /** Whether messages are refused while the server is unreachable. Default false: the agent answers without it. */
  required?: boolean;
  /** Prefix of the names of its tools, before `__`; `false`: no prefix and no `__`. Default: the server's name. */
  prefix?: string | false;
}

/** An MCP server that is reached over HTTP. */
export interface McpHttpServer extends AnyMcpServer {
  /** URL of its endpoint. Plain `http:` to another machine logs a warning. */
  url: string;
  /**
   * Headers of each request, or a function that returns them for each request of a run. With a function, each user has
   * a connection of their own, and a run without a user gets none of the tools.
   */
  headers?: Record<string, string> | ((ctx: RunContext) => HeadersOfRun | Promise<HeadersOfRun>);
  /**
   * Key of the connection that a run of this user uses: a text that changes when the user's access does. Default: a
   * digest of what `headers` first returned for the run.
   */
  per?(ctx: RunContext): string | Promise<string>;
  /** OAuth client credentials of this server. Without `tokenUrl`, the MCP server names its authorization server. */
  auth?: { clientId: string; clientSecret: string; tokenUrl?: string; scope?: string };
}

/** An MCP server that is a program on this machine. */
export interface McpProgram extends AnyMcpServer {
  command: string;
  args?: string[];
  /** Environment variables, besides `PATH`, `HOME` and a few others of that kind. It gets no other of this server's. */
  env?: Record<string, string>;
  /** Its working directory. Default: that of this server. */
  cwd?: string;
}

export type McpServerDefinition = McpHttpServer | McpProgram;

type HeadersOfRun = Record<string, string>;

/** The fields of an agent about MCP servers, unchecked. */
export interface McpOfAgent {
  readonly servers: unknown;
  readonly toolTexts: unknown;
}

/** A checked definition. */
export interface McpServer {
  readonly name: string;
  /** What the connection depends on: as long as it is unchanged, a reload leaves the connection open. */
  readonly place: HttpPlace | ProgramPlace;
  /** Present where each user has a connection of their own. */
  readonly headersOf: ((ctx: RunContext) => unknown) | undefined;
  readonly per: ((ctx: RunContext) => unknown) | undefined;
  readonly isAllowed: (tool: string) => boolean;
  readonly approves: true | "unless-read-only" | ((tool: string) => boolean);
  readonly timeoutMs: number;
  readonly isRequired: boolean;
  /** What the names of its tools begin with. */
  readonly prefix: string;
}

export interface HttpPlace {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly auth: McpHttpServer["auth"] | undefined;
}

export type ProgramPlace = Readonly<Pick<McpProgram, "command" | "args" | "env" | "cwd">>;

const DEFAULT_TIMEOUT_MS = 30_000;

const COMMON = { tools: true, needsApproval: true, timeoutMs: true, required: true, prefix: true } as const;
const HTTP_FIELDS = fieldNames<McpHttpServer>({ url: true, headers: true, per: true, auth: true, ...COMMON });
const PROGRAM_FIELDS = fieldNames<McpProgram>({ command: true, args: true, env: true, cwd: true, ...COMMON });
const AUTH_FIELDS = fieldNames<McpHttpServer["auth"] & {}>({
  clientId: true,
  clientSecret: true,
  tokenUrl: true,
  scope: true,
});

/** @throws ConfigError that names the field and says what is right */
export function checkMcp(given: unknown): McpServer[] {
  if (!isRecord(given)) {
    throw new ConfigError(
      'mcp must be an object of servers by name, such as { files: { command: "npx", args: […] } }.',
    );
  }
  const servers = Object.entries(given).map(([name, definition]) => checkServer(name, definition));
  for (const [index, { name, prefix }] of servers.entries()) {
    const other = servers.slice(0, index).find((one) => one.prefix === prefix && prefix !== "");
    if (other === undefined) continue;
    throw new ConfigError(
      `mcp.${other.name} and mcp.${name} give their tools the same names. Set prefix of one of them.`,
    );
  }
  return servers;
}

function checkServer(name: string, definition: unknown): McpServer {
  const at = `mcp.${name}`;
  if (name.trim() === "" || name.length > 64) throw new ConfigError("A name in mcp must have 1 to 64 characters.");
  if (!isRecord(definition)) throw new ConfigError(`${at} must be an object with a url or a command.`);
  const { url, command, timeoutMs = DEFAULT_TIMEOUT_MS, required = false } = definition;
  if (url === undefined && command === undefined) refuseUnknown(definition, [...HTTP_FIELDS, ...PROGRAM_FIELDS], at);
  if ((url === undefined) === (command === undefined)) {
    throw new ConfigError(`${at} must have either a url or a command: where the server is, or which program it is.`);
  }
  refuseUnknown(definition, url === undefined ? PROGRAM_FIELDS : HTTP_FIELDS, at);
  if (typeof timeoutMs !== "number" || !(timeoutMs > 0 && timeoutMs < 2 ** 31)) {
    throw new ConfigError(`${at}.timeoutMs must be a number of milliseconds above 0.`);
  }
  if (typeof required !== "boolean") throw new ConfigError(`${at}.required must be true or false.`);
  const place = url === undefined ? checkProgram(definition, at) : checkHttp(definition, at);
  return {
    name,
    place,
    headersOf: methodOf(definition, "headers"),
    per: methodOf(definition, "per"),
    isAllowed: definition.tools === undefined ? () => true : fitting(definition.tools, `${at}.tools`),
    approves: checkApproval(definition.needsApproval, at),
    timeoutMs,
    isRequired: required,
    prefix: checkPrefix(definition.prefix ?? name, at),
  };
}

function refuseUnknown(definition: Record<string, unknown>, known: readonly string[], at: string): void {
  const field = Object.keys(definition).find((one) => !known.includes(one));
  if (field === undefined) return;
  const meant = meantField(field, known);
  const advice = meant === undefined ? `Its fields are ${known.join(", ")}.` : `Did you mean ${meant}?`;
  throw new ConfigError(`${at} has a field ${field}, which does nothing. ${advice}`);
}

function methodOf(definition: Record<string, unknown>, name: string): ((ctx: RunContext) => unknown) | undefined {
  const value = definition[name];
  return isFunction(value) ? value.bind(definition) : undefined;
}

function checkHttp(definition: Record<string, unknown>, at: string): HttpPlace {
  const url = checkUrl(requiredText(definition, "url", `${at}.url`), `${at}.url`);
  const { headers = {}, per, auth } = definition;
  if (!isFunction(headers) && !isTexts(headers)) {
    throw new ConfigError(`${at}.headers must be an object of texts, or a function of ctx that returns one.`);
  }
  if (per !== undefined && !isFunction(per)) throw new ConfigError(`${at}.per must be a function that returns a text.`);
  if (per !== undefined && !isFunction(headers)) {
    throw new ConfigError(`${at}.per does nothing where headers is no function. Remove it.`);
  }
  return { url, headers: isFunction(headers) ? {} : { ...headers }, auth: checkAuth(auth, `${at}.auth`) };
}

function checkAuth(auth: unknown, at: string): McpHttpServer["auth"] {
  if (auth === undefined) return undefined;
  if (!isTexts(auth)) throw new ConfigError(`${at} must be an object: { clientId: "…", clientSecret: "…" }.`);
  refuseUnknown(auth, AUTH_FIELDS, at);
  const { tokenUrl, scope } = auth;
  return {
    clientId: requiredText(auth, "clientId", `${at}.clientId`),
    clientSecret: requiredText(auth, "clientSecret", `${at}.clientSecret`),
    ...(tokenUrl === undefined ? {} : { tokenUrl: checkUrl(tokenUrl, `${at}.tokenUrl`) }),
    ...(scope === undefined ? {} : { scope }),
  };
}

function checkUrl(text: string, at: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new ConfigError(`${at} must be an address such as https://tools.example.com/mcp.`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new ConfigError(`${at} has a name or password in it. Send it in headers: { authorization: "…" }.`);
  }
  return url.href;
}

/** Whether others can read what is sent to the server: over plain HTTP to another machine. */
export function isReadable({ place }: McpServer): boolean {
  if (!("url" in place)) return false;
  return [place.url, place.auth?.tokenUrl].some((one) => {
    const { protocol, hostname } = new URL(one ?? "https://localhost");
    return protocol === "http:" && !isLoopbackHost(hostname);
  });
}

function checkProgram(definition: Record<string, unknown>, at: string): ProgramPlace {
  const command = requiredText(definition, "command", `${at}.command`);
  const { args = [], env = {}, cwd } = definition;
  if (!isListOfTexts(args)) throw new ConfigError(`${at}.args must be an array of texts.`);
  if (!isTexts(env)) throw new ConfigError(`${at}.env must be an object of texts.`);
  if (cwd !== undefined && typeof cwd !== "string") throw new ConfigError(`${at}.cwd must be the path of a folder.`);
  return { command, args, env: { ...env }, ...(cwd === undefined ? {} : { cwd }) };
}

function checkApproval(given: unknown, at: string): McpServer["approves"] {
  if (given === undefined || given === false) return () => false;
  if (given === true || given === "unless-read-only") return given;
  if (Array.isArray(given)) return fitting(given, `${at}.needsApproval`);
  throw new ConfigError(`${at}.needsApproval must be true, "unless-read-only" or an array of names of tools.`);
}

function checkPrefix(prefix: unknown, at: string): string {
  if (prefix === false) return "";
  if (typeof prefix !== "string" || prefix.trim() === "" || prefix.length > 64) {
    throw new ConfigError(`${at}.prefix must be a text of 1 to 64 characters, or false.`);
  }
  return `${plainName(prefix)}__`;
}

/** A name with only characters that every provider accepts. Its length is not limited. */
export function plainName(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/gu, "_");
}

/** A function that says whether a name is one of these; a `*` at the end stands for any characters. */
function fitting(names: unknown, at: string): (tool: string) => boolean {
  if (!isListOfTexts(names) || names.some((name) => name === "" || name.slice(0, -1).includes("*"))) {
    throw new ConfigError(`${at} must be an array of names of tools, which may have a * at the end.`);
  }
  return (tool) => names.some((name) => (name.endsWith("*") ? tool.startsWith(name.slice(0, -1)) : tool === name));
}

export function isTexts(value: unknown): value is Record<string, string> {
  return isRecord(value) && Object.values(value).every((one) => typeof one === "string");
}

function isListOfTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}
