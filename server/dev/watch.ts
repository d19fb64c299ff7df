/** Reports changes of an agent's files, in its project's folder and wherever else it imports from. */

import { type FSWatcher, readdirSync, statSync, watch } from "node:fs";
import { dirname, join, sep } from "node:path";

/** An editor writes a file in several steps, and a tool many files one after the other. */
const QUIET_MS = 50;

/** With more folders, this is not an agent's project, but a home, for example. */
const MAX_FOLDERS = 1000;

/** What an agent may import, or read while it is loaded. */
const READABLE = /^[^.].*\.(?:[cm]?[jt]sx?|json|ya?ml|toml|mdx?|txt|csv|html|xml)$/i;

interface WatchOptions {
  readonly folder: string;
  onChange(changed: ReadonlySet<string>): void;
  onProblem(sentence: string): void;
}

export class ProjectWatcher {
  readonly #options: WatchOptions;
  /** Not recursive, because that would watch `node_modules`, too. */
  readonly #watchers = new Map<string, FSWatcher>();
  #imported: ReadonlySet<string> = new Set();
  #changed = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #hasFailed = false;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  /**
   * To be called after each load: watches the project's current folders, and those of these files, whose changes count
   * wherever they are, under whatever name.
   */
  follow(imported: Iterable<string>): void {
    this.#imported = new Set(imported);
    const folders = new Set([...foldersIn(this.#options.folder), ...[...this.#imported].map(dirname)]);
    for (const [folder, watcher] of this.#watchers) if (!folders.has(folder)) this.#leave(folder, watcher);
    for (const folder of folders) if (!this.#watchers.has(folder)) this.#watch(folder);
  }

  #watch(folder: string): void {
    try {
      const watcher = watch(folder, (_event, name) => this.#noticed(folder, name));
      // The folder was removed.
      watcher.on("error", () => this.#leave(folder, watcher));
      this.#watchers.set(folder, watcher);
    } catch (error) {
      const isGone = error instanceof Error && "code" in error && error.code === "ENOENT";
      if (isGone || this.#hasFailed) return;
      this.#hasFailed = true;
      this.#options.onProblem(`Changes in ${folder} are not seen: ${error instanceof Error ? error.message : error}`);
    }
  }

  #leave(folder: string, watcher: FSWatcher): void {
    watcher.close();
    this.#watchers.delete(folder);
  }

  #noticed(folder: string, name: string | null): void {
    const path = join(folder, name ?? "");
    // A folder that was removed or moved away is watched no more, even if another one takes its name.
    const wasWatched = name !== null && this.#leaveBelow(path);
    if (!wasWatched && !this.#imported.has(path)) {
      const isInProject = `${folder}${sep}`.startsWith(this.#options.folder + sep);
      if (!isInProject || !(READABLE.test(name ?? "") || this.#isNewFolder(path, name ?? "."))) return;
    }
    this.#changed.add(path);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#report(), QUIET_MS);
  }

  /** Stops watching a folder and all folders in it. Returns whether any was watched. */
  #leaveBelow(path: string): boolean {
    const below = [...this.#watchers].filter(([folder]) => folder === path || folder.startsWith(path + sep));
    for (const [folder, watcher] of below) this.#leave(folder, watcher);
    return below.length > 0;
  }

  #isNewFolder(path: string, name: string): boolean {
    return isWatched(name) && !this.#watchers.has(path) && !!statSync(path, { throwIfNoEntry: false })?.isDirectory();
  }

  #report(): void {
    const changed = this.#changed;
    this.#changed = new Set();
    this.#options.onChange(changed);
  }
}

const isWatched = (name: string): boolean => !name.startsWith(".") && name !== "node_modules";

function foldersIn(folder: string): string[] {
  const found = [folder];
  for (const known of found) {
    if (found.length > MAX_FOLDERS) break;
    try {
      const entries = readdirSync(known, { withFileTypes: true });
      found.push(...entries.filter((it) => it.isDirectory() && isWatched(it.name)).map((it) => join(known, it.name)));
    } catch {
      // It has gone, or this user may not read it.
    }
  }
  return found;
}
