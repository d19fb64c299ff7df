/** Under `parley dev`: shows above the text field why the agent cannot be loaded, and what a new agent calls itself. */

import { SseDecoder } from "../../server/protocol/sse.ts";
import type { AgentChat } from "../element/agent-chat.ts";
import { adoptSheet, sheetOf } from "../styles/adopt.ts";
import styles from "../styles/dev-bar.css";

const RETRY_MS = 1_000;
const MAX_EVENT_CHARS = 1_000_000;

/** Follows what the server says of the agent's files until it no longer knows this token: it has been started anew. */
export async function followAgent(chat: AgentChat, token: string): Promise<void> {
  const bar = addBar(chat);
  for (;;) {
    const response = await fetch("./dev/events", { headers: { authorization: `Bearer ${token}` } }).catch(
      () => undefined,
    );
    if (response?.status === 404) return;
    if (response?.body) await readEvents(response.body, (data) => show(chat, bar, data)).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/** There from the start, and empty: only what changes in it is spoken. */
function addBar(chat: AgentChat): HTMLElement {
  const bar = document.createElement("div");
  bar.slot = "before-composer";
  bar.className = "dev-bar";
  bar.role = "status";
  chat.append(bar);
  adoptSheet(bar, sheetOf(styles));
  return bar;
}

function show(chat: AgentChat, bar: HTMLElement, data: string): void {
  const event = JSON.parse(data) as { type: string; sentence?: string };
  const isBroken = event.type === "broken";
  bar.textContent = isBroken ? `${event.sentence}\nThe last good agent goes on answering.` : "";
  if (!isBroken) void takeOver(chat);
}

async function takeOver(chat: AgentChat): Promise<void> {
  const info = await chat.refreshInfo();
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
