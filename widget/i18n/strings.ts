/** Texts that users read or hear, in English; more are in `part-texts.ts`. A text with parameters is a function. */

import type { FinishReason } from "../../server/protocol/chat.ts";
import type { Refusal } from "../conversations/messages.ts";
import type { panelTexts } from "./panel-texts.ts";
import type { partTexts } from "./part-texts.ts";

/** In the reader's time zone: the morning begins at 5, the afternoon at 12, the evening at 18. */
export type PartOfDay = "morning" | "afternoon" | "evening";

const texts = {
  /** The language tag by which numbers are formatted and screen readers pronounce the texts. */
  lang: "en",

  conversation: "Conversation",
  /** Spoken when the keyboard's focus enters the conversation. */
  conversationKeys: "Escape or F6 leads to the text field.",
  fallbackAgent: "Assistant",
  newConversation: "New conversation",
  toDark: "Switch to dark theme",
  toLight: "Switch to light theme",
  toAuto: "Follow the system theme",
  forgetKey: "Forget the saved key",
  /** The greeting, unless the agent or the page has another one. */
  welcome: (part: PartOfDay) =>
    `${{ morning: "Good morning.", afternoon: "Good afternoon.", evening: "Good evening." }[part]} How can I help?`,

  composerLabel: "Message",
  placeholder: (agent: string) => `Message ${agent}`,
  send: "Send message",
  stop: "Stop answering",
  attach: "Attach files",
  jump: "Jump to latest",
  /** On the button that jumps to the end, while the answer grows there. */
  writing: (agent: string) => `${agent} is writing`,
  suggestions: "Suggestions",

  you: "You said:",
  agentSaid: (agent: string) => `${agent} said:`,
  answering: "Answering…",
  /** In place of an answer that has not begun. */
  working: (agent: string) => `${agent} is working`,
  /** Why nothing was sent or changed. */
  wentOnElsewhere: "This conversation went on in another tab. Check what is new, then try again.",
  /** Why Enter does not send the message. */
  pendingFull: "Three messages are waiting already. Send them now, or remove one.",
  /** On the button that jumps to the end, while the reader is still above. */
  nextAnswering: "Your next question is being answered",
  copy: "Copy",
  copyAnswer: "Copy answer",
  copyMessage: "Copy message",
  copied: "Copied",
  copyFailed: "Copying failed",
  retry: "Try again",
  /** `clock` is a time that counts down, such as "0:18". */
  retryIn: (clock: string) => `Try again in ${clock}`,
  /** After the text of a failure: how to find it in the server's log. */
  reference: (id: string) => `(Reference: ${id})`,
  /** Continues an answer that was cut off. */
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
  /** About a message that waits for the connection. */
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
  /** The server has another build now, without the files that this page still needs. */
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
  /** Accessible name of an image without alternative text, which is a button. */
  enlargeImage: "Enlarge image",
  imageFailed: "The image could not be loaded",
  taskDone: "Completed task",
  taskOpen: "Open task",

  // Titles of alerts in an answer.
  alertNote: "Note",
  alertTip: "Tip",
  alertImportant: "Important",
  alertWarning: "Warning",
  alertCaution: "Caution",

  // Tool calls that wait for approval.
  checkValue: "Please check this value.",
  /** Placeholder of the text field while calls wait. */
  decideOrWrite: "Decide above or write",
  writingDeclines: "If you send this, what is asked above is declined.",

  // Code blocks and tables.
  /** Spoken in place of a long code block; the language may be empty. */
  spokenCode: (language: string, lines: number) => `Code, ${language && `${language}, `}${lines} lines`,
  /** Spoken in place of a long table. */
  spokenTable: (columns: number, rows: number) =>
    `Table, ${columns} ${columns === 1 ? "column" : "columns"}, ${rows} rows`,

  // Files, and why some are refused.
  dropHere: "Drop files to attach them",
  dismiss: "Dismiss",

  fileUnreadable: (names: string) => `${names}: could not be read.`,
  /** After a reload, about a file that was to be sent. */
  fileLost: (names: string) => `${names}: no longer here, please attach again.`,
  /** Spoken when a file was attached. */
  fileAttached: (name: string) => `${name} attached.`,

  /** Below a message that is being edited. */
  editing: "The earlier version stays, with all that follows it.",
  /** Leaves the message as it was. */
  cancelEdit: "Cancel",
  /** Spoken when the changed message is sent. */
  edited: "The conversation goes on from the changed message.",

  // Ratings of answers.
  /** Sends a rating, or an edited message. */
  submit: "Send",

  // Stored conversations.
  /** In place of the messages, which are damaged or from another version of the chat. */
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

/** English. The texts of lazy parts are added when those parts are loaded. */
export const en = texts as Strings;

/** A translation. English replaces missing texts, but a test requires all of them. */
export type Locale = Partial<Strings> & Pick<Strings, "lang">;

/** A site's own texts, which replace the built-in ones: each a text or a function. */
export type StringsOverride = {
  readonly [Name in keyof Omit<Strings, "lang">]?: Strings[Name] | string | (() => string);
};

/**
 * The texts of an element: the site's own, else those of the language, else English. If a function of the site throws,
 * the built-in text is used.
 */
export function stringsOf(locale: Locale, own: StringsOverride | null = {}): Strings {
  // English texts that are loaded later are found in the prototype.
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

/** Texts of failures; other codes have `serverError`. Those that a server's answer reports: `add-part-texts.ts`. */
export const failures = {
  connection_lost: "connectionLost",
  // The rest of an answer could not be resumed after a lost connection.
  run_not_found: "connectionLost",
  run_expired: "connectionLost",
  unreachable: "unreachable",
  unreadable: "unreadable",
} satisfies Partial<Record<Refusal["code"], TextName>>;

/** Notes below answers, by finish reason; empty for none. Notes below cut-off answers: `add-part-texts.ts`. */
export const endNotes = {
  stop: "",
  // The answer itself, or the question about approval, says why.
  refused: "",
  approval_required: "",
  stopped: "stopped",
} satisfies Partial<Record<FinishReason, TextName | "">>;

/** Codes whose sentences from the server are meant for developers of clients. */
const TECHNICAL =
  /^(invalid|unsupported|attachment|request|approval)_|^(run_(not_found|expired)|not_found|method_not_allowed)$/;

/**
 * Why an answer failed. The server's sentence, which is more precise, replaces ours if the chat is in the server's
 * language and the page has no text of its own. A server on a loopback address appends the cause in brackets for its
 * operator: that is kept in any case.
 */
export function failureText({ code, retryable, detail = "" }: Refusal, strings: Strings): string {
  const needsOwner = !retryable && /^provider_(error|rate_limited)$/.test(code);
  const name = needsOwner ? "ownerNeeded" : ((failures as Partial<Record<string, TextName>>)[code] ?? "serverError");
  if (detail && strings[name] === en[name] && !TECHNICAL.test(code)) return detail;
  return (strings[name] ?? strings.serverError) + (/ \(.+\)$/s.exec(detail)?.[0] ?? "");
}
