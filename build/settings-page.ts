/**
 * The tables of docs/settings.md, from the tables in server/config/settings.ts. Writes the page anew:
 * npm run docs
 */

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { memoryDefaults } from "../server/config/memory.ts";
import { GROUPS, type Setting } from "../server/config/settings.ts";

const PAGE = fileURLToPath(new URL("../docs/settings.md", import.meta.url));

/** `page` with the table of each group as it should be; what else is on it stays. */
export function renderSettingsPage(page: string): string {
  return Object.entries(GROUPS).reduce((text, [heading, rows]) => {
    const table = new RegExp(`(?<=^## ${heading}\n(?:(?!## ).*\n)*)\\| variable .*\n(?:\\|.*\n)+`, "m");
    if (!table.test(text)) throw new Error(`docs/settings.md has no table of: ${heading}`);
    return text.replace(table, () => renderTable(Object.values(rows)));
  }, page);
}

function renderTable(settings: readonly Setting<unknown>[]): string {
  const cells = settings.map((row) => [`\`${row.name}\``, shownDefault(row), row.live ? "yes" : "", row.text]);
  const table = [["variable", "default", "live", "meaning"], ...cells];
  const widths = [0, 1, 2].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  const lines = table.map((row) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`);
  const rule = `| ${widths.map((width) => "-".repeat(width)).join(" | ")} | ------- |`;
  return [lines[0], rule, ...lines.slice(1), ""].join("\n");
}

/** As on a machine with plenty of memory. */
function shownDefault({ fallback, shown }: Setting<unknown>): string {
  if (shown !== undefined) return shown;
  const value = typeof fallback === "function" ? fallback(memoryDefaults(Infinity)) : fallback;
  return value === "" || (Array.isArray(value) && value.length === 0) ? "none" : `\`${value}\``;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(PAGE, renderSettingsPage(readFileSync(PAGE, "utf8")));
}
