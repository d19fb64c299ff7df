/** English texts of the lazy parts, loaded with them: see `add-part-texts.ts`. */

export const partTexts = {
  // Why an answer was cut off.
  stoppedAtLengthLimit: "This answer was cut off because it reached the length limit.",
  stoppedByFilter: "This answer was cut off by the content filter.",
  stoppedAtTurnLimit: "The agent stopped because it reached its limit of steps.",

  // Why the page cannot use the server.
  siteKeyRefused: "This site has no valid chat key. Please tell the owner of the site.",
  siteForbidden: "This chat may not be used on this site.",
  signInNeeded: "Please sign in to write here.",
  signInNow: "Sign in",
  signInElsewhere: "Please sign in first, on the site that this chat belongs to. Then reload this page.",
  signedInAs: (name: string) => `Signed in as ${name}`,
  signOutNow: "Sign out",
  userUnknown: "The server could not check who you are. Please try again.",

  // Why the server has not answered, if its own text is missing or in another language.
  requestTooLarge: "The message is too large for this server.",
  rateLimited: "Too many messages in a short time. Try again in a moment.",
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

  // What can be done about that.
  /** Copies what the owner of the site needs to trace a failure. */
  copyReport: "Copy report",
  startOver: "Send without the earlier messages",

  /** Above messages that were written while an answer is running. */
  pending: (agent: string) => `Sent when ${agent} is done`,
  /** On the button that shows these messages, where there is room for one line. */
  pendingCount: (count: number) => `${count} waiting`,
  /** On a button, after the answer was stopped or has failed. */
  sendAnyway: "Send anyway?",
  /** Which one is shown of several answers to a message, or of several versions of a message. */
  answerOf: (number: number, count: number) => `Answer ${number} of ${count}`,
  messageOf: (number: number, count: number) => `Message ${number} of ${count}`,
  previous: "Previous",
  next: "Next",

  // The list of conversations that this browser keeps.
  closeList: "Close the list",
  searchConversations: "Search",
  nothingFound: "Nothing found.",
  /** Below `nothingFound`, before the button that ends the search. */
  searchedAll: "Names and messages were searched.",
  endSearch: "Show all",
  conversationsFound: (count: number) => `Results: ${count}`,
  /** Label of the dot beside a conversation with an unread answer, or with one that another tab left unfinished. */
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
  /** Old conversations were deleted because there were too many. */
  conversationsDropped: (count: number) =>
    count === 1
      ? "The oldest conversation was deleted to make room."
      : `The ${count} oldest conversations were deleted to make room.`,
  storageFailed: "The browser could not do this. Please try again.",

  // Images, and notes below a text.
  previousImage: "Previous image",
  nextImage: "Next image",
  footnotes: "Footnotes",
  /** Opens the list of an answer's sources. */
  sourcesCount: (count: number) => (count === 1 ? "1 source" : `${count} sources`),
  /** Accessible name of a source mark in the text. */
  sourceOf: (number: number, title: string) => `Source ${number}: ${title}`,
  /** Link from a footnote to its reference in the text: "2", or "2-3" for the third reference. */
  backToText: (number: string) => `Back to the text, footnote ${number}`,

  // Thoughts and tool calls.
  thinking: "Thinking",
  /** Consecutive thoughts and tool calls, folded into one line. At least three. */
  steps: (count: number) => `${count} steps`,
  /** How many of these steps failed, beside their number. At least one. */
  stepsFailed: (count: number) => `${count} failed`,
  thoughtBriefly: "Thought briefly",
  thoughtFor: (duration: string) => `Thought for ${duration}`,
  /** `size`: of the whole text, of which only the beginning is shown. */
  showAll: (size: string) => `Show all (${size})`,
  toolArguments: "Arguments",
  toolOutput: "Output",
  toolError: "Error",
  emptyOutput: "(empty)",
  /** Pictures of a tool's result that the agent has but the browser does not. */
  picturesNotHere: (count: number) => (count === 1 ? "1 picture is not shown." : `${count} pictures are not shown.`),
  /** Spoken when the agent calls a tool. */
  toolStarted: (tool: string) => `Using ${tool}…`,
  /** Spoken when the agent calls several tools at once. */
  toolsStarted: (count: number) => `Using ${count} tools…`,
  /** Spoken when these calls have ended. */
  toolsEnded: (completed: number, failed: number) =>
    failed > 0 ? `${completed} done, ${failed} failed` : `${completed} done`,
  toolRunning: "running",
  toolCompleted: "completed",
  toolFailed: "failed",
  toolStopped: "stopped",

  // Tool calls that wait for approval.
  approve: "Approve",
  decline: "Decline",
  approveAll: "Approve all",
  whyDeclined: "Why? (optional)",
  /** The button and the field of a question that is answered with a text. */
  answer: "Answer",
  yourAnswer: "Your answer",
  details: "Details",
  back: "Back",
  /** Above a call of a tool that its author has marked as dangerous. */
  cannotBeUndone: "Cannot be undone",
  /** Below the name of a list: each line is one element. */
  onePerLine: "One per line",
  /** The button below a list, with its name. */
  addTo: (name: string) => `Add to ${name}`,
  /** Why a value is invalid. `limit` is a number, or the text `characters`. */
  atLeast: (limit: string) => `At least ${limit}.`,
  atMost: (limit: string) => `At most ${limit}.`,
  characters: (count: number) => (count === 1 ? "1 character" : `${count} characters`),
  /** What `true` and `false` are called. */
  yes: "Yes",
  no: "No",
  /** Asks the agent to repeat a question that can no longer be decided. */
  askMeAgain: "Ask again",
  /** The message that `askMeAgain` sends. */
  pleaseAskAgain: "Please ask me again.",
  // In place of white space that pushes the end of a value out of view: at least three lines, or over one in width.
  emptyLines: (count: number) => `${count} empty lines`,
  spaces: (count: number) => `${count} spaces`,
  needsDecision: (agent: string) => `${agent} needs your decision`,
  /** Beside the tool's name. `time` is a clock time, such as "14:02". */
  approvedAt: (time: string) => `approved by you at ${time}`,
  declinedAt: (time: string) => `declined by you at ${time}`,
  answeredAt: (time: string) => `answered by you at ${time}`,

  // Code blocks and tables.
  wrapLines: "Wrap lines",
  showAllLines: (lines: number) => `Show all ${lines} lines`,
  showFewerLines: "Show fewer lines",
  showAllRows: (rows: number) => `Show all ${rows} rows`,
  showFewerRows: "Show fewer rows",
  copyAsMarkdown: "Copy as Markdown",
  copyAsCsv: "Copy as CSV",
  /** Accessible name of a table's scroll box. */
  table: "Table",
  /** Accessible name of a formula's scroll box. */
  formula: "Formula",
  /** Shows a wide table or code block in the whole window. */
  enlarge: "Enlarge",

  // Files, and why some are refused.
  attachedFiles: "Attached files",
  uploading: "Sending the files…",
  remove: (name: string) => `Remove ${name}`,
  /** On a long pasted text, which is attached as a file. */
  unfoldText: "Show in the text field",
  noFilesTaken: (agent: string) => `${agent} does not take files.`,
  fileTooLarge: (names: string, limit: string) => `${names}: larger than ${limit}.`,
  fileAlreadyAttached: (names: string) => `${names}: attached already.`,
  fileEmpty: (names: string) => `${names}: empty.`,
  /** `types` is a list in words. */
  fileTypeRefused: (names: string, types: string) => `${names}: only ${types} files are taken.`,
  fileTypeFalse: (names: string, type: string) => `${names}: not a ${type} file, whatever the name says.`,
  /** A text file has another encoding, or is no text at all. */
  fileNotUtf8: (names: string) => `${names}: not text in UTF-8.`,
  /** `limit` is the size that remains for the message's files; a long conversation may leave less. */
  filesTooLarge: (names: string, limit: string) =>
    `${names}: not attached, the files of this message may have ${limit} together.`,
  tooManyFiles: (names: string, limit: number) =>
    `${names}: not attached, a message takes at most ${limit} ${limit === 1 ? "file" : "files"}.`,

  // Ratings of answers.
  rateUp: "Good answer",
  rateDown: "Bad answer",
  feedbackQuestion: "What was wrong? (optional)",
  reasonIncorrect: "Not correct",
  reasonIncomplete: "Incomplete",
  reasonOffTopic: "Not what I asked for",
  reasonHarmful: "Harmful",
  feedbackComment: "In your own words",
  feedbackClose: "Close",
  feedbackThanks: "Thank you.",

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
};
