/**
 * Entry of `/widget.js`, a classic script without Lit: draws the launcher's button, and loads the chat when it is
 * needed. The button is pressed or comes under the pointer or the focus, a script opens it, or an `<agent-chat>` is in
 * the page.
 *
 * `<script src="https://agent.example/widget.js" data-label="Ask us" async></script>`: in `data-key` stands the site's
 * key, in `data-launcher="none"` that the page places the chat itself, however late, and in other `data-*` the
 * launcher's attributes.
 */

import type { AgentChatLauncher as PublicLauncher } from "./element/public-types.ts";
import { AgentChatLauncher } from "./launcher/launcher.ts";
import type { OwnersAttributes } from "./launcher/state.ts";
import { isBroken, retry } from "./loading/retry.ts";

/** Names of the files in the folder `chunks` beside this one: put here by the build. */
declare const PARLEY_CHUNKS: { readonly chat: string; readonly greeting: string; readonly panel: string };

/** What the agent's owner says of the button: put here by the server. */
declare const PARLEY_BUTTON: OwnersAttributes;

/** Gone as soon as the script has run; a module never has it. */
const { currentScript } = document;
const script = currentScript instanceof HTMLScriptElement && currentScript.src !== "" ? currentScript : undefined;

/** The folder of the script, so that a server behind a path prefix is found, too. */
const server = new URL(script ? "." : "/", script?.src ?? document.baseURI).href;

/** A script of another origin has no base for relative addresses; a module has one, and no other. */
const chunks = `${script ? server : "./"}chunks/`;

/** A browser may never request a module again that it could not load, except under another address. */
const loaderOf = (file: string) => (signal?: AbortSignal, onFailure?: () => void) =>
  retry((n) => import(`${chunks}${file}${n ? `#${n}` : ""}`), isBroken, signal, onFailure);
const loadChatFile = loaderOf(PARLEY_CHUNKS.chat);

/** On the launcher of a script tag: distinguishes it, and a router's copy of it, from what the page has placed. */
const MARK = "data-from-script";

/** What a page has in place of the script's launcher. */
const OWN = `agent-chat, agent-chat-launcher:not([${MARK}])`;

/** Whether the page has been read, and has not removed the launcher since. */
let wantsLauncher = false;

/** The launcher of the script tag, and the document's root for which it was made. */
let launcher: PublicLauncher;
let root: Element | undefined;

/** The launcher, or what the page has in its place. */
let shown: Element | undefined;

const observer = new MutationObserver((records) => {
  const isNew = records.some(bringsOwn);
  if (isNew) loadChat();
  if (isNew || !shown?.isConnected) place();
});

/** Looks at what is new only: to search the page would slow down each change of a large one. */
function bringsOwn({ addedNodes }: MutationRecord): boolean {
  return [...(addedNodes as NodeListOf<Element>)].some((node) => node.matches?.(OWN) || node.querySelector?.(OWN));
}

/** Another script may have brought it. */
function loadChat(): void {
  if (!customElements.get("agent-chat") && document.querySelector("agent-chat")) void loadChatFile();
}

/**
 * Puts the launcher into a page that has no chat of its own. A router (Turbo, htmx, Astro) that replaces the body, or all
 * in it, does not mean the button.
 */
function place(): void {
  const { body, documentElement } = document;
  if (!wantsLauncher || !script || !body) return;
  // `document.open()` has taken all listeners away.
  if (root !== documentElement) launcher = makeLauncher(script);
  root = documentElement;
  // In a page that the router has kept is a copy, which has no key. Not `remove()`, by which a page means the button.
  for (const it of document.querySelectorAll(`[${MARK}]`)) it.replaceWith();
  shown = document.querySelector(OWN) ?? body.appendChild(launcher);
}

/** The launcher with the attributes of the script tag. */
function makeLauncher(tag: HTMLScriptElement): PublicLauncher {
  // Another script may have defined the element: this one's class would not be its.
  const made = document.createElement("agent-chat-launcher") as AgentChatLauncher;
  made.server = server;
  made.tag = tag;
  made.setAttribute(MARK, "");
  // Routers take the nodes out of their parent; a page that calls this wants no button any more.
  made.remove = () => {
    wantsLauncher = false;
    HTMLElement.prototype.remove.call(made);
  };
  const known = AgentChatLauncher.observedAttributes;
  // Not `dataset`, which has other names than the attributes.
  for (const { name, value } of tag.attributes) {
    const attribute = name.startsWith("data-") ? name.slice(5) : "";
    // The element's name of it is understood, too: as a wrong attribute it would be in the console.
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
  // By then the page has placed what it places itself.
  if (document.readyState !== "loading") begin();
  else document.addEventListener("DOMContentLoaded", begin, { once: true });
}

function begin(): void {
  // A router runs a script in the body again on each page: the first one goes on.
  if (!isFirst && document.querySelector(`${OWN}, [${MARK}]`)) observer.disconnect();
  else {
    wantsLauncher = true;
    place();
  }
}
