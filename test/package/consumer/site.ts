/** A site that uses the elements by script: their types need neither Lit nor a framework. */

import type { AgentChat, AgentChatDoneEvent, Strings } from "parley-agent/widget";

const chat: AgentChat = document.createElement("agent-chat");
chat.server = "https://chat.example";
chat.theme = "dark";
chat.strings = { send: "Go", placeholder: (agent) => `Ask ${agent}` };
chat.addEventListener("agent-chat-done", (event) => event.finishReason.toUpperCase());
chat.addEventListener("click", (event) => event.clientX);
await chat.send("Hello");
const text: string = await chat.exportTranscript("markdown");
document.querySelector("agent-chat-launcher")?.chat?.setDraft(text);
document.body.append(chat);

// @ts-expect-error: there is no such theme.
chat.theme = "blue";
// @ts-expect-error: nothing of Lit is part of the interface.
chat.requestUpdate();

export type Used = [AgentChatDoneEvent["text"], Strings["send"]];
