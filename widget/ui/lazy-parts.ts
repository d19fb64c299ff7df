/** Elements that not every chat needs. Each stands in its place, empty, until its code has been loaded. */

import { lazy } from "../loading/lazy.ts";
import { definePart, type LazyElement } from "./chat-part.ts";
import type { ChatContext } from "./context.ts";

/** What is said of files in the composer. */
export const fileNotes = lazy(() => import("./file-notes.ts"), "FileNotesElement");

/** What can be done about an answer that has failed. */
export const waysOn = lazy(() => import("./ways-on.ts"), "WaysOnElement");

/** How a conversation is printed, and a very low page is read. */
export const lateStyles = lazy(() => import("./late-styles.ts"), "lateSheets");

/** Each of these modules exports its element. Those that draw blocks of answers are in `blocks.ts`. */
const PARTS = {
  /** The way to what else stands in the place of a message. */
  "agent-chat-alternatives": lazy(() => import("./alternatives.ts"), "AlternativesElement"),
  /** Files of messages. */
  "agent-chat-files": lazy(() => import("./files.ts"), "FilesElement"),
  "agent-chat-file-notes": fileNotes,
  /** What opens long messages. */
  "agent-chat-message-fold": lazy(() => import("./message-fold.ts"), "MessageFoldElement"),
  /** Thumbs on answers. */
  "agent-chat-feedback": lazy(() => import("./feedback.ts"), "FeedbackElement"),
  /** The list of conversations. */
  "agent-chat-conversations": lazy(() => import("./conversation-list.ts"), "ConversationListElement"),
  /** What answers rest on. */
  "agent-chat-sources": lazy(() => import("./sources.ts"), "SourcesElement"),
  /** Messages that wait for the end of an answer. */
  "agent-chat-pending": lazy(() => import("./pending.ts"), "PendingElement"),
  /** What can be done about an answer that has failed. */
  "agent-chat-ways-on": waysOn,
  /** The form that asks for a key. */
  "agent-chat-key-prompt": lazy(() => import("./key-prompt.ts"), "KeyPromptElement"),
};

const lightbox = lazy(() => import("./lightbox.ts"), "showLarge");

/** Images that open, and buttons with one; the buttons of wide tables and programs. */
const OPENERS = "img.image[role], .sent-files button, .pictures button, .enlarge";

/** Shows large what was pressed; not later, if the code cannot be loaded now. */
export async function openLarge({ target }: Event, { strings }: ChatContext): Promise<void> {
  const opener = (target as Element).closest(OPENERS);
  const module = opener && (await lightbox.load().catch(() => undefined));
  if (opener?.isConnected) module?.showLarge(opener, OPENERS, strings);
}

type PartName = keyof typeof PARTS;

/** Tags of the elements that are being loaded, or were. */
const wanted = new Set<string>();

/** Rejects where the code cannot be loaded; the next call tries again. */
export async function loadPart(name: PartName): Promise<void> {
  define(name, await PARTS[name].load());
}

export function loadPartEventually(name: PartName): Promise<void> {
  return loadElement({ tag: name, module: PARTS[name] });
}

/** Loads an element for the whole page, however often that has to be tried. */
export async function loadElement({ tag, module }: LazyElement): Promise<void> {
  if (wanted.has(tag)) return;
  wanted.add(tag);
  define(tag, await module.loadEventually());
}

function define(tag: string, module: object = {}): void {
  const [element] = Object.values(module);
  if (element) definePart(tag, element);
}
