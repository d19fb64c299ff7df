/** Entry of the page at `/`: the chat, and in a frame (`/?embed=1#key=…`) the key of the site around it. */

import "./chat.ts";
import type { AgentChat } from "./element/agent-chat.ts";
import { ApiKey } from "./session/api-key.ts";
import { parseAgentInfo } from "./session/server.ts";
import { recall } from "./storage/storage.ts";
import { VisualViewportController } from "./ui/controllers/visual-viewport.ts";

const chat = document.querySelector<AgentChat>("agent-chat");
// Data that the server has written into the page (`routes/site.ts`). It is set before the element is drawn.
const { info, images, sites = [] } = JSON.parse(document.querySelector("#page-data")?.textContent ?? "{}");
// A site that no setting names could have visitors press what they cannot see: their stored key is not used there.
const named = [location.origin, ...sites];
ApiKey.isFramed = !sitesAround().every((site) => named.includes(site));
// On other pages the site or the launcher does this.
if (chat) new VisualViewportController(chat, () => chat.renderRoot.querySelector(".chat"));
if (chat && info) Object.assign(chat, { pageInfo: parseAgentInfo(info), images });
if (chat && info?.chat?.conversations === false) chat.conversations = false;
void chat?.updateComplete.then(() => document.querySelector(".splash")?.remove());
// The part of an address after `#`, which browsers send to no server.
const fragment = new URLSearchParams(location.hash.slice(1));
const key = fragment.get("key");
if (chat?.embed && key) chat.apiKey = key;
else if (chat && !chat.embed) {
  countUnseen(chat);
  document.addEventListener("keydown", (event) => passOn(event, chat));
  const token = developerToken(fragment.get("dev"));
  if (token) {
    chat.userToken = recall("parley-dev-user", "sessionStorage");
    void import("./dev/bar.ts").then(({ followAgent }) => followAgent(chat, token));
  }
}

/** The origins of the pages around this frame. Some browsers name only the nearest one, or none: then `null` as a text. */
function sitesAround(): readonly string[] {
  if (location.ancestorOrigins) return [...location.ancestorOrigins];
  return parent === window ? [] : [new URL(document.referrer || "a:").origin];
}

/** The page contains nothing but the chat: keys that are pressed while nothing has the focus are passed on to it. */
function passOn(event: KeyboardEvent, chat: AgentChat): void {
  if (event.target !== document.body) return;
  const same = new KeyboardEvent("keydown", event);
  chat.renderRoot.querySelector(".chat")?.dispatchEvent(same);
  if (same.defaultPrevented) event.preventDefault();
}

/** While the tab is in the background, its title says how many answers are done. */
function countUnseen(chat: AgentChat): void {
  let title = "";
  let unseen = 0;
  const show = (count: number) => {
    if (count === unseen) return;
    // Read now, when its language is known.
    if (unseen === 0) title = document.title;
    unseen = count;
    document.title = count > 0 ? `(${count}) ${title}` : title;
  };
  for (const ended of ["agent-chat-done", "agent-chat-error"]) {
    chat.addEventListener(ended, () => document.hidden && show(unseen + 1));
  }
  document.addEventListener("visibilitychange", () => document.hidden || show(0));
}

/** The token in the address that `parley dev` opens gives access to `/dev/`: this tab stores it, out of sight. */
function developerToken(given: string | null): string | null {
  try {
    if (!given) return sessionStorage.getItem("parley-dev");
    history.replaceState(history.state, "", location.pathname + location.search);
    sessionStorage.setItem("parley-dev", given);
  } catch {
    // The browser keeps nothing for this page.
  }
  return given;
}
