/**
 * What is written from tables of the code: the tables of docs/settings.md and docs/widget.md, and the types of the
 * element's properties in public-types.ts. Writes all of them anew: npm run docs
 */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { memoryDefaults } from "../server/config/memory.ts";
import { SETTINGS, type Setting } from "../server/config/settings.ts";
import {
  attributeOf,
  DOCUMENTATION,
  PROPERTIES,
  type PropertyName,
  ROWS,
  type Row,
  rowsOf,
} from "../widget/element/properties.ts";

const REPOSITORY = fileURLToPath(new URL("..", import.meta.url));

const BEGIN = "// Begin of what `npm run docs` writes from properties.ts.";
const END = "// End of what `npm run docs` writes.";

/** Files by path, each with its text and with what it should be. */
export function renderAll(): Map<string, { text: string; rendered: string }> {
  const renderers = {
    "docs/settings.md": (page: string) => renderTables(page, new Map([["variable", settingCells()]])),
    "docs/widget.md": (page: string) => renderTables(page, elementCells()),
    "widget/element/public-types.ts": renderTypes,
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
 * The page with what its tables say as it should be, by the header of their first column. The page itself decides which
 * rows it has, in which order and in how many tables.
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
  kind?: string;
  parameters?: { name: string }[];
}

/** From the table of properties and, for all else, from the doc blocks that the build has put into the manifest. */
function elementCells(): ReadonlyMap<string, Cells> {
  const { modules } = JSON.parse(readFileSync(join(REPOSITORY, "dist/custom-elements.json"), "utf8"));
  const objects = rowsOf("chat").filter(([, { kind }]) => kind === "object");
  const cellsOf = new Map([
    ["attribute", attributeCells("chat")],
    ["launcher attribute", attributeCells("launcher")],
    ["property", new Map(objects.map(([name]) => [name, [code(typeOf(name, PROPERTIES[name])), sentences(name)]]))],
  ]);
  for (const [index, prefix] of ["", "launcher "].entries()) {
    const [element] = modules[index].declarations;
    const methods = (element.members as Described[])
      .filter(({ kind }) => kind === "method")
      .map((it) => ({ ...it, name: `${it.name}(${it.parameters?.map(({ name }) => name).join(", ")})` }));
    const { events, slots, cssParts, cssProperties } = element;
    const lists = { event: events, slot: slots, part: cssParts, variable: cssProperties, method: methods };
    for (const [header, list] of Object.entries<Described[]>(lists)) {
      const cells = list.map(({ name, description }) => [name, [escaped(description)]] as const);
      cellsOf.set(prefix + header, new Map(cells));
    }
  }
  return cellsOf;
}

function attributeCells(owner: "chat" | "launcher"): Cells {
  const rows = rowsOf(owner).flatMap(([name, row]) => {
    const attribute = attributeOf(owner, name);
    return attribute ? [[attribute, [valuesOf(row), sentences(name)]] as const] : [];
  });
  return new Map(rows);
}

function valuesOf({ kind, choices }: Row): string {
  if (kind === "boolean") return "there or not";
  return (choices ?? []).map((choice, index) => (index === 0 ? `${code(choice)} (default)` : code(choice))).join(", ");
}

const sentences = (name: PropertyName) => [DOCUMENTATION[name].doc, DOCUMENTATION[name].more].filter(Boolean).join(" ");
const escaped = (text: string) => text.replaceAll("|", "\\|");
const code = (text: string) => `\`${escaped(text)}\``;

/** The source with the interfaces as they should be. */
export function renderTypes(source: string): string {
  const [before = "", rest = ""] = source.split(`${BEGIN}\n`);
  const [, after] = rest.split(END);
  if (after === undefined) throw new Error("public-types.ts lacks the marks of what is written");
  const interfaces = [
    ["SharedProperties", "Properties that both elements have.", ["both"]],
    ["ChatProperties extends SharedProperties", "Properties of `<agent-chat>`.", ["chat"]],
    ["LauncherProperties extends SharedProperties", "Properties of `<agent-chat-launcher>`.", ["launcher"]],
  ] as const;
  const written = interfaces.map(([name, doc, owners]) => {
    const rows = ROWS.filter(([, { of, kind }]) => (owners as readonly string[]).includes(of) && kind !== "inherited");
    return `/** ${doc} */\nexport interface ${name} {\n${rows.map(member).join("")}}\n`;
  });
  return `${before}${BEGIN}\n\n${written.join("\n")}\n${END}${after}`;
}

function member([name, row]: readonly [PropertyName, Row]): string {
  const attribute = row.attribute ? ` Attribute: \`${row.attribute}\`.` : "";
  const doc = DOCUMENTATION[name].doc.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1");
  return `${commentOf(`${doc}${attribute}`)}  ${name}: ${typeOf(name, row)};\n`;
}

/** In lines of at most 120 columns. */
function commentOf(text: string): string {
  const short = `  /** ${text} */\n`;
  if (short.length <= 121) return short;
  return `  /**\n${text.replace(/(.{1,113})(?: |$)/g, "   * $1\n")}   */\n`;
}

/** The TypeScript type of a property. */
export function typeOf(name: PropertyName, { kind, choices = [] }: Row): string {
  if (kind === "choice") return choices.map((choice) => JSON.stringify(choice)).join(" | ");
  if (kind === "boolean") return "boolean";
  if (kind === "moment") return "number | string | null";
  return DOCUMENTATION[name].type ?? "string";
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [path, { rendered }] of renderAll()) writeFileSync(join(REPOSITORY, path), rendered);
}
