import type { ReactiveController, ReactiveControllerHost } from "lit";

/** How long a button says that it has copied. */
const COPIED_FOR_MS = 2_000;

/** Copies for the buttons of one part, and knows for a moment which of them has just done it. */
export class Copier implements ReactiveController {
  readonly #host: ReactiveControllerHost;
  #copied: string | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(host: ReactiveControllerHost) {
    this.#host = host;
    host.addController(this);
  }

  hostDisconnected(): void {
    this.#show(undefined);
  }

  isCopied(key: string): boolean {
    return this.#copied === key;
  }

  /** `key` names the button, `copying` is what it does. Resolves to whether that was possible. */
  async copy(key: string, copying: Promise<boolean>): Promise<boolean> {
    const isDone = await copying;
    if (isDone) {
      this.#show(key);
      this.#timer = setTimeout(() => this.#show(undefined), COPIED_FOR_MS);
    }
    return isDone;
  }

  #show(key: string | undefined): void {
    clearTimeout(this.#timer);
    this.#copied = key;
    this.#host.requestUpdate();
  }
}
