/** Files that `parley dev` keeps in a project's folder, for its owner alone and not for a repository. */

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
  readSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { join, relative } from "node:path";
import { ConfigError } from "../errors.ts";

const FOLDER = ".parley";

/** The mode of every file in it. */
const OWNER_ONLY = { mode: 0o600 };

/** Path of the file with this name; creates the folder if it is missing. @throws the system's error */
function keptFile(project: string, name: string): string {
  const folder = join(project, FOLDER);
  mkdirSync(folder, { recursive: true });
  // A link could come with a project of somebody else, and lead anywhere.
  if (!lstatSync(folder).isDirectory()) throw new Error(`${FOLDER} is a link`);
  const ignore = join(folder, ".gitignore");
  if (!existsSync(ignore)) writeFileSync(ignore, "*\n", OWNER_ONLY);
  return join(folder, name);
}

/** Opens the file with this name, to read and append; creates it if it is missing. @throws the system's error */
function openKept(project: string, name: string): number {
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
 * The secret that signs states, kept so that a conversation outlives a restart. If the folder cannot be written, each
 * start has its own.
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

const MAX_TRACE_BYTES = 50_000_000;

const TRACE = "trace.jsonl";
/** The name of a full file, which replaces the one before. */
const OLDER_TRACE = "trace.1.jsonl";

/**
 * `.parley/trace.jsonl`: lines are appended, and numbered as in an editor.
 * The file is not kept open, and is checked before each line: a developer may remove it at any time, and another
 * `parley dev` may write to it.
 */
export class TraceFile {
  readonly #project: string;
  /** Relative to the working directory. */
  readonly path: string;
  /** The size and the number of lines when the file was last read or written. */
  #known = { size: 0, lines: 0 };

  /** @throws ConfigError where it cannot be written */
  constructor(project: string) {
    this.#project = project;
    try {
      this.path = relative(process.cwd(), keptFile(project, TRACE));
      closeSync(openKept(project, TRACE));
    } catch (error) {
      throw new ConfigError(
        `--trace cannot write .parley/${TRACE} in the project's folder (${codeOf(error)}). Make .parley a folder and ${TRACE} a file, neither a link, that you may write to, or leave --trace out.`,
        { cause: error },
      );
    }
  }

  /** Appends a line, whole or not at all, and returns its number. @throws the system's error */
  append(text: string): number {
    const line = Buffer.from(`${text}\n`);
    if (line.length > MAX_TRACE_BYTES) throw new RangeError(`one request takes ${line.length} bytes`);
    this.#makeRoom(line.length);
    const file = openKept(this.#project, TRACE);
    try {
      const { size, lines } = this.#count(file);
      try {
        writeFileSync(file, line);
      } catch (error) {
        // A part of a line would spoil the next one.
        ftruncateSync(file, size);
        throw error;
      }
      this.#known = { size: size + line.length, lines: lines + 1 };
      return lines + 1;
    } finally {
      closeSync(file);
    }
  }

  #makeRoom(bytes: number): void {
    const file = openKept(this.#project, TRACE);
    const { size } = fstatSync(file);
    closeSync(file);
    if (size === 0 || size + bytes <= MAX_TRACE_BYTES) return;
    renameSync(keptFile(this.#project, TRACE), keptFile(this.#project, OLDER_TRACE));
  }

  /** The current size and number of lines; ends a line that a process has left unfinished. */
  #count(file: number): { size: number; lines: number } {
    const { size } = fstatSync(file);
    if (size === this.#known.size) return this.#known;
    const content = Buffer.alloc(size);
    const bytes = content.subarray(0, readSync(file, content, 0, size, 0));
    let lines = 0;
    for (let at = bytes.indexOf("\n"); at !== -1; at = bytes.indexOf("\n", at + 1)) lines += 1;
    if (bytes.length === 0 || bytes.at(-1) === NEWLINE) return { size, lines };
    writeFileSync(file, "\n");
    return { size: size + 1, lines: lines + 1 };
  }
}

const NEWLINE = 0x0a;

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return "code" in error ? String(error.code) : error.message;
}
