/** Elements that not every chat needs. Each is in its place, but empty, until its code is loaded. */

import { lazy } from "../loading/lazy.ts";
import { definePart, type LazyElement } from "./chat-part.ts";
import type { ChatContext } from "./context.ts";

/** Notes on the files in the composer. */
export const fileNotes = lazy(() => import("./file-notes.ts"), "FileNotesElement");

/** Buttons for an answer that has failed. */
export const waysOn = lazy(() => import("./ways-on.ts"), "WaysOnElement");

/** Styles for printing, very low pages and the like. */
export const lateStyles = lazy(() => import("./late-styles.ts"), "lateSheets");

/** Each module exports its element. The elements that draw blocks of answers are in `blocks.ts`. */
const PARTS = {
  /** Buttons to switch between alternatives of a message. */
  "agent-chat-alternatives": lazy(() => import("./alternatives.ts"), "AlternativesElement"),
  "agent-chat-files": lazy(() => import("./files.ts"), "FilesElement"),
  "agent-chat-file-notes": fileNotes,
  /** The button that unfolds a long message. */
  "agent-chat-message-fold": lazy(() => import("./message-fold.ts"), "MessageFoldElement"),
  "agent-chat-feedback": lazy(() => import("./feedback.ts"), "FeedbackElement"),
  "agent-chat-conversations": lazy(() => import("./conversation-list.ts"), "ConversationListElement"),
  /** The sources of an answer. */
  "agent-chat-sources": lazy(() => import("./sources.ts"), "SourcesElement"),
  /** Messages that wait for the end of an answer. */
  "agent-chat-pending": lazy(() => import("./pending.ts"), "PendingElement"),
  "agent-chat-ways-on": waysOn,
  "agent-chat-key-prompt": lazy(() => import("./key-prompt.ts"), "KeyPromptElement"),
};

const lightbox = lazy(() => import("./lightbox.ts"), "showLarge");

/** Images that open, buttons with an image, and the buttons that enlarge wide tables and programs. */
const OPENERS = "img.image[role], .sent-files button, .pictures button, .enlarge";

/** Enlarges what was pressed. Does nothing if the code cannot be loaded now. */
export async function openLarge({ target }: Event, { strings }: ChatContext): Promise<void> {
  const opener = (target as Element).closest(OPENERS);
  const module = opener && (await lightbox.load().catch(() => undefined));
  if (opener?.isConnected) module?.showLarge(opener, OPENERS, strings);
}

type PartName = keyof typeof PARTS;

/** Tags of the elements that are being loaded or have been. */
const wanted = new Set<string>();

/** Rejects if the code cannot be loaded; the next call tries again. */
export async function loadPart(name: PartName): Promise<void> {
  define(name, await PARTS[name].load());
}

export function loadPartEventually(name: PartName): Promise<void> {
  return loadElement({ tag: name, module: PARTS[name] });
}

/** Loads an element once for the whole page, and tries again after failures. */
export async function loadElement({ tag, module }: LazyElement): Promise<void> {
  if (wanted.has(tag)) return;
  wanted.add(tag);
  define(tag, await module.loadEventually());
}

function define(tag: string, module: object = {}): void {
  const [element] = Object.values(module);
  if (element) definePart(tag, element);
}
