/** What a tab knows of a launcher, from one page of a site to the next. */

import { recall, remember } from "../storage.ts";

export interface LauncherState {
  /** Whether the panel is open; nothing if it has never been. */
  readonly open?: boolean;
  readonly wide?: boolean;
  /** Answers that came while the panel was closed. */
  readonly unread?: number;
  /** Whether an answer was coming when the page was left. */
  readonly awaited?: boolean;
  /** What became of the preview. */
  readonly preview?: "seen" | "dismissed";
}

export class LauncherMemory {
  readonly #host: { readonly server: string };
  #name = "";
  #state: LauncherState = {};

  constructor(host: { readonly server: string }) {
    this.#host = host;
  }

  get state(): LauncherState {
    const name = `agent-chat-panel:${this.#host.server}`;
    if (name !== this.#name) {
      this.#name = name;
      this.reload();
    }
    return this.#state;
  }

  /** Reads again what another page of the tab may have written. */
  reload(): void {
    this.#state = decode(recall(this.#name, "sessionStorage"));
  }

  /** Keeps what has changed, as long as the page where the browser blocks storage. */
  keep(change: LauncherState): void {
    this.#state = { ...this.state, ...change };
    remember(this.#name, JSON.stringify(this.#state), "sessionStorage");
  }
}

/** Whatever is stored there: what has another form was not written by this version. */
function decode(text = "{}"): LauncherState {
  try {
    const { open, wide, unread, awaited, preview } = JSON.parse(text);
    return {
      ...(typeof open === "boolean" && { open }),
      wide: wide === true,
      unread: Number.isInteger(unread) ? unread : 0,
      awaited: awaited === true,
      ...((preview === "seen" || preview === "dismissed") && { preview }),
    };
  } catch {
    return {};
  }
}
