/** Every text that a person can read or hear, in English. A text that depends on something is a function. */

import type { Refusal, ToolBlock, ToolStatus } from "../session/messages.ts";

export const en = {
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
  welcome: "How can I help?",

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
  // Messages that were written while an answer is running.
  pending: (agent: string) => `Sent when ${agent} is done`,
  /** In place of the rest of the answer. */
  sendNow: "Send now",
  /** On a button: the answer was stopped, or has failed. */
  sendAnyway: "Send anyway?",
  /** Why Enter sends nothing. */
  pendingFull: "Three messages are waiting already. Send them now, or remove one.",
  /** On the button to the end, while the reader is still above. */
  nextAnswering: "Your next question is being answered",
  thinking: "Thinking",
  /** Spoken when the agent calls a tool. */
  toolStarted: (tool: string) => `Using ${tool}…`,
  /** Spoken when it calls several together. */
  toolsStarted: (count: number) => `Using ${count} tools…`,
  /** Spoken when they are over. */
  toolsEnded: (completed: number, failed: number) =>
    failed > 0 ? `${completed} done, ${failed} failed` : `${completed} done`,
  toolRunning: "running",
  toolCompleted: "completed",
  toolFailed: "failed",
  toolStopped: "stopped",
  /** The call needs the person's approval. */
  toolWaiting: "waiting for approval",
  copy: "Copy",
  copyAnswer: "Copy answer",
  copyMessage: "Copy message",
  copied: "Copied",
  copyFailed: "Copying failed",
  retry: "Try again",
  /** `clock` is a time that counts down, such as "0:18". */
  retryIn: (clock: string) => `Try again in ${clock}`,
  /** Copies what the owner of the site needs to find a failure. */
  copyReport: "Copy report",
  /** After what a failure says: how to find it in the server's log. */
  reference: (id: string) => `(Reference: ${id})`,
  /** Has an answer go on that was cut. */
  continueAnswer: "Continue",
  startOver: "Send without the earlier messages",
  askAgain: "Answer again",
  editMessage: "Change this message",
  /** Answers to one message, and a message as it was changed: which one is shown. */
  answerOf: (number: number, count: number) => `Answer ${number} of ${count}`,
  messageOf: (number: number, count: number) => `Message ${number} of ${count}`,
  previous: "Previous",
  next: "Next",
  startedOver: "A new conversation.",
  /** Before a button that brings the conversation back. */
  closed: "Conversation closed.",
  undo: "Undo",

  /** The list of conversations that this browser keeps. */
  conversations: "Conversations",
  closeList: "Close the list",
  searchConversations: "Search",
  nothingFound: "Nothing found.",
  conversationsFound: (count: number) => `Results: ${count}`,
  /** The dot beside a conversation whose answer is coming, or has come while another one was shown. */
  unreadAnswer: "Answer not read yet",
  conversationOptions: (title: string) => `Options for “${title}”`,
  rename: "Rename",
  exportConversation: "Export",
  deleteConversation: "Delete",
  deleted: "Conversation deleted.",
  keptHere: "Kept in this browser only.",
  forgetAll: "Forget everything",
  forgetAllSure: (count: number) =>
    count === 1 ? "Delete this conversation for good?" : `Delete all ${count} conversations for good?`,
  keepConversations: "Keep",
  /** There are too many: old ones were deleted. */
  conversationsDropped: (count: number) =>
    count === 1
      ? "The oldest conversation was deleted to make room."
      : `The ${count} oldest conversations were deleted to make room.`,
  /** Ends the sentence about a message that waits for the connection. */
  queued: "Waiting to be sent",
  change: "Change",
  withdraw: "Remove",

  stopped: "You stopped this answer.",
  stoppedAtLengthLimit: "This answer was cut off because it reached the length limit.",
  stoppedByFilter: "This answer was cut off by the content filter.",
  stoppedAtTurnLimit: "The agent stopped because it reached its limit of steps.",
  emptyAnswer: "The agent gave an empty answer.",

  siteKeyRefused: "This site has no valid chat key. Please tell the owner of the site.",
  siteForbidden: "This chat may not be used on this site.",
  signInNeeded: "Please sign in to write here.",
  userUnknown: "It could not be checked who you are. Please try again.",

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
  requestTooLarge: "The message is too large for this server.",
  rateLimited: "Too many messages in a short time. Try again in a moment.",
  serverError: "The server could not answer.",

  // Why an answer failed, where the server said nothing, or in another language.
  conversationTooLong: "This conversation is too long. Start a new one, or send less.",
  conversationUnknown: "The agent no longer knows this conversation.",
  messageRefused: "The agent does not take this message or one of its files.",
  messageFiltered: "This message was refused under a usage policy.",
  ownerNeeded: "The agent cannot answer. Please tell the owner of this site.",
  overloaded: "The agent cannot answer right now. Try again in a moment.",
  tookTooLong: "The answer took too long.",
  brokenOff: "The answer broke off before its end.",
  approvalUsed: "This was decided already, perhaps in another tab.",
  approvalExpired: "This request is no longer valid.",

  /** Label of a code block without a language. */
  code: "Code",
  loadImage: (host: string) => `Load image from ${host}`,
  openImage: (host: string) => `Open image at ${host}`,
  /** Name of the button that a picture without a text of its own is. */
  enlargeImage: "Enlarge image",
  previousImage: "Previous image",
  nextImage: "Next image",
  imageFailed: "The image could not be loaded",
  taskDone: "Completed task",
  taskOpen: "Open task",
  footnotes: "Footnotes",
  /** From a footnote to where the text refers to it. */
  backToText: (number: number) => `Back to the text, footnote ${number}`,

  // Titles of boxes in an answer.
  alertNote: "Note",
  alertTip: "Tip",
  alertImportant: "Important",
  alertWarning: "Warning",
  alertCaution: "Caution",

  // Thoughts and tool calls.
  thoughtBriefly: "Thought briefly",
  thoughtFor: (duration: string) => `Thought for ${duration}`,
  /** Thoughts and tool calls in a row, folded into one line. At least three. */
  steps: (count: number) => `${count} steps`,
  /** How many of them failed, beside their number. At least one. */
  stepsFailed: (count: number) => `${count} failed`,
  /** `size` is that of the whole text, of which only the beginning is shown. */
  showAll: (size: string) => `Show all (${size})`,
  toolArguments: "Arguments",
  toolOutput: "Output",
  toolError: "Error",
  emptyOutput: "(empty)",

  // Tool calls that wait for approval.
  approve: "Approve",
  decline: "Decline",
  approveAll: "Approve all",
  whyDeclined: "Why? (optional)",
  details: "Details",
  /** Has the agent ask once more what can no longer be decided. */
  askMeAgain: "Ask again",
  /** What is sent for that. */
  pleaseAskAgain: "Please ask me again.",
  checkValue: "Please check this value.",
  // In place of what would push the end of a value out of view. At least three, and more than a line has.
  emptyLines: (count: number) => `${count} empty lines`,
  spaces: (count: number) => `${count} spaces`,
  /** What `true` and `false` are called. */
  yes: "Yes",
  no: "No",
  needsDecision: (agent: string) => `${agent} needs your decision`,
  /** In the text field, while calls wait. */
  decideOrWrite: "Decide above, or write to do something else",
  writingDeclines: "If you send this, what is asked above is declined.",
  /** Beside the tool's name. `time` is that of a clock, such as "14:02". */
  approvedAt: (time: string) => `approved by you at ${time}`,
  declinedAt: (time: string) => `declined by you at ${time}`,

  // Code blocks and tables.
  wrapLines: "Wrap lines",
  showAllLines: (lines: number) => `Show all ${lines} lines`,
  showFewerLines: "Show fewer lines",
  showAllRows: (rows: number) => `Show all ${rows} rows`,
  showFewerRows: "Show fewer rows",
  /** Spoken in place of a long program; the language may be empty. */
  spokenCode: (language: string, lines: number) => `Code, ${language && `${language}, `}${lines} lines`,
  /** Spoken in place of a long table. */
  spokenTable: (columns: number, rows: number) =>
    `Table, ${columns} ${columns === 1 ? "column" : "columns"}, ${rows} rows`,
  copyAsMarkdown: "Copy as Markdown",
  copyAsCsv: "Copy as CSV",
  /** Shows a wide table or program in the whole window. */
  enlarge: "Enlarge",
  /** Accessible name of a table's scroll box. */
  table: "Table",

  // Files, and why some are not taken.
  dropHere: "Drop files to attach them",
  attachedFiles: "Attached files",
  /** Before a number of per cent. */
  uploading: "Sending the files…",
  remove: (name: string) => `Remove ${name}`,
  dismiss: "Dismiss",

  noFilesTaken: (agent: string) => `${agent} does not take files.`,
  fileTooLarge: (names: string, limit: string) => `${names}: larger than ${limit}.`,
  fileAlreadyAttached: (names: string) => `${names}: attached already.`,
  fileEmpty: (names: string) => `${names}: empty.`,
  fileUnreadable: (names: string) => `${names}: could not be read.`,
  /** After a reload, of a file that was to be sent. */
  fileLost: (names: string) => `${names}: no longer here, please attach again.`,
  /** Spoken when a file was taken. */
  fileAttached: (name: string) => `${name} attached.`,
  /** `types` is a list in words. */
  fileTypeRefused: (names: string, types: string) => `${names}: only ${types} files are taken.`,
  fileTypeFalse: (names: string, type: string) => `${names}: not a ${type} file, whatever the name says.`,
  /** `limit` is what is left for the files of the message, which may be less in a long conversation. */
  filesTooLarge: (names: string, limit: string) =>
    `${names}: not attached, the files of this message may have ${limit} together.`,
  tooManyFiles: (names: string, limit: number) =>
    `${names}: not attached, a message takes at most ${limit} ${limit === 1 ? "file" : "files"}.`,

  /** Below a message that is being changed. */
  editing: "The earlier version stays, with all that follows it.",
  /** Leaves it as it was. */
  cancelEdit: "Cancel",
  /** Spoken when the changed message is sent. */
  edited: "The conversation goes on from the changed message.",

  // What a person thinks of an answer.
  rateUp: "Good answer",
  rateDown: "Bad answer",
  feedbackQuestion: "What was wrong? (optional)",
  reasonIncorrect: "Not correct",
  reasonIncomplete: "Incomplete",
  reasonOffTopic: "Not what I asked for",
  reasonHarmful: "Harmful",
  feedbackComment: "In your own words",
  /** Sends this, or a message that was changed. */
  submit: "Send",
  feedbackClose: "Close",
  feedbackThanks: "Thank you.",

  // A conversation that was kept.
  /** In the place of its messages. It is damaged, or not of this version of the chat. */
  notShown: "This conversation was kept by another version and cannot be shown here.",
  storageFailed: "The browser could not do this. Please try again.",
  earlierCut: "Earlier messages are no longer shown here.",
  notKept: "The browser does not keep this conversation: it is gone when you leave the page or load it again.",
  forgotten: (agent: string) =>
    `${agent} no longer knows what is above, because files are not kept when a page is loaded again.`,

  // The form that asks for a key.
  keyTitle: "Enter your key",
  keyReason: (name: string, kept: boolean) =>
    `${name} asks for an access key. ${kept ? "It is kept in this browser only." : "This browser does not let it be kept, so you will be asked again on your next visit."}`,
  keyLabel: "Access key",
  keySubmit: "Continue",
  keyChecking: "Checking…",
  keyRefused: "That key was not accepted. Check it and enter it again.",
  keyForbidden: "That key may not be used on this page. Enter another one.",
  keyWaiting: "Your message will be sent as soon as the key is accepted.",

  // The launcher.
  openChat: "Open chat",
  closeChat: "Close chat",
  chatPanel: "Chat",
  expand: "Enlarge chat",
  shrink: "Make chat smaller",
  unread: (count: number) => (count === 1 ? "1 new message" : `${count} new messages`),
  hidePreview: "Hide this message",
};

