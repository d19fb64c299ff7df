/**
 * The `<script>` that loaded this file says where the server is, in `data-key` the key, in `data-launcher="none"` that
 * the page places the chat itself, however late, and in its other `data-*` the attributes of the launcher.
 */

import { reportAttribute } from "./attribute-checks.ts";

export interface ScriptTag {
  /** Whether there is a tag: a module has none. */
  readonly isTag: boolean;
  readonly server: string;
  readonly key: string;
  readonly wantsLauncher: boolean;
  /** Attributes of `<agent-chat-launcher>`, as in HTML. */
  readonly attributes: Readonly<Record<string, string>>;
}

/**
 * Gives a launcher what its script tag says, as HTML would. `known` are the attributes that a launcher has; the page's
 * author is told of others.
 */
export function setLauncherAttributes(
  launcher: HTMLElement,
  attributes: ScriptTag["attributes"],
  known: readonly string[],
): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (known.includes(name) || /^(lang|dir)$/.test(name)) launcher.setAttribute(name, value);
    else reportAttribute(launcher, `data-${name}`, value, `one of ${known.map((it) => `data-${it}`)}`);
  }
}

/** What a page may hold itself. */
export const CHATS = "agent-chat, agent-chat-launcher";

/** Calls back when the page has been parsed: what it places itself is there then. */
export function onceParsed(start: () => void): void {
  if (document.readyState === "loading") {
    document.addEventListener("DOMContentLoaded", start, { once: true });
  } else {
    start();
  }
}

/** Reads a script tag. A module sees none: it means the page's own server, and only defines the elements. */
export function readScriptTag(script: unknown): ScriptTag {
  if (!(script instanceof HTMLScriptElement) || script.src === "") {
    const server = new URL("/", document.baseURI).href;
    return { isTag: false, server, key: "", wantsLauncher: false, attributes: {} };
  }
  const all: Record<string, string> = {};
  // Not `dataset`, which has other names than the attributes.
  for (const { name, value } of script.attributes) {
    if (name.startsWith("data-")) all[name.slice(5)] = value;
  }
  const { key = "", launcher, ...attributes } = all;
  // The folder of the script, so that a server behind a path prefix is found too.
  const server = new URL(".", script.src).href;
  return { isTag: true, server, key: key.trim(), wantsLauncher: launcher !== "none", attributes };
}

/** Read at once: `document.currentScript` is gone as soon as the script has run. */
export const scriptTag = readScriptTag(document.currentScript);
