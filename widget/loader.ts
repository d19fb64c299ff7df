/**
 * Entry of `/widget.js`, a classic script without Lit: draws the launcher's button, and loads the chat when it is
 * needed. The button is pressed or comes under the pointer or the focus, a script opens it, or an `<agent-chat>` is in
 * the page.
 *
 * `<script src="https://agent.example/widget.js" data-label="Ask us" async></script>`: in `data-key` stands the site's
 * key, in `data-launcher="none"` that the page places the chat itself, however late, and in other `data-*` the
 * launcher's attributes.
 */

import { warnOfValue } from "./element/properties.ts";
import { AgentChatLauncher } from "./launcher/launcher.ts";
import { lazy } from "./loading/lazy.ts";

/** Names of the files in the folder `chunks` beside this one: put here by the build. */
declare const PARLEY_CHUNKS: { readonly chat: string; readonly panel: string };

/** Gone as soon as the script has run; a module never has it. */
const { currentScript } = document;
const script = currentScript instanceof HTMLScriptElement && currentScript.src !== "" ? currentScript : undefined;

/** The folder of the script, so that a server behind a path prefix is found, too. */
const server = new URL(script ? "." : "/", script?.src ?? document.baseURI).href;

/** A script of another origin has no base for relative addresses; a module has one, and no other. */
const load = (file: string) => import(`${script ? server : "./"}chunks/${file}`);
const chat = lazy(() => load(PARLEY_CHUNKS.chat));

/** What a page may hold itself. Live: asking again costs nothing. */
const chats = document.getElementsByTagName("agent-chat");
const launchers = document.getElementsByTagName("agent-chat-launcher");

function loadChat(): void {
  observer.disconnect();
  // Another script may have brought it.
  if (!customElements.get("agent-chat")) void chat.loadEventually();
}

const observer = new MutationObserver(() => chats.length > 0 && loadChat());

/** Adds the launcher, unless the page has placed the chat itself or wants none. */
function addLauncher({ attributes }: HTMLScriptElement): void {
  if (chats.length > 0 || launchers.length > 0) return;
  // Another script may have defined the element: this one's class would not be its.
  const launcher = document.createElement("agent-chat-launcher");
  launcher.server = server;
  const known = AgentChatLauncher.observedAttributes;
  // Not `dataset`, which has other names than the attributes.
  for (const { name, value } of attributes) {
    const attribute = name.startsWith("data-") ? name.slice(5) : "";
    // The element's name of it is understood, too: as a wrong attribute it would be in the console.
    if (/^(api-)?key$/.test(attribute)) launcher.apiKey = value.trim();
    else if (known.includes(attribute) || /^(lang|dir)$/.test(attribute)) launcher.setAttribute(attribute, value);
    else if (attribute && attribute !== "launcher") {
      warnOfValue(launcher, name, value, `one of ${known.map((it) => `data-${it}`).join(", ")}`);
    }
  }
  document.body.append(launcher);
}

if (!customElements.get("agent-chat-launcher")) {
  AgentChatLauncher.defaultServer = server;
  AgentChatLauncher.panel = lazy(() => load(PARLEY_CHUNKS.panel));
  customElements.define("agent-chat-launcher", AgentChatLauncher);
}
if (!script) {
  console.warn(
    'Parley: as a module widget.js cannot read its tag, and adds no button. Use <script src="…/widget.js" async>.',
  );
}
const wantsLauncher = script && script.dataset.launcher !== "none";
if (chats.length > 0 || !wantsLauncher) loadChat();
else observer.observe(document, { childList: true, subtree: true });
// By then the page has placed what it places itself.
if (wantsLauncher) whenParsed(() => addLauncher(script));

function whenParsed(task: () => void): void {
  if (document.readyState !== "loading") task();
  else document.addEventListener("DOMContentLoaded", task, { once: true });
}
