/** Every text that a person can read or hear, in English. A text that depends on something is a function. */

import type { FinishReason } from "../../server/protocol/chat.ts";
import type { Refusal } from "../conversations/messages.ts";
import type { panelTexts } from "./panel-texts.ts";
import type { partTexts } from "./part-texts.ts";

/** At the reader's place: the morning begins at 5, the afternoon at 12, the evening at 18. */
export type PartOfDay = "morning" | "afternoon" | "evening";

const texts = {
  /** A language tag: numbers are written and screen readers pronounce the texts by it. */
  lang: "en",

  conversation: "Conversation",
  /** Spoken where the keyboard enters the conversation. */
  conversationKeys: "Escape or F6 leads to the text field.",
  fallbackAgent: "Assistant",
  newConversation: "New conversation",
  toDark: "Switch to dark theme",
  toLight: "Switch to light theme",
  toAuto: "Follow the system theme",
  forgetKey: "Forget the saved key",
  /** Where neither the agent nor the page says another one. */
  welcome: (part: PartOfDay) =>
    `${{ morning: "Good morning.", afternoon: "Good afternoon.", evening: "Good evening." }[part]} How can I help?`,

  composerLabel: "Message",
  placeholder: (agent: string) => `Message ${agent}`,
  send: "Send message",
  stop: "Stop answering",
  attach: "Attach files",
  jump: "Jump to latest",
  /** On the button to the end, while the answer grows there. */
  writing: (agent: string) => `${agent} is writing`,
  suggestions: "Suggestions",

  you: "You said:",
  agentSaid: (agent: string) => `${agent} said:`,
  answering: "Answering…",
  /** In place of an answer of which nothing is there yet. */
  working: (agent: string) => `${agent} is working`,
  /** Why nothing is sent, or done at all. */
  wentOnElsewhere: "This conversation went on in another tab. Check what is new, then try again.",
  /** Why Enter sends nothing. */
  pendingFull: "Three messages are waiting already. Send them now, or remove one.",
  /** On the button to the end, while the reader is still above. */
  nextAnswering: "Your next question is being answered",
  copy: "Copy",
  copyAnswer: "Copy answer",
  copyMessage: "Copy message",
  copied: "Copied",
  copyFailed: "Copying failed",
  retry: "Try again",
  /** `clock` is a time that counts down, such as "0:18". */
  retryIn: (clock: string) => `Try again in ${clock}`,
  /** After what a failure says: how to find it in the server's log. */
  reference: (id: string) => `(Reference: ${id})`,
  /** Has an answer go on that was cut. */
  continueAnswer: "Continue",
  sendNow: "Send now",
  askAgain: "Answer again",
  editMessage: "Change this message",
  startedOver: "A new conversation.",
  /** Before a button that brings the conversation back. */
  closed: "Conversation closed.",
  undo: "Undo",

  /** The list of conversations that this browser keeps. */
  conversations: "Conversations",
  /** Ends the sentence about a message that waits for the connection. */
  queued: "Waiting to be sent",
  change: "Change",
  withdraw: "Remove",

  stopped: "You stopped this answer.",
  emptyAnswer: "The agent gave an empty answer.",

  unreachable: "The chat server cannot be reached.",
  offline: "You are offline. What you write is kept and sent later.",
  connecting: "Connecting…",
  connected: "Connected again.",
  tryingAgainIn: (seconds: number) => `Trying again in ${seconds} s.`,
  tryNow: "Try now",
  /** The server has another build by now, and no longer the files that this page still needs. */
  outOfDate: "This page is out of date.",
  partsMissing: "A part of this chat could not be loaded. Something may be blocking it.",
  reload: "Reload the page",
  connectionLost: "The connection was lost before the answer was complete.",
  unreadable: "The server sent an answer that this chat cannot read.",
  serverError: "The server could not answer.",

  /** Label of a code block without a language. */
  code: "Code",
  loadImage: (host: string) => `Load image from ${host}`,
  openImage: (host: string) => `Open image at ${host}`,
  /** Name of the button that a picture without a text of its own is. */
  enlargeImage: "Enlarge image",
  imageFailed: "The image could not be loaded",
  taskDone: "Completed task",
  taskOpen: "Open task",

  // Titles of boxes in an answer.
  alertNote: "Note",
  alertTip: "Tip",
  alertImportant: "Important",
  alertWarning: "Warning",
  alertCaution: "Caution",

  // Tool calls that wait for approval.
  checkValue: "Please check this value.",
  /** In the text field, while calls wait. */
  decideOrWrite: "Decide above or write",
  writingDeclines: "If you send this, what is asked above is declined.",

  // Code blocks and tables.
  /** Spoken in place of a long program; the language may be empty. */
  spokenCode: (language: string, lines: number) => `Code, ${language && `${language}, `}${lines} lines`,
  /** Spoken in place of a long table. */
  spokenTable: (columns: number, rows: number) =>
    `Table, ${columns} ${columns === 1 ? "column" : "columns"}, ${rows} rows`,

  // Files, and why some are not taken.
  dropHere: "Drop files to attach them",
  dismiss: "Dismiss",

  fileUnreadable: (names: string) => `${names}: could not be read.`,
  /** After a reload, of a file that was to be sent. */
  fileLost: (names: string) => `${names}: no longer here, please attach again.`,
  /** Spoken when a file was taken. */
  fileAttached: (name: string) => `${name} attached.`,

  /** Below a message that is being changed. */
  editing: "The earlier version stays, with all that follows it.",
  /** Leaves it as it was. */
  cancelEdit: "Cancel",
  /** Spoken when the changed message is sent. */
  edited: "The conversation goes on from the changed message.",

  // What a person thinks of an answer.
  /** Sends this, or a message that was changed. */
  submit: "Send",

  // A conversation that was kept.
  /** In the place of its messages. It is damaged, or not of this version of the chat. */
  notShown: "This conversation was kept by another version and cannot be shown here.",
  earlierCut: "Earlier messages are no longer shown here.",
  notKept: "The browser does not keep this conversation: it is gone when you leave the page or load it again.",
  forgotten: (agent: string) =>
    `${agent} no longer knows what is above, because files are not kept when a page is loaded again.`,
};

