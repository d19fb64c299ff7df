/** What a tab remembers about a launcher, from one page of a site to the next. */

import { toJson } from "../../server/protocol/json.ts";
import { recall, remember } from "../storage/storage.ts";

/** Attributes of the button set by an agent's owner, by language; under an empty one those for all languages. */
export type OwnersAttributes = Readonly<Record<string, Readonly<Record<string, string>>>>;

export interface LauncherState {
  /** Whether the panel is open; `undefined` if it was never opened. */
  readonly open: boolean | undefined;
  readonly wide: boolean;
  /** Answers that arrived while the panel was closed. */
  readonly unread: number;
  /** Whether an answer was expected when the page was left. */
  readonly awaited: boolean;
  /** Whether the preview was shown, or closed by the user. */
  readonly preview: "seen" | "dismissed" | undefined;
}

/** With the absolute address, as a relative one means another server on each page. */
const nameFor = (server: string) => {
  const link = document.createElement("a");
  link.href = server;
  return `agent-chat-panel:${link.href}`;
};

/** Where the panel fills the screen, is modal and never opens by itself: too small for a page beside it. */
const SMALL_SCREEN = "(width <= 480px), (height <= 480px) and (pointer: coarse)";

/** A function, because a page that is tested without a browser has no `matchMedia`. */
export const smallScreen = (): MediaQueryList => matchMedia(SMALL_SCREEN);

/** Whether the panel was left open in this tab, or an answer came or was expected. Cheap, as every page calls it. */
export function hasNews(server: string): boolean {
  const kept = recall(nameFor(server), "sessionStorage") ?? "";
  return /"awaited":true|"unread":[1-9]/.test(kept) || (/"open":true/.test(kept) && !smallScreen().matches);
}

export class LauncherMemory {
  readonly #launcher: { readonly server: string };

  constructor(launcher: { readonly server: string }) {
    this.#launcher = launcher;
  }

  /** Read again each time, because another page of the tab may have written it. */
  get state(): LauncherState {
    return decode(recall(nameFor(this.#launcher.server), "sessionStorage"));
  }

  /** Whether the panel has opened by itself for this visitor, on any visit. */
  get hasOpened(): boolean {
    return recall(this.#openedName) !== undefined;
  }

  set hasOpened(_: true) {
    remember(this.#openedName, "1");
  }

  get #openedName(): string {
    return nameFor(this.#launcher.server).replace("agent-chat-panel:", "agent-chat-opened:");
  }

  /** Saves a change; only until the page is left, if the browser blocks storage. */
  keep(change: Partial<LauncherState>): void {
    const { server } = this.#launcher;
    remember(nameFor(server), toJson({ ...this.state, ...change }), "sessionStorage");
  }
}

/** Reads what this version has written, and ignores values of another form. */
function decode(text = "{}"): LauncherState {
  const { open, wide, unread, awaited, preview } = parse(text) ?? {};
  return {
    open: typeof open === "boolean" ? open : undefined,
    wide: wide === true,
    unread: Number.isInteger(unread) ? Number(unread) : 0,
    awaited: awaited === true,
    preview: preview === "seen" || preview === "dismissed" ? preview : undefined,
  };
}

function parse(text: string): Partial<Record<keyof LauncherState, unknown>> | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
