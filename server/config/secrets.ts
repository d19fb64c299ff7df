/** Finds the secret values of the environment, and removes them from texts. */

import type { Environment } from "./settings.ts";

/** The text that replaces a secret. */
export const STRUCK = "[key]";

/** `SHOP_API_KEYS`, `PGPASSWORD`, `stripeKey`, `AWS_ACCESS_KEY_ID`, but not `KEYBOARD`. */
const SECRET_NAME = /(?:key|token|secret|password)s?(?:_|$)/i;

/** A shorter value may be an ordinary word, which a log needs. */
export const MIN_SECRET_CHARS = 6;

/** Values of the environment that must never be written down: keys, tokens, secrets and passwords, Parley's or not. */
export function secretsOf(env: Environment): string[] {
  const secrets = Object.entries(env)
    .flatMap(([name, value = ""]) => [
      ...(SECRET_NAME.test(name) ? [value, ...value.split(",")] : []),
      ...passwordsOf(value),
    ])
    .map((value) => value.trim())
    .filter((value) => value.length >= MIN_SECRET_CHARS);
  // JSON within a text, such as the arguments of a call, has the secret in its escaped form.
  return [...new Set(secrets.flatMap((value) => [value, JSON.stringify(value).slice(1, -1)]))];
}

/** The password of a URL such as `postgres://user:password@host/`: as it is written, and decoded. */
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

/** A part of a text: the index of its first character, and the index after its last one. */
export type Span = readonly [from: number, to: number];

/** Where a text contains these secrets, in the order of the text. Overlapping parts are merged. */
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

/** A text, or the piece of one that begins at `start`, without these parts, in order. `STRUCK` marks each beginning. */
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
