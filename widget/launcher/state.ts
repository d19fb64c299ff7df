/** What a tab remembers about a launcher, from one page of a site to the next. */

import { recall, remember } from "../session/storage.ts";

export interface LauncherState {
  /** Whether the panel is open; absent if it was never opened. */
  readonly open?: boolean;
  readonly wide?: boolean;
  /** Answers that arrived while the panel was closed. */
  readonly unread?: number;
  /** Whether an answer was expected when the page was left. */
  readonly awaited?: boolean;
  /** What became of the preview. */
  readonly preview?: "seen" | "dismissed";
}

const nameFor = (server: string) => `agent-chat-panel:${server}`;

/** Whether the panel was ever opened in this tab. Cheap, since the loader asks on every page. */
export function hasOpened(server: string): boolean {
  return recall(nameFor(server), "sessionStorage")?.includes('"open":') ?? false;
}

export class LauncherMemory {
  readonly #host: { readonly server: string };
  #name = "";
  #state: LauncherState = {};

  constructor(host: { readonly server: string }) {
    this.#host = host;
  }

  get state(): LauncherState {
    const name = nameFor(this.#host.server);
    if (name !== this.#name) {
      this.#name = name;
      this.reload();
    }
    return this.#state;
  }

  /** Reads again, because another page of the tab may have written. */
  reload(): void {
    this.#state = decode(recall(this.#name, "sessionStorage"));
  }

  /** Keeps a change; as long as the page only, where the browser blocks storage. */
  keep(change: LauncherState): void {
    this.#state = { ...this.state, ...change };
    remember(this.#name, JSON.stringify(this.#state), "sessionStorage");
  }
}

/** Reads what this version has written, and nothing of what has another form. */
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
