/** Every text that a person can read or hear, in one place. */

import { listMediaTypes } from "../server/protocol/attachments.ts";

export const conversation = "Conversation";
export const fallbackAgent = "Assistant";
export const newConversation = "New conversation";
export const toDark = "Switch to dark theme";
export const toLight = "Switch to light theme";
export const forgetKey = "Forget the saved key";
export const openChat = "Open chat";
export const closeChat = "Close chat";
export const chatPanel = "Chat";
export const welcome = "How can I help?";

export const composerLabel = "Message";
export const placeholder = (agent: string) => `Message ${agent}`;
export const send = "Send message";
export const stop = "Stop answering";
export const attach = "Attach files";
export const attachedFiles = "Attached files";
export const remove = (name: string) => `Remove ${name}`;
export const dropHere = "Drop files to attach them";
export const dismiss = "Dismiss";
export const jump = "Jump to latest";
export const suggestions = "Suggestions";

export const you = "You said:";
export const agentSaid = (agent: string) => `${agent} said:`;
export const answering = "Answering…";
export const thinking = "Thinking";
export const thoughtBriefly = "Thought briefly";
export const thoughtFor = (duration: string) => `Thought for ${duration}`;
export const toolRunning = "running";
export const toolCompleted = "completed";
export const toolFailed = "failed";
export const toolStopped = "stopped";
export const toolArguments = "Arguments";
export const toolOutput = "Output";
export const toolError = "Error";
export const emptyOutput = "(empty)";
export const copy = "Copy";
export const copyAnswer = "Copy answer";
export const copied = "Copied";
export const copyFailed = "Your browser did not allow copying.";
export const copyingFailed = "Copying failed";
export const retry = "Try again";
export const startOver = "Send without the earlier messages";

export const stopped = "You stopped this answer.";
export const cutByLength = "This answer was cut off because it reached the length limit.";
export const cutByFilter = "This answer was cut off by the content filter.";
export const cutByTurns = "The agent stopped because it reached its limit of steps.";
export const emptyAnswer = "The agent gave an empty answer.";

export const keyTitle = "Enter your key";
export const keyWhy = (name: string) =>
  `${name} asks for an access key. It is kept in this browser only.`;
export const keyLabel = "Access key";
export const keySubmit = "Continue";
export const keyChecking = "Checking…";
export const keyRefused = "That key was not accepted. Check it and enter it again.";
export const keyForbidden = "That key may not be used on this page. Enter another one.";
export const keyWaiting = "Your message will be sent as soon as the key is accepted.";
export const siteKeyRefused =
  "This site’s chat key was not accepted. Please tell the owner of the site.";
export const siteForbidden = "This chat may not be used on this site.";

export const unreachable =
  "The chat server cannot be reached. Check your connection and try again.";
export const connectionLost = "The connection was lost before the answer was complete.";
export const unreadable = "The server sent an answer that this chat cannot read.";
export const requestTooLarge = "The message and its files are too large for this server.";
export const shuttingDown = "The server is restarting. Try again in a moment.";
export const rateLimited = "Too many messages in a short time. Wait a moment and try again.";
export const serverError = "The server could not answer.";

export const noFilesTaken = (agent: string) => `${agent} does not take files.`;
export const fileTooLarge = (name: string, limit: string) => `${name} is larger than ${limit}.`;
export const fileEmpty = (name: string) => `${name} is empty.`;
export const fileUnreadable = (name: string) => `${name} could not be read.`;
export const fileTypeRefused = (name: string, types: readonly string[]) =>
  `${name} cannot be attached: only ${listMediaTypes(types)} files are taken.`;
export const fileTypeFalse = (name: string, type: string) =>
  `${name} cannot be attached: it is not a ${listMediaTypes([type])} file, whatever its name says.`;
export const tooManyFiles = (name: string, limit: number) =>
  `${name} was not attached: a message takes at most ${limit} ${limit === 1 ? "file" : "files"}.`;

/** Label of a code block without a language. */
export const code = "Code";
/** Stand before the host of an image. */
export const loadImage = "Load image from";
export const openImage = "Open image at";
export const imageFailed = "The image could not be loaded";
/** Accessible name of a table's scroll box. */
export const table = "Table";
export const taskDone = "Completed task";
export const taskOpen = "Open task";
