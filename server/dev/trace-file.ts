/** `.parley/trace.jsonl` of a project: lines that are appended, and numbered as an editor numbers them. */

import { closeSync, fstatSync, ftruncateSync, readSync, renameSync, writeFileSync } from "node:fs";
import { relative } from "node:path";
import { ConfigError } from "../errors.ts";
import { keptFile, openKept } from "./folder.ts";

const MAX_BYTES = 50_000_000;

const NAME = "trace.jsonl";
/** What the file becomes when it is full, in place of the one before. */
const OLDER_NAME = "trace.1.jsonl";

/**
 * Nothing is kept open, and the file is looked at before each line: a developer may take it away at any time, and another
 * `parley dev` may write to it.
 */
export class TraceFile {
  readonly #project: string;
  /** As one names it in the working directory. */
  readonly path: string;
  /** The size that the file had with so many lines. */
  #known = { size: 0, lines: 0 };

  /** @throws ConfigError where it cannot be written */
  constructor(project: string) {
    this.#project = project;
    try {
      this.path = relative(process.cwd(), keptFile(project, NAME));
      closeSync(openKept(project, NAME));
    } catch (error) {
      throw new ConfigError(
        `--trace cannot write .parley/${NAME} in the project's folder (${codeOf(error)}). Make .parley a folder and ${NAME} a file, neither a link, that you may write to, or leave --trace out.`,
        { cause: error },
      );
    }
  }

  /** Returns the number of the line that was added: all of it or nothing. @throws what the system says */
  append(text: string): number {
    const line = Buffer.from(`${text}\n`);
    if (line.length > MAX_BYTES) throw new RangeError(`one request takes ${line.length} bytes`);
    this.#makeRoom(line.length);
    const file = openKept(this.#project, NAME);
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
    const file = openKept(this.#project, NAME);
    const { size } = fstatSync(file);
    closeSync(file);
    if (size === 0 || size + bytes <= MAX_BYTES) return;
    renameSync(keptFile(this.#project, NAME), keptFile(this.#project, OLDER_NAME));
  }

  /** What the file holds now; a line that a process has left unfinished is ended. */
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
