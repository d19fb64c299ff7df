/** Elements that most chats never need. Each stands in its place, empty, until its code has been loaded. */

import { lazy } from "../loading/lazy.ts";

const PARTS = {
  /** Thumbs on answers. */
  "agent-chat-feedback": lazy(async () => (await import("./feedback.ts")).FeedbackElement),
  /** The form that asks for a key. */
  "agent-chat-key-prompt": lazy(async () => (await import("./key-prompt.ts")).KeyPromptElement),
  /** The bar below files that are being sent. */
  "agent-chat-upload": lazy(async () => (await import("./upload.ts")).UploadElement),
};

/** Rejects where the code cannot be loaded; the next call tries again. */
export async function loadPart(name: keyof typeof PARTS): Promise<void> {
  const element: CustomElementConstructor = await PARTS[name].load();
  if (!customElements.get(name)) customElements.define(name, element);
}

/** For a part without which the chat is whole. */
export function tryToLoadPart(name: keyof typeof PARTS): void {
  loadPart(name).catch(() => undefined);
}
