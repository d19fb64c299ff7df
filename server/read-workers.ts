import { SetupError } from "./providers/failures/provider-error.ts";
import { type Environment, text } from "./read-setting.ts";

/** More would only wait for each other on any machine there is. */
const MAX_WORKERS = 1024;

/** How many processes serve; `flag` is `--workers`. @throws SetupError */
export function readWorkers(flag: string | undefined, env: Environment): number {
  const value = flag ?? text(env, "PARLEY_WORKERS");
  if (value === undefined) return 1;
  if (value === "auto") return process.getBuiltinModule("node:os").availableParallelism();
  const count = Number(value);
  if (/^\d+$/.test(value) && count >= 1 && count <= MAX_WORKERS) return count;
  const name = flag === undefined ? "PARLEY_WORKERS" : "--workers";
  throw new SetupError(`${name} must be a whole number from 1 to ${MAX_WORKERS}, or auto, but is "${value}".`);
}
