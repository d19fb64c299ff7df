/** English texts of the launcher. */

export const launcherTexts = {
  openChat: "Open chat",
  closeChat: "Close chat",
  chatPanel: "Chat",
  expand: "Enlarge chat",
  shrink: "Make chat smaller",
  unread: (count: number) => (count === 1 ? "1 new message" : `${count} new messages`),
  hidePreview: "Hide this message",
};
