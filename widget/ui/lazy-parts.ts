/** Elements that most chats never need. Each stands in its place, empty, until its code has been loaded. */

import { lazy } from "../loading/lazy.ts";

const feedback = lazy(() => import("./feedback.ts"));
const keyPrompt = lazy(() => import("./key-prompt.ts"));
const upload = lazy(() => import("./upload.ts"));

/** Thumbs on answers: without them an answer is whole, so they may come at any time. */
export async function loadFeedback(signal?: AbortSignal): Promise<void> {
  define("agent-chat-feedback", (await feedback.loadEventually(signal))?.FeedbackElement);
}

/** The form that asks for a key. Rejects if it cannot be loaded, which the person has to know. */
export async function loadKeyPrompt(): Promise<void> {
  define("agent-chat-key-prompt", (await keyPrompt.load()).KeyPromptElement);
}

/** The bar below files that are being sent. Without it they are sent as well; the next file tries again. */
export async function loadUpload(): Promise<void> {
  define("agent-chat-upload", (await upload.load().catch(() => undefined))?.UploadElement);
}

function define(name: string, element: CustomElementConstructor | undefined): void {
  if (element && !customElements.get(name)) customElements.define(name, element);
}
