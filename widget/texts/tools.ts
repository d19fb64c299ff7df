/** English texts of the tools on code blocks and tables. */

export const boxToolTexts = {
  wrapLines: "Wrap lines",
  showAllLines: (lines: number) => `Show all ${lines} lines`,
  showFewerLines: "Show fewer lines",
  copyAsMarkdown: "Copy as Markdown",
  copyAsCsv: "Copy as CSV",
  /** Accessible name of a table's scroll box. */
  table: "Table",
};
