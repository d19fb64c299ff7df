/** English texts of a launcher, which an empty chat does not say. Its panel brings them along; the script of its button has its own. */

export const panelTexts = {
  /** The call needs the person's approval. */
  toolWaiting: "waiting for approval",
  openChat: "Open chat",
  closeChat: "Close chat",
  chatPanel: "Chat",
  expand: "Enlarge chat",
  shrink: "Make chat smaller",
  more: "More",
  unread: (count: number) => (count === 1 ? "1 new message" : `${count} new messages`),
  hidePreview: "Hide this message",
};
