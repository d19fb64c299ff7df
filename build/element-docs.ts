/**
 * What is written from `widget/element/properties.ts`: the tables of properties in docs/widget.md, and the types of
 * them in public-types.ts. Writes both anew: npm run docs
 */

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import {
  attributeOf,
  DOCUMENTATION,
  type Documentation,
  type PropertyName,
  ROWS,
  type Row,
  rowsOf,
} from "../widget/element/properties.ts";

export const DOCS = fileURLToPath(new URL("../docs/widget.md", import.meta.url));
export const TYPES = fileURLToPath(new URL("../widget/element/public-types.ts", import.meta.url));

const BEGIN = "// Begin of what `npm run docs` writes from properties.ts.";
const END = "// End of what `npm run docs` writes.";

/** The page with the tables as they should be; what else is on it stays. */
export function renderDocs(page: string): string {
  const objects = rowsOf("chat").filter(([, { kind }]) => kind === "object");
  const tables = {
    attribute: attributeTable("chat", rowsOf("chat")),
    // What both have is described there.
    "launcher attribute": attributeTable("launcher", rowsOf("launcher")),
    property: objects.map(([name]) => [
      code(name),
      code(DOCUMENTATION[name].type ?? ""),
      sentences(DOCUMENTATION[name]),
    ]),
  };
  return Object.entries(tables).reduce((text, [header, rows]) => {
    const table = new RegExp(`^\\| ${header} +\\|.*\\n(?:\\|.*\\n)+`, "m");
    if (!table.test(text)) throw new Error(`docs/widget.md has no table of: ${header}`);
    const values = header === "property" ? "type" : "values";
    const cells = [[header, values, "meaning"], ["---", "---", "---"], ...rows];
    return text.replace(table, () => cells.map((row) => `| ${row.join(" | ")} |\n`).join(""));
  }, page);
}

function attributeTable(owner: "chat" | "launcher", rows: typeof ROWS): string[][] {
  return rows.flatMap(([name, row]) => {
    const attribute = attributeOf(owner, name);
    const isAsOnChat = owner === "launcher" && row.of === "both";
    const about = DOCUMENTATION[name];
    return attribute ? [[code(attribute), valuesOf(row), isAsOnChat ? about.doc : sentences(about)]] : [];
  });
}

function valuesOf({ kind, choices }: Row): string {
  if (kind === "boolean") return "there or not";
  return (choices ?? []).map((choice, index) => (index === 0 ? `${code(choice)} (default)` : code(choice))).join(", ");
}

const sentences = ({ doc, more }: Documentation) => [doc, more].filter(Boolean).join(" ");
const code = (text: string) => `\`${text.replaceAll("|", "\\|")}\``;

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

function typeOf(name: PropertyName, { kind, choices }: Row): string {
  const { type } = DOCUMENTATION[name];
  if (kind === "choice") return (choices ?? []).map((choice) => JSON.stringify(choice)).join(" | ");
  return type ?? { boolean: "boolean", moment: "number | string | null" }[kind as "boolean" | "moment"] ?? "string";
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(DOCS, renderDocs(readFileSync(DOCS, "utf8")));
  writeFileSync(TYPES, renderTypes(readFileSync(TYPES, "utf8")));
}
