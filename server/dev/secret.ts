/** The secret that signs the states of a project under `parley dev`, so that a conversation outlives a restart. */

import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What Parley keeps in a project's folder, for its owner alone and for no repository. */
const FOLDER = ".parley";
const OWNER_ONLY = { mode: 0o600 };

/** Kept in the project's folder; where that cannot be written, of this start alone. */
export function projectSecret(project: string): string {
  const made = randomBytes(32).toString("base64url");
  try {
    return keptSecret(join(project, FOLDER), made);
  } catch {
    return made;
  }
}

function keptSecret(folder: string, made: string): string {
  mkdirSync(folder, { recursive: true });
  const ignore = join(folder, ".gitignore");
  if (!existsSync(ignore)) writeFileSync(ignore, "*\n", OWNER_ONLY);
  const file = join(folder, "secret");
  const kept = existsSync(file) ? readFileSync(file, "utf8").trim() : "";
  if (kept.length >= made.length) {
    chmodSync(file, OWNER_ONLY.mode);
    return kept;
  }
  writeFileSync(file, `${made}\n`, OWNER_ONLY);
  return made;
}
