/** Fields of objects that the author of a project writes. */

import { nearestName } from "../config/nearest-name.ts";
import { ConfigError } from "../errors.ts";

/** `tsc` says which field is missing here. */
export function fieldNames<Definition>(fields: Record<keyof Required<Definition>, true>): string[] {
  return Object.keys(fields);
}

/** What other packages call our fields. */
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

/** The field of ours that was meant by another name. */
export function meantField(field: string, known: readonly string[]): string | undefined {
  const most = Math.min(3, Math.ceil(field.length / 3));
  return known.find((ours) => FOREIGN_NAMES[ours]?.includes(field)) ?? nearestName(field, known, most);
}

/** A sentence about the first field that is none of `what`, which has the fields `known`. */
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

/** A function of the author: what it gets and returns is checked where it is called. */
export function isFunction(value: unknown): value is (...args: unknown[]) => unknown {
  return typeof value === "function";
}
