import type { ReactiveController, ReactiveControllerHost } from "lit";

/** Takes files that are dragged onto the whole element. */
export class FileDrop implements ReactiveController {
  /** Whether files are over the element. */
  isDragging = false;
  readonly #host: ReactiveControllerHost & HTMLElement;
  readonly #onFiles: (files: readonly File[]) => void;

  constructor(host: ReactiveControllerHost & HTMLElement, onFiles: (files: readonly File[]) => void) {
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
    // It is null where the pointer has left the window.
    if (!this.#host.contains(relatedTarget as Node | null)) this.#show(false);
  }

  #drop(event: DragEvent): void {
    this.#show(false);
    if (!hasFiles(event)) return;
    event.preventDefault();
    this.#onFiles([...(event.dataTransfer?.files ?? [])]);
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
