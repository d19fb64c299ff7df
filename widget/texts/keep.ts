/** English texts about a conversation that was kept. */

export const keepTexts = {
  earlierCut: "Earlier messages are no longer shown here.",
  notKept: "The browser does not keep this conversation: it is gone when you leave the page or load it again.",
  forgotten: (agent: string) =>
    `${agent} no longer knows what is above, because files are not kept when a page is loaded again.`,
};
