/** What the log says of a failure. */

import { ApiError } from "./protocol/api-error.ts";
import { UpstreamFailure, UpstreamRefusal } from "./providers/upstream/refusal.ts";
import { requestNameIn } from "./providers/upstream/request-id.ts";

/** Longest token of a provider that is believed to be one: a code or a type, never a sentence. */
const TOKEN = /^[A-Za-z0-9_.-]{1,64}$/;

/** Most of a provider's message that is told, in UTF-16 units. */
const MAX_MESSAGE = 2_000;

/** Causes of causes that are told. */
const MAX_DEPTH = 8;

/**
 * Bugs with their stack; failures of others in our words, with the causes behind them. What others wrote may
 * quote a prompt, so of their failures only facts are told (status, error code and type, name of the request),
 * and `withMessages` adds their messages.
 */
export function describeFailure(error: unknown, withMessages: boolean): string {
  return lines(error, withMessages, false, MAX_DEPTH).join("\n  cause: ");
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
  if (!(error instanceof Error)) return String(error);
  return "code" in error ? `${error.code}: ${error.message}` : (error.stack ?? error.message);
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