/** The texts of one language. */
export type Strings = Texts<typeof en>;

type Texts<Table> = {
  readonly [Name in keyof Table]: Table[Name] extends (...args: infer Args) => string
    ? (...args: Args) => string
    : string;
};

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
  const strings: Record<string, unknown> = { ...en, ...locale };
  for (const [name, text] of Object.entries(own ?? {})) {
    if (text === undefined || text === null || !Object.hasOwn(en, name) || name === "lang") continue;
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

/** What is said of each failure. */
const FAILURES: Record<Refusal["code"], TextName> = {
  connection_lost: "connectionLost",
  // The part of the answer that was missing after a lost connection.
  run_not_found: "connectionLost",
  run_expired: "connectionLost",
  unreachable: "unreachable",
  unreadable: "unreadable",
  request_too_large: "requestTooLarge",
  attachment_too_large: "requestTooLarge",
  rate_limited: "rateLimited",
  unauthorized: "siteKeyRefused",
  forbidden: "siteForbidden",
  login_required: "signInNeeded",
  user_unknown: "userUnknown",
  invalid_request: "messageRefused",
  invalid_json: "messageRefused",
  invalid_attachment: "messageRefused",
  unsupported_attachment: "messageRefused",
  unsupported_media_type: "messageRefused",
  content_filtered: "messageFiltered",
  context_too_long: "conversationTooLong",
  conversation_expired: "conversationUnknown",
  invalid_state: "conversationUnknown",
  request_timeout: "tookTooLong",
  provider_timeout: "tookTooLong",
  provider_truncated: "brokenOff",
  run_lost: "brokenOff",
  approval_used: "approvalUsed",
  approval_expired: "approvalExpired",
  provider_auth: "ownerNeeded",
  provider_rate_limited: "overloaded",
  provider_overloaded: "overloaded",
  overloaded: "overloaded",
  shutting_down: "overloaded",
  run_in_progress: "overloaded",
  provider_error: "serverError",
  internal: "serverError",
  not_found: "serverError",
  method_not_allowed: "serverError",
};

/** The server's sentences about these are for those who write clients. */
const TECHNICAL =
  /^(invalid|unsupported|attachment|request|approval)_|^(run_(not_found|expired)|not_found|method_not_allowed)$/;

/**
 * Why an answer failed. Where the chat speaks the server's language, and the page has no text of its own, the server's
 * sentence stands for ours: it knows more. Behind it, in brackets, a server on a loopback address names the cause for
 * its operator, which is kept.
 */
export function failureText({ code, retryable, detail = "" }: Refusal, strings: Strings): string {
  const needsOwner = !retryable && /^provider_(error|rate_limited)$/.test(code);
  const name = needsOwner ? "ownerNeeded" : (FAILURES[code] ?? "serverError");
  if (detail && strings[name] === en[name] && !TECHNICAL.test(code)) return detail;
  return strings[name] + (/ \(.+\)$/s.exec(detail)?.[0] ?? "");
}

const TOOL_STATUSES = {
  running: "toolRunning",
  completed: "toolCompleted",
  failed: "toolFailed",
  stopped: "toolStopped",
  waiting: "toolWaiting",
} as const satisfies Record<ToolStatus, TextName>;

/** What people read of a call: what its tool's author says, in their language, else the name in words. */
export function toolName({ tool, title, status }: ToolBlock, { lang }: Strings): string {
  const words = tool.replace(/[_-]+/g, " ");
  if (!title) return words[0]?.toUpperCase() + words.slice(1);
  const [language = ""] = lang.split("-");
  const text =
    typeof title === "string" ? title : (title[lang] ?? title[language] ?? title.en ?? Object.values(title)[0]);
  return text + (status === "running" ? "…" : "");
}

/** The status of a tool call in words. */
export function toolStatusText(status: ToolStatus, strings: Strings): string {
  return strings[TOOL_STATUSES[status]];
}
