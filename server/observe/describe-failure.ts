/** What the log says of a failure. */

import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { AgentNotice, ToolFailure } from "../errors.ts";
import { ApiError } from "../protocol/errors.ts";
import { asString, isRecord } from "../protocol/json.ts";

/** A code or a type of a provider is at most this long and never a sentence. */
const TOKEN = /^[A-Za-z0-9_.-]{1,64}$/;

/** What is written of one cause, in UTF-16 units: about three times a stack. A tool can throw megabytes. */
const MAX_CAUSE_CHARS = 4_000;

const MAX_CAUSES = 8;

/**
 * A bug with its stack; an expected failure in our words, with its causes. Errors of others may quote a message of a
 * conversation, so only facts of them are written (status, code, type, the provider's name for the request, the place in the author's code);
 * `withMessages` adds their words. Of each cause the beginning is enough; `strike` strikes the secrets out before, because
 * the beginning of a secret would not be found.
 */
export function describeFailure(error: unknown, withMessages: boolean, strike: (text: string) => string): string {
  try {
    const causes = describe(error, withMessages).map((text) => strike(text).slice(0, MAX_CAUSE_CHARS).toWellFormed());
    return causes.join("\n  cause: ");
  } catch {
    // Anything can be thrown, also what throws when its text is read. The log must not end the server.
    return `A failure that cannot be described (${typeof error}).`;
  }
}

/** The error and its causes. */
function describe(error: unknown, withMessages: boolean): string[] {
  if (error instanceof AgentNotice && error.cause === undefined) return [error.message];
  if (error instanceof ToolFailure || error instanceof AgentNotice)
    return [error.message, ...thrownByTool(error.cause)];
  const lines: string[] = [];
  let isForeign = false;
  for (let part = error; lines.length <= MAX_CAUSES; part = part.cause) {
    if (part instanceof ApiError) isForeign = false;
    lines.push(isForeign ? foreignText(part, withMessages) : ownText(part));
    if (!(part instanceof Error) || part.cause === undefined) break;
    if (part instanceof ApiError) isForeign = part.code !== "internal";
  }
  return lines;
}

/** All messages and stacks: the operator's own code wrote them. */
function thrownByTool(thrown: unknown): string[] {
  const lines: string[] = [];
  const open = [thrown];
  while (open.length > 0 && lines.length < MAX_CAUSES) {
    const error = open.shift();
    lines.push(textOf(error));
    if (error instanceof Error && error.cause !== undefined) open.push(error.cause);
    if (error instanceof AggregateError) open.push(...error.errors.slice(0, MAX_CAUSES));
  }
  return lines;
}

/** Anything can be thrown. */
function textOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.stack || thrown.message;
  return typeof thrown === "string" ? thrown : inspect(thrown);
}

function ownText(error: unknown): string {
  if (!(error instanceof Error)) return textOf(error);
  if (error instanceof ApiError) return `${error.code}: ${error.detail ?? error.message}`;
  return "code" in error ? `${error.code}: ${error.message}` : textOf(error);
}

function foreignText(error: unknown, withMessages: boolean): string {
  if (!(error instanceof Error)) return withMessages ? textOf(error) : typeof error;
  const facts = Object.entries(factsOf(error)).flatMap(([name, value]) => {
    const token = tokenOf(value);
    return token === undefined ? [] : [`${name}=${token}`];
  });
  const place = detailOf(error) === undefined ? placeOf(error) : undefined;
  const text = [tokenOf(error.name) ?? "Error", ...facts, ...(place === undefined ? [] : [`at ${place}`])].join(" ");
  return withMessages ? `${text}: ${wordsOf(error)}` : text;
}

/** Parley's own code. */
const OWN = fileURLToPath(new URL("..", import.meta.url));

/** A line of a stack, with the place in it. */
const FRAME = /^ {4}at (?:.*\()?(?:async )?(?:file:\/\/)?((?:\/|[A-Za-z]:[\\/])[^()]+:\d+:\d+)\)?$/;

/** The first place in code that is neither ours nor a package's: the author's. The stack begins with the message, which is not read. */
function placeOf(error: Error): string | undefined {
  const [stack, message] = [asString(error.stack), asString(error.message)];
  const begin = stack.indexOf(message);
  const lines = begin === -1 ? [] : stack.slice(begin + message.length).split("\n", 50);
  const places = lines.flatMap((line) => FRAME.exec(line.slice(0, 1_000))?.[1] ?? []);
  return places.find((place) => !place.includes("node_modules") && !place.startsWith(OWN));
}

/** Providers' errors carry what they said as `detail`, and a refused request its `status` and name. */
function factsOf(error: Error): Record<string, unknown> {
  const { status, code, requestId } = error as { status?: unknown; code?: unknown; requestId?: unknown };
  const detail = detailOf(error);
  return { status, code: detail?.code ?? code, type: detail?.type, request: requestId };
}

function wordsOf(error: Error): string {
  const words = detailOf(error)?.text;
  return typeof words === "string" && words !== "" ? words : error.message;
}

function detailOf(error: Error): Record<string, unknown> | undefined {
  return "detail" in error && isRecord(error.detail) ? error.detail : undefined;
}

function tokenOf(value: unknown): string | undefined {
  const text = typeof value === "number" ? String(value) : value;
  return typeof text === "string" && TOKEN.test(text) ? text : undefined;
}
