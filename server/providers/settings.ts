/** Reads a provider's environment variables; a mistake in one becomes a `SetupError` that names it. */

import { SetupError } from "./failures/provider-error.ts";
import type { ProviderSetup } from "./provider.ts";

type Env = ProviderSetup["env"];

/** The variable without white space around it; `undefined` when it is not set or empty. */
export function readSetting(env: Env, name: string): string | undefined {
  return env[name]?.trim() || undefined;
}

/** A key or a name that travels in a header. */
export function readToken(env: Env, name: string): string | undefined {
  const value = readSetting(env, name);
  if (value !== undefined && !/^[\x21-\x7e]+$/.test(value)) {
    throw new SetupError(`${name} must be one line of ASCII characters without spaces.`);
  }
  return value;
}

/** The address of an API. The value is not repeated in errors: it may hold a password. */
export function readBaseUrl(env: Env, name: string): string | undefined {
  const value = readSetting(env, name);
  if (value === undefined) return undefined;
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new SetupError(`${name} must be an http or https URL, such as https://api.example.com/v1.`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new SetupError(`${name} must not hold a user name or password: set the key on its own.`);
  }
  if (url.search !== "" || url.hash !== "") {
    throw new SetupError(`${name} must end with its path: no "?" and no "#".`);
  }
  return value;
}
