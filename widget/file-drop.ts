/** Files dragged over the element: shows that they may be dropped, and takes them. */

import { nothing } from "lit";
import { LateChunk, type LateHost } from "./late-chunk.ts";

export class FileDrop {
  readonly #host: LateHost;
  readonly #files: LateChunk<"files">;
  readonly #onFiles: (files: Iterable<File>) => void;
  #over = false;

  constructor(host: LateHost, onFiles: (files: Iterable<File>) => void) {
    this.#host = host;
    this.#files = new LateChunk(host, "files");
    this.#onFiles = onFiles;
  }

  readonly dragOver = (event: DragEvent): void => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    // Without this the browser would open the file in place of the page.
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
    this.#show(true);
  };

  readonly dragLeave = (event: DragEvent): void => {
    const { currentTarget, relatedTarget } = event;
    // Nothing is inside where it has left the page.
    const isInside = (currentTarget as Node).contains(relatedTarget as Node | null);
    if (!isInside) this.#show(false);
  };

  readonly drop = (event: DragEvent): void => {
    this.#show(false);
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    this.#onFiles(event.dataTransfer.files);
  };

  /** Files are taken just the same where what draws this cannot be had. */
  render(): unknown {
    return this.#over ? (this.#files.get()?.dropView() ?? nothing) : nothing;
  }

  #show(over: boolean): void {
    if (this.#over === over) return;
    this.#over = over;
    this.#host.requestUpdate();
  }
}
