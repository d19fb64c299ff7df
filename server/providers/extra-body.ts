/** An agent's `extraBody`: what it may hold, and how it becomes part of a request. */

import { isRecord } from "../protocol/is-record.ts";
import { SetupError } from "./failures/provider-error.ts";

type Fields = Readonly<Record<string, unknown>>;

/** What an author cannot set there, and why not. */
const REFUSED: ReadonlyMap<string, string> = new Map([
  ["model", "set model of the agent instead"],
  ["system", "set instructions of the agent instead"],
  ["instructions", "set instructions of the agent instead"],
  ["messages", "the messages are those of the conversation"],
  ["input", "the input is that of the conversation"],
  ["previous_response_id", "it is the state of the conversation"],
  ["conversation", "it would keep a state beside that of the conversation"],
  ["stream", "answers are always streamed"],
  ["n", "a message has one answer"],
]);

/** Stops the start over a field that would break each conversation. @throws SetupError that names it */
export function refuseExtraBody(extraBody: Fields = {}): void {
  for (const name of Object.keys(extraBody)) {
    const reason = REFUSED.get(name);
    if (reason !== undefined) {
      throw new SetupError(`extraBody.${name} cannot be set: ${reason}.`);
    }
  }
}

/** Lists that the author's elements are added to: replaced, the agent's tools would be gone. */
const LISTS = new Set(["tools", "include"]);

/** Objects that the author's fields are merged into: Parley sets some of the others. */
const OBJECTS = new Set(["reasoning", "output_config", "stream_options"]);

/** The request with the author's fields, which win. */
export function withExtraBody(body: Fields, extraBody: Fields = {}): Record<string, unknown> {
  if (Object.keys(extraBody).length === 0) return { ...body };
  const merged = new Map(Object.entries(body));
  for (const [name, value] of Object.entries(extraBody)) {
    merged.set(name, mergeField(name, merged.get(name), value));
  }
  return Object.fromEntries(merged);
}

function mergeField(name: string, own: unknown, value: unknown): unknown {
  if (LISTS.has(name) && Array.isArray(own) && Array.isArray(value)) return [...own, ...value];
  return OBJECTS.has(name) && isRecord(own) && isRecord(value) ? { ...own, ...value } : value;
}
