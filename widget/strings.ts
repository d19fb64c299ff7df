/**
 * Every text that a person can read or hear, in English, and the table that is in use.
 *
 * Views read `strings` while they draw, and never keep one of its texts outside of a function: it is another table when the
 * element speaks another language.
 */

export const english = {
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
  attachedFiles: "Attached files",
  remove: (name: string) => `Remove ${name}`,
  dropHere: "Drop files to attach them",
  dismiss: "Dismiss",
  jump: "Jump to latest",
  suggestions: "Suggestions",

  you: "You said:",
  agentSaid: (agent: string) => `${agent} said:`,
  answering: "Answering…",
  thinking: "Thinking",
  thoughtBriefly: "Thought briefly",
  thoughtFor: (duration: string) => `Thought for ${duration}`,
  /** Spoken when the agent calls a tool. */
  toolStarted: (tool: string) => `Using ${tool}…`,
  toolRunning: "running",
  toolCompleted: "completed",
  toolFailed: "failed",
  toolStopped: "stopped",
  /** Thoughts and tool calls in a row, folded into one line. At least three. */
  steps: (count: number) => `${count} steps`,
  /** How many of them failed, beside their number. At least one. */
  stepsFailed: (count: number) => `${count} failed`,
  /** Of a text that is cut: its size. */
  showAll: (size: string) => `Show all (${size})`,
  toolArguments: "Arguments",
  toolOutput: "Output",
  toolError: "Error",
  emptyOutput: "(empty)",
  copy: "Copy",
  copyAnswer: "Copy answer",
  copied: "Copied",
  copyFailed: "Your browser did not allow copying.",
  copyingFailed: "Copying failed",
  retry: "Try again",
  startOver: "Send without the earlier messages",
  askAgain: "Answer again",
  editMessage: "Change this message",
  editing: "You are changing a message. What follows it will be replaced.",
  filesGone: "Its files are no longer here: attach them again.",
  cancelEdit: "Leave the message as it was",
  edited: "The conversation goes on from the changed message.",
  begunAnew: "A new conversation.",
  /** Ends the sentence about a message that waits for the connection. */
  queued: "Waiting to be sent",
  change: "Change",
  takeBack: "Remove",
  earlierCut: "Earlier messages are no longer shown here.",
  forgotten: (agent: string) =>
    `${agent} no longer knows what is above, because files are not kept when a page is loaded again.`,

  stopped: "You stopped this answer.",
  cutByLength: "This answer was cut off because it reached the length limit.",
  cutByFilter: "This answer was cut off by the content filter.",
  cutByTurns: "The agent stopped because it reached its limit of steps.",
  emptyAnswer: "The agent gave an empty answer.",

  keyTitle: "Enter your key",
  keyWhy: (name: string) => `${name} asks for an access key. It is kept in this browser only.`,
  keyLabel: "Access key",
  keySubmit: "Continue",
  keyChecking: "Checking…",
  keyRefused: "That key was not accepted. Check it and enter it again.",
  keyForbidden: "That key may not be used on this page. Enter another one.",
  keyWaiting: "Your message will be sent as soon as the key is accepted.",
  siteKeyRefused: "This site’s chat key was not accepted. Please tell the owner of the site.",
  siteForbidden: "This chat may not be used on this site.",

  unreachable: "The chat server cannot be reached. Check your connection and try again.",
  offline: "You are offline. What you write is kept and sent later.",
  connecting: "Connecting…",
  connected: "Connected again.",
  tryingAgainIn: (seconds: number) => `Trying again in ${seconds} s.`,
  tryNow: "Try now",
  connectionLost: "The connection was lost before the answer was complete.",
  unreadable: "The server sent an answer that this chat cannot read.",
  requestTooLarge: "The message and its files are too large for this server.",
  shuttingDown: "The server is restarting. Try again in a moment.",
  rateLimited: "Too many messages in a short time. Wait a moment and try again.",
  serverError: "The server could not answer.",

  noFilesTaken: (agent: string) => `${agent} does not take files.`,
  fileTooLarge: (name: string, limit: string) => `${name} is larger than ${limit}.`,
  fileTwice: (name: string) => `${name} is attached already.`,
  fileEmpty: (name: string) => `${name} is empty.`,
  fileUnreadable: (name: string) => `${name} could not be read.`,
  /** Spoken when a file was taken. */
  fileAttached: (name: string) => `${name} attached.`,
  /** `types` is a list in words. */
  fileTypeRefused: (name: string, types: string) =>
    `${name} cannot be attached: only ${types} files are taken.`,
  fileTypeFalse: (name: string, type: string) =>
    `${name} cannot be attached: it is not a ${type} file, whatever its name says.`,
  tooManyFiles: (name: string, limit: number) =>
    `${name} was not attached: a message takes at most ${limit} ${limit === 1 ? "file" : "files"}.`,

  /** Label of a code block without a language. */
  code: "Code",
  wrapLines: "Wrap lines",
  showAllLines: (lines: number) => `Show all ${lines} lines`,
  showFewerLines: "Show fewer lines",
  copyAsMarkdown: "Copy as Markdown",
  copyAsCsv: "Copy as CSV",
  loadImage: (host: string) => `Load image from ${host}`,
  openImage: (host: string) => `Open image at ${host}`,
  imageFailed: "The image could not be loaded",
  /** Accessible name of a table's scroll box. */
  table: "Table",
  taskDone: "Completed task",
  taskOpen: "Open task",
};

/** The texts of one language. Whatever has no parameter is a text, everything else a function that makes one. */
export type Strings = typeof english;

/** Texts of the launcher, whose English ones come with its chunk. */
export interface LauncherStrings {
  openChat: string;
  closeChat: string;
  chatPanel: string;
  expand: string;
  shrink: string;
  unread: (count: number) => string;
}

/** Texts of a site's own, in place of ours. */
export type StringsOverride = Partial<Omit<Strings, "lang"> & LauncherStrings>;

/** A translation. What it lacks is said in English, but a test wants all of it. */
export type Locale = Partial<Strings & LauncherStrings> & Pick<Strings, "lang">;

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