/** The texts of one language. */
export type Strings = Texts<typeof texts & typeof partTexts & typeof panelTexts>;

type Texts<Table> = {
  readonly [Name in keyof Table]: Table[Name] extends (...args: infer Args) => string
    ? (...args: Args) => string
    : string;
};

/** English. What only a lazy part says comes with the part. */
export const en = texts as Strings;

/** A translation. English stands in for what it lacks, but a test wants all of it. */
export type Locale = Partial<Strings> & Pick<Strings, "lang">;

/** Texts of a site's own, in place of ours: each as a text or as a function. */
export type StringsOverride = {
  readonly [Name in keyof Omit<Strings, "lang">]?: Strings[Name] | string | (() => string);
};

/**
 * The texts of an element: a site's own before those of the language, and these before English. A function of the site
 * that throws must not stop the chat.
 */
export function stringsOf(locale: Locale, own: StringsOverride | null = {}): Strings {
  // English texts that come later are found in the prototype.
  const strings: Record<string, unknown> = Object.assign(Object.create(en), en, locale);
  for (const [name, text] of Object.entries(own ?? {})) {
    if (text === undefined || text === null || !Object.hasOwn(strings, name) || name === "lang") continue;
    const usual = strings[name];
    const say = (...args: unknown[]): string => {
      try {
        return String(typeof text === "function" ? Reflect.apply(text, undefined, args) : text);
      } catch (error) {
        console.warn(`<agent-chat> strings.${name} has failed:`, error);
        return typeof usual === "function" ? usual(...args) : String(usual);
      }
    };
    strings[name] = typeof usual === "function" ? say : say();
  }
  return strings as Strings;
}

/** Names of texts without a parameter. */
export type TextName = { [Name in keyof Strings]: Strings[Name] extends string ? Name : never }[keyof Strings];

/** What is said of failures; of others, that the server could not answer. Those that come with an answer of the server: `part-texts.ts`. */
export const failures = {
  connection_lost: "connectionLost",
  // The part of the answer that was missing after a lost connection.
  run_not_found: "connectionLost",
  run_expired: "connectionLost",
  unreachable: "unreachable",
  unreadable: "unreadable",
} satisfies Partial<Record<Refusal["code"], TextName>>;

/** What is said of answers that did not end by themselves; of others nothing. Those that were cut: `part-texts.ts`. */
export const endNotes = {
  stop: "",
  // The answer itself says why, or the question does.
  refused: "",
  approval_required: "",
  stopped: "stopped",
} satisfies Partial<Record<FinishReason, TextName | "">>;

/** The server's sentences about these are for those who write clients. */
const TECHNICAL =
  /^(invalid|unsupported|attachment|request|approval)_|^(run_(not_found|expired)|not_found|method_not_allowed)$/;

/**
 * Why an answer failed. Where the chat speaks the server's language, and the page has no text of its own, the server's
 * sentence replaces ours, because it knows more. After it, in brackets, a server on a loopback address names the cause for
 * its operator, which is kept.
 */
export function failureText({ code, retryable, detail = "" }: Refusal, strings: Strings): string {
  const needsOwner = !retryable && /^provider_(error|rate_limited)$/.test(code);
  const name = needsOwner ? "ownerNeeded" : ((failures as Partial<Record<string, TextName>>)[code] ?? "serverError");
  if (detail && strings[name] === en[name] && !TECHNICAL.test(code)) return detail;
  return (strings[name] ?? strings.serverError) + (/ \(.+\)$/s.exec(detail)?.[0] ?? "");
}
