/** What must never be written down: which values of the environment are secret, and texts without them. */

import type { Environment } from "./settings.ts";

/** The text that replaces a secret. */
export const STRUCK = "[key]";

/** `SHOP_API_KEYS`, `PGPASSWORD`, `stripeKey`, `AWS_ACCESS_KEY_ID`, but not `KEYBOARD`. */
const SECRET_NAME = /(?:key|token|secret|password)s?(?:_|$)/i;

/** A shorter text is a word that a log needs. */
export const MIN_SECRET_CHARS = 6;

/** What of the environment must never be written down: keys, tokens, secrets and passwords, Parley's and others'. */
export function secretsOf(env: Environment): string[] {
  const secrets = Object.entries(env)
    .flatMap(([name, value = ""]) => [
      ...(SECRET_NAME.test(name) ? [value, ...value.split(",")] : []),
      ...passwordsOf(value),
    ])
    .map((value) => value.trim())
    .filter((value) => value.length >= MIN_SECRET_CHARS);
  // In a text of JSON that is quoted, such as the arguments of a call, it is escaped.
  return [...new Set(secrets.flatMap((value) => [value, JSON.stringify(value).slice(1, -1)]))];
}

/** The password of a URL such as `postgres://user:password@host/`: as it is written, and as it is meant. */
function passwordsOf(value: string): string[] {
  const [, password] = /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]*?:([^/?#\s]+)@/i.exec(value) ?? [];
  if (password === undefined) return [];
  try {
    return [password, decodeURIComponent(password)];
  } catch {
    // A percent sign that encodes nothing.
    return [password];
  }
}

/** A part of a text: where it begins, and where what follows it begins. */
export type Span = readonly [from: number, to: number];

/** Where these secrets stand in a text, from its beginning to its end. Those that overlap are one. */
export function findSecrets(text: string, secrets: Iterable<string>): Span[] {
  const found: Span[] = [];
  for (const secret of secrets) {
    if (secret === "") continue;
    for (let at = text.indexOf(secret); at !== -1; at = text.indexOf(secret, at + 1))
      found.push([at, at + secret.length]);
  }
  const spans: [from: number, to: number][] = [];
  for (const [from, to] of found.sort(([one], [other]) => one - other)) {
    const last = spans.at(-1);
    if (last !== undefined && from < last[1]) last[1] = Math.max(last[1], to);
    else spans.push([from, to]);
  }
  return spans;
}

/** A text, or the piece of one that begins at `start`, without these parts of it, in order. The mark stands where a part begins. */
export function cutSpans(piece: string, spans: readonly Span[], start = 0): string {
  let kept = "";
  let at = 0;
  for (const [from, to] of spans) {
    if (to <= start) continue;
    if (from >= start + piece.length) break;
    kept += piece.slice(at, Math.max(from - start, 0)) + (from >= start ? STRUCK : "");
    at = to - start;
  }
  return kept + piece.slice(at);
}

/** A text without these secrets. */
export function strike(text: string, secrets: Iterable<string>): string {
  return cutSpans(text, findSecrets(text, secrets));
}
