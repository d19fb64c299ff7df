/** What is open and what was just copied in the transcript: of the screen, not of the conversation. */

import type { ReactiveController, ReactiveControllerHost } from "lit";

const COPIED_FOR_MS = 2_000;

export class ViewState implements ReactiveController {
  readonly #host: ReactiveControllerHost;
  readonly #beforeToggle: () => void;
  readonly #onCopyFailed: () => void;
  readonly #chosen = new Map<string, boolean>();
  #copied: string | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #version = 0;

  constructor(
    host: ReactiveControllerHost,
    { beforeToggle, onCopyFailed }: { beforeToggle: () => void; onCopyFailed: () => void },
  ) {
    this.#host = host;
    this.#beforeToggle = beforeToggle;
    this.#onCopyFailed = onCopyFailed;
    host.addController(this);
  }

  /** Grows with every change, for views that are drawn again only when something changed. */
  get version(): number {
    return this.#version;
  }

  hostConnected(): void {
    this.#copied = undefined;
  }

  hostDisconnected(): void {
    clearTimeout(this.#timer);
  }

  /** The person's own choice always wins over the default. */
  isOpen(id: string, byDefault: boolean): boolean {
    return this.#chosen.get(id) ?? byDefault;
  }

  toggle(id: string, wasOpen: boolean): void {
    this.#beforeToggle();
    this.#chosen.set(id, !wasOpen);
    this.#changed();
  }

  isCopied(id: string): boolean {
    return this.#copied === id;
  }

  async copy(id: string, text: string): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // No clipboard without HTTPS, or the browser's permission is missing.
      this.#onCopyFailed();
      return;
    }
    this.#copied = id;
    this.#changed();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#copied = undefined;
      this.#changed();
    }, COPIED_FOR_MS);
  }

  /** Forgets everything, with the conversation that it was about. */
  clear(): void {
    this.#chosen.clear();
    this.#changed();
  }

  #changed(): void {
    this.#version += 1;
    this.#host.requestUpdate();
  }
}
