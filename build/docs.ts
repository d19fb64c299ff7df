/** Writes the tables of docs/settings.md and of the pages on the element anew, from the code: npm run docs */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { memoryDefaults } from "../server/config/memory.ts";
import { SETTINGS, type Setting } from "../server/config/settings.ts";
import { attributeOf, CHAT } from "../widget/element/properties.ts";
import { LAUNCHER } from "../widget/launcher/properties.ts";

const REPOSITORY = fileURLToPath(new URL("..", import.meta.url));

/** Files by path, each with its text and with the text that it should have. */
export function renderAll(): Map<string, { text: string; rendered: string }> {
  const element = elementCells();
  const ofElement = (page: string) => renderTables(page, element);
  const renderers = {
    "docs/settings.md": (page: string) => renderTables(page, new Map([["variable", settingCells()]])),
    "docs/widget.md": ofElement,
    "docs/customize.md": ofElement,
    "docs/element.md": ofElement,
  };
  const files = Object.entries(renderers).map(([path, render]) => {
    const text = readFileSync(join(REPOSITORY, path), "utf8");
    return [path, { text, rendered: render(text) }] as const;
  });
  return new Map(files);
}

/** Cells of a table by the name in their row's first cell. They are the last cells of the row. */
type Cells = ReadonlyMap<string, readonly string[]>;

/**
 * The page with up-to-date cells in its tables, which are found by the header of their first column. The page itself
 * decides which rows it has, in which order and in how many tables.
 */
function renderTables(page: string, cellsByHeader: ReadonlyMap<string, Cells>): string {
  return page.replace(/^\| ([\w ]+?) +\|.*\n\|[- |]+\n(?:\|.*\n)+/gm, (table, header: string) => {
    const known = cellsByHeader.get(header);
    if (!known) return table;
    const [head = "", , ...rows] = table.trimEnd().split("\n");
    const columns = splitRow(head);
    const written = rows.map((row) => {
      const [name = "", ...rest] = splitRow(row);
      const cells = known.get(name.replaceAll("`", ""));
      if (!cells) throw new Error(`A page lists a ${header} that does not exist: ${name}`);
      return [name, ...rest.slice(0, columns.length - 1 - cells.length), ...cells];
    });
    return [columns, columns.map(() => "---"), ...written].map((row) => `| ${row.join(" | ")} |\n`).join("");
  });
}

const splitRow = (row: string) =>
  row
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim());

function settingCells(): Cells {
  const rows: Setting<unknown>[] = Object.values(SETTINGS);
  return new Map(rows.map((row) => [row.name, [shownDefault(row), row.live ? "yes" : "", row.text]]));
}

/** As on a machine with plenty of memory. */
function shownDefault({ fallback, shown }: Setting<unknown>): string {
  if (shown !== undefined) return shown;
  const value = typeof fallback === "function" ? fallback(memoryDefaults(Infinity)) : fallback;
  return value === "" || (Array.isArray(value) && value.length === 0) ? "none" : `\`${value}\``;
}

interface Described {
  name: string;
  description: string;
  type?: { text: string };
  kind?: string;
  parameters?: { name: string }[];
}

/** From the doc blocks that the build has put into the manifest, and from the tables of properties. */
function elementCells(): ReadonlyMap<string, Cells> {
  const { modules } = JSON.parse(readFileSync(join(REPOSITORY, "dist/custom-elements.json"), "utf8"));
  const cellsOf = new Map<string, Cells>();
  for (const [index, prefix] of ["", "launcher "].entries()) {
    const [element] = modules[index].declarations;
    const members: Described[] = element.members;
    const methods = members
      .filter(({ kind }) => kind === "method")
      .map((it) => ({ ...it, name: `${it.name}(${it.parameters?.map(({ name }) => name).join(", ")})` }));
    const { events, slots, cssParts, cssProperties } = element;
    const lists = { event: events, slot: slots, part: cssParts, variable: cssProperties, method: methods };
    for (const [header, list] of Object.entries<Described[]>(lists)) {
      cellsOf.set(prefix + header, new Map(list.map((it) => [it.name, [said(it)]])));
    }
    const attributes: Described[] = element.attributes;
    cellsOf.set(`${prefix}attribute`, new Map(attributes.map((it) => [it.name, [valuesOf(it.name), said(it)]])));
    if (index === 0)
      cellsOf.set("property", new Map(members.map((it) => [it.name, [code(it.type?.text ?? ""), said(it)]])));
  }
  return cellsOf;
}

const rows = Object.entries({ ...CHAT, ...LAUNCHER });

function valuesOf(attribute: string): string {
  const [, { kind = "", choices = [] } = {}] = rows.find(([name, row]) => attributeOf(name, row) === attribute) ?? [];
  if (kind === "boolean") return "there or not";
  if (kind === "switch") return "there, `off`, or not there";
  return choices.map((it, index) => code(String(it)) + (index === 0 ? " (default)" : "")).join(", ");
}

const said = ({ description }: Described) => escaped(description.replaceAll("](docs/", "]("));
const escaped = (text: string) => text.replaceAll("|", "\\|");
const code = (text: string) => `\`${escaped(text)}\``;

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [path, { rendered }] of renderAll()) writeFileSync(join(REPOSITORY, path), rendered);
}
