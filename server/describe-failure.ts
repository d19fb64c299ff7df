/** What the log says of a failure. */

import { ToolFailure } from "./agent/tool-error.ts";
import { ApiError } from "./protocol/api-error.ts";
import { UpstreamFailure, UpstreamRefusal } from "./providers/upstream/refusal.ts";
import { requestNameIn } from "./providers/upstream/request-id.ts";

/** Longest token of a provider that is believed to be one: a code or a type, never a sentence. */
const TOKEN = /^[A-Za-z0-9_.-]{1,64}$/;

/** Most of a provider's message that is told, in UTF-16 units. */
const MAX_MESSAGE = 2_000;

/** Causes of causes that are told. */
const MAX_DEPTH = 8;

/** Most stacks of one failure of a tool. */
const MAX_STACKS = 8;

/**
 * Bugs with their stack; failures of others in our words, with the causes behind them. What others wrote may
 * quote a prompt, so of their failures only facts are told (status, error code and type, name of the request),
 * and `withMessages` adds their messages.
 */
export function describeFailure(error: unknown, withMessages: boolean): string {
  try {
    const texts =
      error instanceof ToolFailure
        ? [error.message, ...thrownByTool(error.cause)]
        : lines(error, withMessages, false, MAX_DEPTH);
    return texts.join("\n  cause: ");
  } catch {
    // A getter of what was thrown, for one.
    return `A failure that cannot be described (${typeof error}).`;
  }
}

/** What a tool threw and what caused it, with all messages: the operator's own code wrote them. */
function thrownByTool(thrown: unknown): string[] {
  const texts: string[] = [];
  const open = [thrown];
  while (open.length > 0 && texts.length < MAX_STACKS) {
    const next = open.shift();
    texts.push(textOf(next));
    open.push(...causesOf(next));
  }
  return texts;
}

function causesOf(error: unknown): unknown[] {
  try {
    if (!(error instanceof Error)) return [];
    const errors = error instanceof AggregateError ? error.errors.slice(0, MAX_STACKS) : [];
    return error.cause === undefined ? errors : [error.cause, ...errors];
  } catch {
    return [];
  }
}

/** The stack, if there is one. Anything can be thrown, also what has no text. */
function textOf(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.stack || thrown.message : thrown);
  } catch {
    return `a value without a text (${typeof thrown})`;
  }
}

function lines(error: unknown, withMessages: boolean, foreign: boolean, depth: number): string[] {
  // Whatever a provider failed with; failures in our words are told as such wherever they stand.
  const isForeign = foreign && !(error instanceof ApiError);
  const own = isForeign ? foreignText(error, withMessages) : ownText(error);
  if (!(error instanceof Error) || error.cause === undefined || depth === 0) return [own];
  const fromOutside = isForeign || (error instanceof ApiError && error.code !== "internal");
  return [own, ...lines(error.cause, withMessages, fromOutside, depth - 1)];
}

function ownText(error: unknown): string {
  if (!(error instanceof Error) || !("code" in error)) return textOf(error);
  return `${error.code}: ${error.message}`;
}

function foreignText(error: unknown, withMessages: boolean): string {
  if (!(error instanceof Error)) return withMessages ? cut(String(error)) : typeof error;
  const facts = Object.entries(factsOf(error)).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${value}`],
  );
  const told = [tokenOf(error.name) ?? "Error", ...facts].join(" ");
  return withMessages ? `${told}: ${cut(messageOf(error))}` : told;
}

function factsOf(error: Error): Record<string, string | number | undefined> {
  if (error instanceof UpstreamRefusal || error instanceof UpstreamFailure) {
    const { code, type } = error.detail;
    const refusal = error instanceof UpstreamRefusal ? error : undefined;
    return {
      status: refusal?.status,
      code: tokenOf(code),
      type: tokenOf(type),
      request: refusal && requestNameIn(refusal.headers),
    };
  }
  return { code: "code" in error ? tokenOf(error.code) : undefined };
}

function messageOf(error: Error): string {
  const said = error instanceof UpstreamRefusal || error instanceof UpstreamFailure;
  return (said && error.detail.text) || error.message;
}

function tokenOf(value: unknown): string | undefined {
  const text = typeof value === "number" ? String(value) : value;
  return typeof text === "string" && TOKEN.test(text) ? text : undefined;
}

function cut(text: string): string {
  return text.slice(0, MAX_MESSAGE).toWellFormed();
}
