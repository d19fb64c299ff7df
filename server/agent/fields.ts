/** Fields of objects that the author of a project writes. */

import { nearestName } from "../config/nearest-name.ts";
import { ConfigError } from "../errors.ts";

/** The names of a type's fields: `tsc` reports one that is missing. */
export function fieldNames<Definition>(fields: Record<keyof Required<Definition>, true>): string[] {
  return Object.keys(fields);
}

/** Names that other packages use for Parley's fields. */
const FOREIGN_NAMES: Readonly<Record<string, readonly string[]>> = {
  instructions: ["system", "systemPrompt", "system_prompt", "prompt"],
  maxOutputTokens: ["max_tokens", "maxTokens"],
  maxTurns: ["maxSteps"],
  onRunEnd: ["onFinish", "onEnd", "onComplete"],
  parameters: ["params", "args", "inputSchema", "input_schema", "schema"],
  execute: ["handler", "run"],
  timeoutMs: ["timeoutSeconds", "timeout_seconds"],
  needsApproval: ["approval", "requireApproval", "requiresApproval", "requires_approval"],
  expose: ["hidden"],
  images: ["pictures"],
  basePath: ["path", "prefix", "mountPath"],
  settings: ["env", "environment", "config", "options"],
};

/** The known field that an unknown name probably means. */
export function meantField(field: string, known: readonly string[]): string | undefined {
  const most = Math.min(3, Math.ceil(field.length / 3));
  return known.find((ours) => FOREIGN_NAMES[ours]?.includes(field)) ?? nearestName(field, known, most);
}

/** A sentence about the first field that is not in `known`, the fields of `what`. */
export function unknownField(from: object, known: readonly string[], what: string): string | undefined {
  const field = Object.keys(from).find((name) => !known.includes(name));
  if (field === undefined) return undefined;
  const meant = meantField(field, known);
  const advice = meant === undefined ? `The fields are ${known.join(", ")}.` : `Did you mean ${meant}?`;
  return `${field} is not a field of ${what}. ${advice}`;
}

export function requiredText(from: Record<string, unknown>, field: string, label = field): string {
  const value = optionalText(from, field, label);
  if (value === undefined || value.trim() === "")
    throw new ConfigError(`${label} is missing. Set it to a string that is not empty.`);
  return value;
}

export function optionalText(from: Record<string, unknown>, field: string, label = field): string | undefined {
  const value = from[field];
  if (value === undefined || typeof value === "string") return value;
  throw new ConfigError(`${label} must be a string.`);
}

/** Whether it is a function. Its arguments and its result are checked where it is called. */
export function isFunction(value: unknown): value is (...args: unknown[]) => unknown {
  return typeof value === "function";
}
