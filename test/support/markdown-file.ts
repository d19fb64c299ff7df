/** Parses Markdown files for the tests of the documentation. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { REPOSITORY } from "./command.ts";

/** Paths of all documents of the project. */
export const DOCUMENTS: readonly string[] = [
  ...["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"],
  ...readdirSync(join(REPOSITORY, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
  ...readdirSync(join(REPOSITORY, "examples")).map((name) => `examples/${name}/README.md`),
];

export interface CodeBlock {
  language: string;
  text: string;
  /** Line of the document at which the block begins. */
  line: number;
  /** For a command: the block that follows it directly, with the command's answer. */
  answer?: CodeBlock;
}

export function readMarkdown(path: string): string {
  return readFileSync(join(REPOSITORY, path), "utf8");
}

/** Fenced code blocks, in order. */
export function codeBlocks(markdown: string): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  let end = 0;
  for (const match of markdown.matchAll(/^```(\w*)\n(.*?)^```$/gms)) {
    const [whole, language = "", text = ""] = match;
    const block = { language, text, line: markdown.slice(0, match.index).split("\n").length };
    const before = blocks.at(-1);
    const follows = before?.language === "sh" && markdown.slice(end, match.index).trim() === "";
    if (follows && ["json", "text"].includes(language)) before.answer = block;
    blocks.push(block);
    end = match.index + whole.length;
  }
  return blocks;
}

/** The only block of a language that contains the text. */
export function findBlock(markdown: string, language: string, holds: string): string {
  const found = codeBlocks(markdown).filter((block) => block.language === language && block.text.includes(holds));
  const [block] = found;
  if (block === undefined || found.length > 1) {
    throw new Error(`${found.length} blocks of ${language} hold "${holds}", not one`);
  }
  return block.text;
}

/** The text from a heading to the next one of the same or a higher level. */
export function section(markdown: string, heading: string): string {
  const start = markdown.indexOf(`\n${heading}\n`);
  if (start === -1) throw new Error(`there is no heading "${heading}"`);
  const body = markdown.slice(start + heading.length + 2);
  const level = heading.indexOf(" ");
  const end = body.search(new RegExp(`^#{1,${level}} `, "m"));
  return end === -1 ? body : body.slice(0, end);
}

/** Rows, without the header, of the tables whose first header cell is `header`; backquotes are removed. */
export function tableRows(markdown: string, header: string): string[][] {
  const tables = [...markdown.matchAll(/^\| (.+?) +\|.*\n\| ---.*\n((?:\|.*(?:\n|$))+)/gm)];
  const rows = tables.flatMap(([, first, body = ""]) =>
    first === header ? body.trimEnd().split("\n").map(cells) : [],
  );
  if (rows.length === 0) throw new Error(`there is no table "${header}"`);
  return rows;
}

function cells(row: string): string[] {
  return row
    .slice(1, -1)
    .split("|")
    .map((cell) => cell.trim().replaceAll("`", ""));
}
