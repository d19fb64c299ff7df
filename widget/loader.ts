/**
 * Entry of `/widget.js`, a classic script without Lit: draws the launcher's button, and loads the chat when it is
 * needed. That is when the button is pressed, hovered or focused, when a script opens it, or when an `<agent-chat>` is
 * in the page.
 *
 * `<script src="https://agent.example/widget.js" data-label="Ask us" async></script>`: `data-key` is the site's key,
 * `data-launcher="none"` means that the page places the chat itself, however late, and other `data-*` are the
 * launcher's attributes.
 */

import type { AgentChatLauncher as PublicLauncher } from "./element/public-types.ts";
import { AgentChatLauncher } from "./launcher/launcher.ts";
import type { OwnersAttributes } from "./launcher/state.ts";
import { isBroken, retry } from "./loading/retry.ts";

/** Names of the files in the folder `chunks` beside this one: inserted by the build. */
declare const PARLEY_CHUNKS: { readonly chat: string; readonly greeting: string; readonly panel: string };

/** The launcher attributes that the agent's owner has set: inserted by the server. */
declare const PARLEY_BUTTON: OwnersAttributes;

/** `null` as soon as the script has run, and always in a module. */
const { currentScript } = document;
const script = currentScript instanceof HTMLScriptElement && currentScript.src !== "" ? currentScript : undefined;

/** The folder of the script, so that a server behind a path prefix is found, too. */
const server = new URL(script ? "." : "/", script?.src ?? document.baseURI).href;

/** A script of another origin cannot import relative addresses; a module can, and knows no other. */
const chunks = `${script ? server : "./"}chunks/`;

/** After a failure a browser may never request a module again, except under another address. */
const loaderOf = (file: string) => (signal?: AbortSignal, onFailure?: () => void) =>
  retry((n) => import(`${chunks}${file}${n ? `#${n}` : ""}`), isBroken, signal, onFailure);
const loadChatFile = loaderOf(PARLEY_CHUNKS.chat);

/** Marks the launcher of a script tag, and copies of it by routers, in contrast to what the page has placed. */
const MARK = "data-from-script";

/** Elements of the page that replace the script's launcher. */
const OWN = `agent-chat, agent-chat-launcher:not([${MARK}])`;

/** Whether the page has been parsed, and has not removed the launcher since. */
let wantsLauncher = false;

/** The launcher of the script tag, and the document's root for which it was made. */
let launcher: PublicLauncher;
let root: Element | undefined;

/** The launcher, or the element that replaces it. */
let shown: Element | undefined;

const observer = new MutationObserver((records) => {
  const isNew = records.some(bringsOwn);
  if (isNew) loadChat();
  if (isNew || !shown?.isConnected) place();
});

/** Checks only what was added: searching a large page would slow down each change of it. */
function bringsOwn({ addedNodes }: MutationRecord): boolean {
  return [...(addedNodes as NodeListOf<Element>)].some((node) => node.matches?.(OWN) || node.querySelector?.(OWN));
}

/** Unless another script has defined the chat already. */
function loadChat(): void {
  if (!customElements.get("agent-chat") && document.querySelector("agent-chat")) void loadChatFile();
}

/**
 * Puts the launcher into a page that has no chat of its own. A router (Turbo, htmx, Astro) that replaces the body or
 * its contents does not mean to remove the button.
 */
function place(): void {
  const { body, documentElement } = document;
  if (!wantsLauncher || !script || !body) return;
  // `document.open()` has removed all listeners.
  if (root !== documentElement) launcher = makeLauncher(script);
  root = documentElement;
  // A page that a router has kept contains a copy, which has no key. Not `remove()`: see `makeLauncher`.
  for (const it of document.querySelectorAll(`[${MARK}]`)) it.replaceWith();
  shown = document.querySelector(OWN) ?? body.appendChild(launcher);
}

/** The launcher with the attributes of the script tag. */
function makeLauncher(tag: HTMLScriptElement): PublicLauncher {
  // Not `new`: another script may have defined the element, with another class.
  const made = document.createElement("agent-chat-launcher") as AgentChatLauncher;
  made.server = server;
  made.tag = tag;
  made.setAttribute(MARK, "");
  // Routers remove nodes by other methods; a page that calls this one no longer wants the button.
  made.remove = () => {
    wantsLauncher = false;
    HTMLElement.prototype.remove.call(made);
  };
  const known = AgentChatLauncher.observedAttributes;
  // Not `dataset`, which has other names than the attributes.
  for (const { name, value } of tag.attributes) {
    const attribute = name.startsWith("data-") ? name.slice(5) : "";
    // The element's own name, `api-key`, works, too.
    if (/^(api-)?key$/.test(attribute)) made.apiKey = value.trim();
    else if (known.includes(attribute)) made.setAttribute(attribute, value);
  }
  return made;
}

const isFirst = !customElements.get("agent-chat-launcher");
if (isFirst) {
  AgentChatLauncher.defaultServer = server;
  AgentChatLauncher.owner = PARLEY_BUTTON;
  AgentChatLauncher.loadGreeting = loaderOf(PARLEY_CHUNKS.greeting);
  AgentChatLauncher.loadPanel = loaderOf(PARLEY_CHUNKS.panel);
  AgentChatLauncher.importReload = () => import(`${chunks}reload.js#${Date.now()}`);
  customElements.define("agent-chat-launcher", AgentChatLauncher);
}
if (!script) {
  console.warn('No button as a module. Use <script src="…" async>');
}
if (!script || script.dataset.launcher === "none") void loadChatFile();
else {
  loadChat();
  observer.observe(document, { childList: true, subtree: true });
  // After parsing, the elements that the page places itself are there.
  if (document.readyState !== "loading") begin();
  else document.addEventListener("DOMContentLoaded", begin, { once: true });
}

function begin(): void {
  // A router runs a script in the body again on each page: the first run stays in charge.
  if (!isFirst && document.querySelector(`${OWN}, [${MARK}]`)) observer.disconnect();
  else {
    wantsLauncher = true;
    place();
  }
}
