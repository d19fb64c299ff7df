/** Reading fields of what a project exports. */

import { SetupError } from "../providers/failures/provider-error.ts";

/** A string that is not empty. @throws SetupError */
export function text(from: Record<string, unknown>, field: string, called = field): string {
  const value = optionalText(from, field, called);
  if (value === undefined || value.trim() === "") throw new SetupError(`${called} is missing.`);
  return value;
}

/** A string or nothing. @throws SetupError */
export function optionalText(from: Record<string, unknown>, field: string, called = field): string | undefined {
  const value = from[field];
  if (value === undefined || typeof value === "string") return value;
  throw new SetupError(`${called} must be a string.`);
}
