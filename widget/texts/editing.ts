/** English texts about a message that is being changed. */

export const editingTexts = {
  editing: "You are changing a message. What follows it will be replaced.",
  filesGone: "Its files are no longer here: attach them again.",
  cancelEdit: "Leave the message as it was",
  /** Spoken when the changed message is sent. */
  edited: "The conversation goes on from the changed message.",
};
