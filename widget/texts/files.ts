/** English texts about files, and why some are not taken. */

export const fileTexts = {
  dropHere: "Drop files to attach them",
  attachedFiles: "Attached files",
  /** Before a number of per cent. */
  uploading: "Sending the files…",
  remove: (name: string) => `Remove ${name}`,
  dismiss: "Dismiss",

  noFilesTaken: (agent: string) => `${agent} does not take files.`,
  fileTooLarge: (name: string, limit: string) => `${name} is larger than ${limit}.`,
  fileTwice: (name: string) => `${name} is attached already.`,
  fileEmpty: (name: string) => `${name} is empty.`,
  fileUnreadable: (name: string) => `${name} could not be read.`,
  /** After a reload, of a file that was to be sent. */
  fileLost: (name: string) => `${name} is no longer here: attach it again.`,
  /** Spoken when a file was taken. */
  fileAttached: (name: string) => `${name} attached.`,
  /** `types` is a list in words. */
  fileTypeRefused: (name: string, types: string) => `${name} cannot be attached: only ${types} files are taken.`,
  fileTypeFalse: (name: string, type: string) =>
    `${name} cannot be attached: it is not a ${type} file, whatever its name says.`,
  /** `limit` is what is left for the files of the message, which may be less in a long conversation. */
  filesTooLarge: (name: string, limit: string) =>
    `${name} was not attached: the files of this message may have ${limit} together.`,
  tooManyFiles: (name: string, limit: number) =>
    `${name} was not attached: a message takes at most ${limit} ${limit === 1 ? "file" : "files"}.`,
};
