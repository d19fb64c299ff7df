/** English texts of the launcher's panel, loaded with it. An empty chat does not need them; the button's script has its own. */

export const panelTexts = {
  /** The call needs the user's approval. */
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
