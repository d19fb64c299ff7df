/** English texts about a conversation that was kept. */

export const keepTexts = {
  earlierCut: "Earlier messages are no longer shown here.",
  forgotten: (agent: string) =>
    `${agent} no longer knows what is above, because files are not kept when a page is loaded again.`,
};
