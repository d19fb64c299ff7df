/** A drawn table as CSV (RFC 4180). A cell that a spreadsheet would run as a formula is marked as text. */
export function tableAsCsv(table: HTMLTableElement): string {
  return rowsOf(table)
    .map((row) => row.map(csvCell).join(","))
    .join("\r\n");
}

function csvCell(text: string): string {
  const safe = /^[=@\t]|^[+-](?![\d.,\s]*%?$)/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** A drawn table as Markdown of GitHub's kind, with its alignment, without marks inside of cells. */
export function tableAsMarkdown(table: HTMLTableElement): string {
  const [head = [], ...body] = rowsOf(table);
  const rule = [...(table.tHead?.rows[0]?.cells ?? [])].map((cell) => {
    const align = cell.className.replace("align-", "");
    return `${/left|center/.test(align) ? ":" : ""}---${/right|center/.test(align) ? ":" : ""}`;
  });
  const cells = (row: readonly string[]) => row.map((text) => text.replace(/[\\|]/g, "\\$&").replace(/\s*\n\s*/g, " "));
  return [cells(head), rule, ...body.map(cells)].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

function rowsOf(table: HTMLTableElement): string[][] {
  return [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim()));
}
