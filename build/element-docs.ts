/**
 * What is written from `widget/element/properties.ts` and the doc blocks of the elements: the tables of docs/widget.md,
 * and the types of the properties in public-types.ts. Writes both anew: npm run docs
 */

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import {
  attributeOf,
  DOCUMENTATION,
  PROPERTIES,
  type PropertyName,
  ROWS,
  type Row,
  rowsOf,
} from "../widget/element/properties.ts";

export const DOCS = fileURLToPath(new URL("../docs/widget.md", import.meta.url));
const MANIFEST = fileURLToPath(new URL("../dist/custom-elements.json", import.meta.url));
export const TYPES = fileURLToPath(new URL("../widget/element/public-types.ts", import.meta.url));

const BEGIN = "// Begin of what `npm run docs` writes from properties.ts.";
const END = "// End of what `npm run docs` writes.";

/** Cells of a table by the name in their row's first cell. They are the last cells of the row. */
type Cells = ReadonlyMap<string, readonly string[]>;

/**
 * The page with what its tables say as it should be. The page itself decides which rows it has, in which order and in
 * how many tables.
 */
export function renderDocs(page: string): string {
  const cellsOf = cellsByHeader();
  return page.replace(/^\| ([\w ]+?) +\|.*\n\|[- |]+\n(?:\|.*\n)+/gm, (table, header: string) => {
    const known = cellsOf.get(header);
    if (!known) return table;
    const [head = "", , ...rows] = table.trimEnd().split("\n");
    const columns = splitRow(head);
    const written = rows.map((row) => {
      const [name = "", ...rest] = splitRow(row);
      const cells = known.get(name.replaceAll("`", ""));
      if (!cells) throw new Error(`docs/widget.md: there is no ${header} ${name}`);
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

interface Described {
  name: string;
  description: string;
  kind?: string;
  parameters?: { name: string }[];
}

/** From the table of properties and, for all else, from the doc blocks that the build has put into the manifest. */
function cellsByHeader(): ReadonlyMap<string, Cells> {
  const { modules } = JSON.parse(readFileSync(MANIFEST, "utf8"));
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
  writeFileSync(DOCS, renderDocs(readFileSync(DOCS, "utf8")));
  writeFileSync(TYPES, renderTypes(readFileSync(TYPES, "utf8")));
}
