/** What `parley dev` keeps in a project's folder, for its owner alone and for no repository. */

import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const FOLDER = ".parley";

/** Of every file in it. */
export const OWNER_ONLY = { mode: 0o600 };

/** Path of the file with this name there; the folder is made where it is missing. @throws what the system says */
export function keptFile(project: string, name: string): string {
  const folder = join(project, FOLDER);
  mkdirSync(folder, { recursive: true });
  const ignore = join(folder, ".gitignore");
  if (!existsSync(ignore)) writeFileSync(ignore, "*\n", OWNER_ONLY);
  return join(folder, name);
}

/**
 * The secret that signs states, so that a conversation outlives a restart. Where the folder cannot be written, it is of this start
 * alone.
 */
export function projectSecret(project: string): string {
  const made = randomBytes(32).toString("base64url");
  try {
    return keptSecret(keptFile(project, "secret"), made);
  } catch {
    return made;
  }
}

function keptSecret(file: string, made: string): string {
  const kept = existsSync(file) ? readFileSync(file, "utf8").trim() : "";
  if (kept.length >= made.length) {
    chmodSync(file, OWNER_ONLY.mode);
    return kept;
  }
  writeFileSync(file, `${made}\n`, OWNER_ONLY);
  return made;
}
