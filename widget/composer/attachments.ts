/** The files of the message that is being written, those that are still being read, and why others were refused. */

import type { ReactiveController, ReactiveControllerHost } from "lit";
import type { OutgoingMessage } from "../conversations/conversation.ts";
import { lazy } from "../loading/lazy.ts";
import type { FileNote } from "../ui/file-notes.ts";
import { loadPart } from "../ui/lazy-parts.ts";
import type { Conditions, DraftFile } from "./read-file.ts";

const reader = lazy(() => import("./read-file.ts"), "readFile");

/** Checks and reads files, and keeps them until they are sent. */
export class DraftFiles {
  files: readonly DraftFile[] = [];
  /** The files that are still being read, or wait for the server's rules. */
  pending: readonly File[] = [];
  /** Why files were refused, until the user dismisses that. */
  refusals: readonly FileNote[] = [];
  readonly #onChange: () => void;
  /** Resolves when all files so far have been checked. */
  #added: Promise<unknown> = Promise.resolve();

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** The names of all files, also of those that are still being read. */
  get names(): readonly string[] {
    return [...this.files, ...this.pending].map(({ name }) => name);
  }

  /**
   * Adds the files that may be attached. `conditions` is called when it is their turn. Resolves to a note on each file,
   * to be announced.
   */
  async add(files: readonly File[], conditions: () => Promise<Conditions>): Promise<readonly FileNote[]> {
    if (files.length === 0) return [];
    this.#change({ pending: [...this.pending, ...files], refusals: [] });
    // Files are checked together with all earlier ones, so those still being read come first.
    const outcomes = this.#added.then(async () => this.#addAll(files, await conditions()));
    this.#added = outcomes;
    return outcomes;
  }

  remove(removed: DraftFile): void {
    this.#change({ files: this.files.filter((file) => file !== removed) });
  }

  /** Shows and returns why files of another message cannot join these, if they cannot. */
  async refuse(others: readonly DraftFile[], conditions: Conditions): Promise<readonly FileNote[]> {
    const { refuseTogether } = await reader.load();
    this.#change({ refusals: refuseTogether(others, this.files, conditions) });
    return this.refusals;
  }

  /** Removes files that were sent. */
  removeSent(sent: readonly DraftFile[]): void {
    this.replace(this.files.filter((file) => !sent.includes(file)));
  }

  /** Replaces all files. */
  replace(files: readonly DraftFile[]): void {
    this.#change({ files, refusals: [] });
  }

  /** Shows and returns which files a reload has lost. */
  reportLost(names: readonly string[]): readonly FileNote[] {
    this.#change({ refusals: names.map((name) => ({ name, say: (strings, all) => strings.fileLost(all) })) });
    return this.refusals;
  }

  dismissRefusals(): void {
    this.#change({ refusals: [] });
  }

  async #addAll(files: readonly File[], conditions: Conditions): Promise<readonly FileNote[]> {
    const notes: FileNote[] = [];
    for (const file of files) {
      const read = await this.#read(file, conditions);
      const pending = this.pending.filter((other) => other !== file);
      if ("say" in read) this.#change({ pending, refusals: [...this.refusals, read] });
      else this.#change({ pending, files: [...this.files, read] });
      notes.push("say" in read ? read : { name: file.name, say: (strings) => strings.fileAttached(file.name) });
    }
    return notes;
  }

  /** Resolves to the file, or to why it is refused. */
  async #read(file: File, conditions: Conditions): Promise<DraftFile | FileNote> {
    try {
      const [{ readFile }] = await Promise.all([reader.load(), loadPart("agent-chat-files")]);
      return await readFile(file, this.files, conditions);
    } catch {
      // The file was moved, the system denies reading it, or the code that reads or draws it cannot be loaded.
      return { name: file.name, say: (strings, names) => strings.fileUnreadable(names) };
    }
  }

  #change(change: Partial<Pick<DraftFiles, "files" | "pending" | "refusals">>): void {
    Object.assign(this, change);
    this.#onChange();
  }
}

/** Accepts files that are dropped anywhere on the element. */
export class FileDrop implements ReactiveController {
  /** Whether files are over the element. */
  isDragging = false;
  readonly #host: ReactiveControllerHost & HTMLElement;
  readonly #onFiles: (files: readonly File[], path: readonly EventTarget[]) => void;

  /** `path`: the elements that the files are dropped on, from the innermost one. */
  constructor(
    host: ReactiveControllerHost & HTMLElement,
    onFiles: (files: readonly File[], path: readonly EventTarget[]) => void,
  ) {
    this.#host = host;
    this.#onFiles = onFiles;
    host.addController(this);
    host.addEventListener("dragover", (event) => this.#over(event));
    host.addEventListener("dragleave", (event) => this.#leave(event));
    host.addEventListener("drop", (event) => this.#drop(event));
  }

  hostDisconnected(): void {
    this.isDragging = false;
  }

  #over(event: DragEvent): void {
    if (!event.dataTransfer || !hasFiles(event)) return;
    // Without this the browser would open the file in place of the page.
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
    this.#show(true);
  }

  #leave({ relatedTarget }: DragEvent): void {
    // `relatedTarget` is null if the pointer has left the window.
    if (!this.#host.contains(relatedTarget as Node | null)) this.#show(false);
  }

  #drop(event: DragEvent): void {
    this.#show(false);
    if (!hasFiles(event)) return;
    event.preventDefault();
    this.#onFiles([...(event.dataTransfer?.files ?? [])], event.composedPath());
  }

  #show(isDragging: boolean): void {
    if (this.isDragging === isDragging) return;
    this.isDragging = isDragging;
    this.#host.requestUpdate();
  }
}

function hasFiles({ dataTransfer }: DragEvent): boolean {
  return dataTransfer?.types.includes("Files") ?? false;
}

/** The files of a message that was to be sent, or was. */
export function draftFilesOf({ files, attachments }: OutgoingMessage): readonly DraftFile[] {
  return attachments.flatMap((attachment, index) => {
    const file = files[index];
    return file ? [{ ...file, attachment }] : [];
  });
}
