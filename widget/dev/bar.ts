/**
 * For `parley dev`: shows above the text field why the agent cannot be loaded, updates the page's title with the
 * agent's name, and lets the developer choose which of the module's `devUsers` asks.
 */

import { SseDecoder } from "../../server/protocol/sse.ts";
import type { AgentChat } from "../element/agent-chat.ts";
import { forget, recall, remember } from "../storage/storage.ts";
import { adoptSheets, sheetOf } from "../styles/adopt.ts";
import styles from "../styles/dev-bar.css";

const RETRY_MS = 1_000;
const MAX_EVENT_CHARS = 1_000_000;

/** In `sessionStorage`: the page reads it before the chat asks for the user. */
const DEV_USER = "parley-dev-user";

/** Follows the server's events about the agent's files, until the server was restarted and no longer knows this token. */
export async function followAgent(chat: AgentChat, token: string): Promise<void> {
  const bar = addBar(chat);
  for (;;) {
    const response = await fetch("./dev/events", {
      headers: { authorization: `Bearer ${token}` },
      redirect: "error",
    }).catch(() => undefined);
    if (response?.status === 404) return;
    if (response?.body) await readEvents(response.body, (data) => show(chat, bar, data)).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

function addBar(chat: AgentChat): HTMLElement {
  const bar = document.createElement("div");
  bar.slot = "before-composer";
  bar.className = "dev-bar";
  bar.lang = "en";
  // Present from the start, and empty: screen readers announce only what changes in it.
  const status = document.createElement("div");
  status.role = "status";
  bar.append(status);
  chat.append(bar);
  adoptSheets(bar, [sheetOf(styles)]);
  return bar;
}

interface DevEvent {
  type: string;
  sentence?: string;
  /** Absent without `devUsers`. */
  users?: { token: string; label: string }[];
}

function show(chat: AgentChat, bar: HTMLElement, data: string): void {
  const { type, sentence, users = [] } = JSON.parse(data) as DevEvent;
  const isBroken = type === "broken";
  const [status] = bar.children;
  if (status) status.textContent = isBroken ? `${sentence}\nThe last good agent goes on answering.` : "";
  offerUsers(chat, bar, users);
  if (!isBroken) void takeOver(chat);
}

function offerUsers(chat: AgentChat, bar: HTMLElement, users: readonly { token: string; label: string }[]): void {
  const chosen = recall(DEV_USER, "sessionStorage");
  if (chosen !== undefined && users.length === 0) {
    forget(DEV_USER, "sessionStorage");
    chat.userToken = undefined;
  }
  const offered = JSON.stringify(users);
  if (offered === (bar.dataset.users ?? "[]")) return;
  bar.dataset.users = offered;
  bar.querySelector("label")?.remove();
  if (users.length === 0) return;
  const select = document.createElement("select");
  for (const { token, label } of users) select.add(new Option(label, token));
  // An unknown token selects the first user, as on the server.
  const index = users.findIndex(({ token }) => token === chosen);
  select.selectedIndex = Math.max(index, 0);
  // This tab asks as the user until another one is chosen.
  select.addEventListener("change", () => {
    remember(DEV_USER, select.value, "sessionStorage");
    chat.userToken = select.value;
  });
  const label = document.createElement("label");
  label.append("Ask as ", select);
  bar.append(label);
}

async function takeOver(chat: AgentChat): Promise<void> {
  const info = await chat.client?.refresh();
  if (info) document.title = info.name;
}

async function readEvents(body: ReadableStream<Uint8Array>, onData: (data: string) => void): Promise<void> {
  const decoder = new SseDecoder({ maxChars: MAX_EVENT_CHARS });
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    for (const { data } of decoder.feed(value)) onData(data);
  }
}
