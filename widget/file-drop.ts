/** Files dragged over the element: shows that they may be dropped, and takes them. */

import { html, type ReactiveControllerHost, type TemplateResult } from "lit";
import { strings } from "./strings.ts";
import * as icons from "./views/icons.ts";

export class FileDrop {
  readonly #host: ReactiveControllerHost;
  readonly #onFiles: (files: Iterable<File>) => void;
  #over = false;

  constructor(host: ReactiveControllerHost, onFiles: (files: Iterable<File>) => void) {
    this.#host = host;
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
    const stillInside =
      currentTarget instanceof Node &&
      relatedTarget instanceof Node &&
      currentTarget.contains(relatedTarget);
    if (!stillInside) this.#show(false);
  };

  readonly drop = (event: DragEvent): void => {
    this.#show(false);
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    this.#onFiles(event.dataTransfer.files);
  };

  render(): TemplateResult {
    return html`
      <div class="drop" ?hidden=${!this.#over} aria-hidden="true">
        <div class="drop-card">${icons.file}<span>${strings.dropHere}</span></div>
      </div>
    `;
  }

  #show(over: boolean): void {
    if (this.#over === over) return;
    this.#over = over;
    this.#host.requestUpdate();
  }
}
