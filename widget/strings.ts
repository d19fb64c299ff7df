/**
 * Every text that a person can read or hear, in English, and the table that is in use. What only a chunk says comes with it,
 * from `texts/`.
 *
 * Views read `strings` while they draw, and never keep one of its texts outside of a function: it is another table when the
 * element speaks another language.
 */

import type { editingTexts } from "./texts/editing.ts";
import type { feedbackTexts } from "./texts/feedback.ts";
import type { fileTexts } from "./texts/files.ts";
import type { keepTexts } from "./texts/keep.ts";
import type { keyFormTexts } from "./texts/key-form.ts";
import type { launcherTexts } from "./texts/launcher.ts";
import type { stepTexts } from "./texts/steps.ts";
import type { boxToolTexts } from "./texts/tools.ts";

const texts = {
  /** A language tag: how numbers are written, and what screen readers are told. */
  lang: "en",

  conversation: "Conversation",
  fallbackAgent: "Assistant",
  newConversation: "New conversation",
  toDark: "Switch to dark theme",
  toLight: "Switch to light theme",
  forgetKey: "Forget the saved key",
  welcome: "How can I help?",

  composerLabel: "Message",
  placeholder: (agent: string) => `Message ${agent}`,
  send: "Send message",
  stop: "Stop answering",
  attach: "Attach files",
  jump: "Jump to latest",
  newAnswers: (count: number) => (count === 1 ? "1 new answer" : `${count} new answers`),
  suggestions: "Suggestions",

  you: "You said:",
  agentSaid: (agent: string) => `${agent} said:`,
  answering: "Answering…",
  thinking: "Thinking",
  /** Spoken when the agent calls a tool. */
  toolStarted: (tool: string) => `Using ${tool}…`,
  toolRunning: "running",
  toolCompleted: "completed",
  toolFailed: "failed",
  toolStopped: "stopped",
  copy: "Copy",
  copyAnswer: "Copy answer",
  copied: "Copied",
  copyFailed: "Your browser did not allow copying.",
  copyingFailed: "Copying failed",
  retry: "Try again",
  /** After what a failure says: how to find it in the server's log. */
  reference: (id: string) => `(Reference: ${id})`,
  startOver: "Send without the earlier messages",
  askAgain: "Answer again",
  editMessage: "Change this message",
  begunAnew: "A new conversation.",
  /** Ends the sentence about a message that waits for the connection. */
  queued: "Waiting to be sent",
  change: "Change",
  takeBack: "Remove",

  stopped: "You stopped this answer.",
  cutByLength: "This answer was cut off because it reached the length limit.",
  cutByFilter: "This answer was cut off by the content filter.",
  cutByTurns: "The agent stopped because it reached its limit of steps.",
  emptyAnswer: "The agent gave an empty answer.",

  siteKeyRefused: "This site’s chat key was not accepted. Please tell the owner of the site.",
  siteForbidden: "This chat may not be used on this site.",

  unreachable: "The chat server cannot be reached.",
  offline: "You are offline. What you write is kept and sent later.",
  connecting: "Connecting…",
  connected: "Connected again.",
  tryingAgainIn: (seconds: number) => `Trying again in ${seconds} s.`,
  tryNow: "Try now",
  connectionLost: "The connection was lost before the answer was complete.",
  unreadable: "The server sent an answer that this chat cannot read.",
  requestTooLarge: "The message is too large for this server.",
  rateLimited: "Too many messages in a short time. Try again in a moment.",
  serverError: "The server could not answer.",

  /** Label of a code block without a language. */
  code: "Code",
  loadImage: (host: string) => `Load image from ${host}`,
  openImage: (host: string) => `Open image at ${host}`,
  imageFailed: "The image could not be loaded",
  taskDone: "Completed task",
  taskOpen: "Open task",
};

/** The texts of one language. Whatever has no parameter is a text, everything else a function that makes one. */
export type Strings = typeof texts &
  typeof boxToolTexts &
  typeof editingTexts &
  typeof feedbackTexts &
  typeof fileTexts &
  typeof keepTexts &
  typeof keyFormTexts &
  typeof launcherTexts &
  typeof stepTexts;

/** It has the texts of a chunk as soon as there is that chunk, which alone reads them. */
export const english = texts as Strings;

/** Texts of a site's own, in place of ours. */
export type StringsOverride = Partial<Omit<Strings, "lang">>;

/** A translation. What it lacks is said in English, but a test wants all of it. */
export type Locale = Partial<Strings> & Pick<Strings, "lang">;

/** The names of texts without a parameter. */
export type TextName = {
  [K in keyof Strings]: Strings[K] extends string ? K : never;
}[keyof Strings];

/** The table of the element that is drawn at the moment. */
export let strings: Readonly<Strings> = english;

/** To be called before an element draws or speaks. */
export function useStrings(table: Readonly<Strings>): void {
  strings = table;
}
