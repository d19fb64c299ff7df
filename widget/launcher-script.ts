/**
 * Entry of `/launcher.js`: the button in the corner alone, for pages that most people leave without a word to the agent.
 * `/widget.js`, with all that it takes to chat, comes when somebody is about to open it, and where the page needs it anyway.
 */

import { EarlyButton } from "./early-button.ts";
import { CHATS, onceParsed, type ScriptTag, scriptTag, setLauncherAttributes } from "./script-tag.ts";
import { parseServer } from "./server-url.ts";
import { recall } from "./storage.ts";

/** What `<agent-chat-launcher>` takes in HTML: put there by the build. */
declare const PARLEY_LAUNCHER_ATTRIBUTES: readonly string[];

/** Where `/widget.js` is: at the server that is asked, since its chunks have to be of one version with it. */
function scriptOf(tag: ScriptTag): URL {
  try {
    return new URL("widget.js", parseServer(serverOf(tag)));
  } catch {
    // The launcher says what is wrong with it.
    return new URL("widget.js", tag.server);
  }
}

const serverOf = ({ server, attributes }: ScriptTag): string => attributes.server || server;

let whole: Promise<void> | undefined;

/** Loads `/widget.js`, once, however long that takes; what is in the page becomes what it stands for. */
function loadWhole(): Promise<void> {
  // The page may have the other script, too.
  whole ??= customElements.get("agent-chat") ? Promise.resolve() : load(scriptOf(scriptTag).href);
  return whole;
}

async function load(url: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      // Browsers remember what a URL failed with, but for one with another fragment they ask again.
      await import(`${url}#${tries}`);
      return;
    } catch (error) {
      // The page's author would see as much of a script tag.
      if (tries === 0) console.error(error);
      await pause(tries);
    }
  }
}

/** As before a chunk is asked for again: at most a second at first and a minute later, and cut short by a network that is back. */
function pause(tries: number): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      window.removeEventListener("online", end);
      resolve();
    };
    setTimeout(end, Math.random() * 1_000 * 2 ** Math.min(tries, 6));
    window.addEventListener("online", end);
  });
}

/** Asks the browser to have it at hand, without running it. */
function preload(): void {
  const link = document.createElement("link");
  link.rel = "modulepreload";
  link.href = `${scriptOf(scriptTag).href}#0`;
  link.nonce = nonce;
  document.head.append(link);
}

function start(tag: ScriptTag): void {
  const chats = document.querySelectorAll(CHATS);
  if (!tag.wantsLauncher || chats.length > 0) {
    // A module does not know where it came from. What is there already has a server, or was given one as a property.
    for (const chat of chats) {
      if (!("server" in chat) && !chat.getAttribute("server")) giveServer(chat, tag);
    }
    void loadWhole();
    return;
  }
  const launcher = document.createElement("agent-chat-launcher");
  setLauncherAttributes(launcher, tag.attributes, PARLEY_LAUNCHER_ATTRIBUTES);
  giveServer(launcher, tag);
  document.body.append(launcher);
  const loadLater = () => whenIdle(() => void loadWhole());
  new EarlyButton(launcher, { key: tag.key, preload, loadWhole, loadLater });
  // Who has opened the chat in this tab finds it as it was: open, or with news.
  const name = `agent-chat-panel:${serverOf(tag)}`;
  const resume = () => recall(name, "sessionStorage")?.includes('"open":') && void loadWhole();
  resume();
  addEventListener("pageshow", resume);
}

function giveServer(chat: Element, tag: ScriptTag): void {
  chat.setAttribute("server", serverOf(tag));
}

/** After all that the page itself loads. */
function whenIdle(task: () => void): void {
  const wait = () => {
    // Safari has no such thing.
    if ("requestIdleCallback" in window) requestIdleCallback(task, { timeout: 2_000 });
    else setTimeout(task);
  };
  if (document.readyState === "complete") wait();
  else addEventListener("load", wait, { once: true });
}

/** Of the tag: a page's policy may ask for it. */
const nonce = document.currentScript?.nonce ?? "";

onceParsed(() => start(scriptTag));
