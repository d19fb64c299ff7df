/** Reads one setting of the environment. What is wrong stops the start, in a sentence that names the variable. */

import { SetupError } from "./providers/failures/provider-error.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** A text; `undefined` where nothing is set. An empty one stops the start. */
export function text(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim();
  if (value !== "") return value;
  throw new SetupError(`${name} is set but empty. Give it a value, or remove it.`);
}

/**
 * A comma-separated list. A variable that is set and holds nothing stops the start: somebody meant to
 * protect the server with it, and an empty list would leave it open.
 */
export function list(env: Environment, name: string): readonly string[] {
  const text = env[name];
  if (text === undefined) return [];
  const items = text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
  if (items.length === 0) {
    throw new SetupError(`${name} is set but empty. Give it a value, or remove it.`);
  }
  return items;
}

/** Keys travel in a header, which carries visible ASCII only: any other would never be accepted. */
export function keyList(env: Environment, name: string): readonly string[] {
  const keys = list(env, name);
  if (keys.every((key) => /^[\x21-\x7e]+$/.test(key))) return keys;
  throw new SetupError(`${name} must hold keys of visible ASCII characters without spaces, separated by commas.`);
}

/** One of a few words. */
export function oneOf<Word extends string>(env: Environment, name: string, words: readonly Word[]): Word | undefined {
  const value = text(env, name)?.toLowerCase();
  const word = words.find((one) => one === value);
  if (value === undefined || word !== undefined) return word;
  throw new SetupError(`${name} must be one of ${words.join(", ")}, but is "${value}".`);
}

/** Longest time that a Node timer can wait: a longer one would fire at once. */
const MAX_SECONDS = 2_147_483;

export function seconds(env: Environment, name: string, fallback: number, min = 0.001): number {
  return number(env, name, fallback, { min, max: MAX_SECONDS }) * 1000;
}

export function number(
  env: Environment,
  name: string,
  fallback: number,
  { min = 0, max = Number.MAX_SAFE_INTEGER, integer = false } = {},
): number {
  const text = env[name]?.trim();
  if (text === undefined || text === "") return fallback;
  const value = Number(text);
  if (value >= min && value <= max && (!integer || Number.isInteger(value))) return value;
  const kind = integer ? "a whole number" : "a number";
  const limit = max === Number.MAX_SAFE_INTEGER ? "" : ` to ${max}`;
  throw new SetupError(`${name} must be ${kind} from ${min}${limit}, but is "${text}".`);
}
