/** How the log describes a failure. */

import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { AgentNotice, ToolFailure } from "../errors.ts";
import { ApiError } from "../protocol/errors.ts";
import { asString, isRecord } from "../protocol/json.ts";

/** A provider's error code or type: at most this long, and never a sentence. */
const TOKEN = /^[A-Za-z0-9_.-]{1,64}$/;

/** Maximum length of one cause, in UTF-16 units: about three times a stack. A tool can throw megabytes. */
const MAX_CAUSE_CHARS = 4_000;

const MAX_CAUSES = 8;

/**
 * A bug with its stack; an expected failure in Parley's words, with its causes. Errors of other code may quote a conversation,
 * so only their facts are written (status, code, type, the provider's id of the request, the place in the author's code);
 * `withMessages` adds their messages. Each cause is cut; `strike` removes the secrets before that, because half a secret would
 * not be found.
 */
export function describeFailure(error: unknown, withMessages: boolean, strike: (text: string) => string): string {
  try {
    const causes = describe(error, withMessages).map((text) => strike(text).slice(0, MAX_CAUSE_CHARS).toWellFormed());
    return causes.join("\n  cause: ");
  } catch {
    // Anything can be thrown, even an object that throws when it is read. The log must not end the server.
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

/** All messages and stacks, because they come from the operator's own code. */
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

/** The folder of Parley's own code. */
const OWN = fileURLToPath(new URL("..", import.meta.url));

/** A line of a stack; the group is the place. */
const FRAME = /^ {4}at (?:.*\()?(?:async )?(?:file:\/\/)?((?:\/|[A-Za-z]:[\\/])[^()]+:\d+:\d+)\)?$/;

/** The first place in the author's code: neither Parley's nor a package's. The message in the stack is skipped. */
function placeOf(error: Error): string | undefined {
  const [stack, message] = [asString(error.stack), asString(error.message)];
  const begin = stack.indexOf(message);
  const lines = begin === -1 ? [] : stack.slice(begin + message.length).split("\n", 50);
  const places = lines.flatMap((line) => FRAME.exec(line.slice(0, 1_000))?.[1] ?? []);
  return places.find((place) => !place.includes("node_modules") && !place.startsWith(OWN));
}

/** Provider errors have the provider's answer as `detail`; those of refused requests, also `status` and `requestId`. */
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
