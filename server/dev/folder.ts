/** What `parley dev` keeps in a project's folder, for its owner alone and for no repository. */

import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

const FOLDER = ".parley";

/** The mode of every file in it. */
const OWNER_ONLY = { mode: 0o600 };

/** Path of the file with this name there; the folder is made where it is missing. @throws what the system says */
export function keptFile(project: string, name: string): string {
  const folder = join(project, FOLDER);
  mkdirSync(folder, { recursive: true });
  // A link may come with a project of somebody else, and lead anywhere.
  if (!lstatSync(folder).isDirectory()) throw new Error(`${FOLDER} is a link`);
  const ignore = join(folder, ".gitignore");
  if (!existsSync(ignore)) writeFileSync(ignore, "*\n", OWNER_ONLY);
  return join(folder, name);
}

/** A descriptor of the file with this name there, to read and append; it is made where it is missing. @throws what the system says */
export function openKept(project: string, name: string): number {
  const { O_RDWR, O_APPEND, O_CREAT, O_NOFOLLOW } = constants;
  const file = openSync(keptFile(project, name), O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, OWNER_ONLY.mode);
  try {
    if (!fstatSync(file).isFile()) throw new Error(`${name} is no file`);
    fchmodSync(file, OWNER_ONLY.mode);
    return file;
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

/**
 * The secret that signs states, so that a conversation outlives a restart. Where the folder cannot be written, it is of this start
 * alone.
 */
export function projectSecret(project: string): string {
  const made = randomBytes(32).toString("base64url");
  try {
    const file = openKept(project, "secret");
    try {
      return keptSecret(file, made);
    } finally {
      closeSync(file);
    }
  } catch {
    return made;
  }
}

function keptSecret(file: number, made: string): string {
  const kept = readFileSync(file, "utf8").trim();
  if (kept.length >= made.length) return kept;
  ftruncateSync(file);
  writeFileSync(file, `${made}\n`);
  return made;
}
