/** Answers to stream, made up of parts that models write. */

const repeated = (part, bytes) => part.repeat(Math.ceil(bytes / part.length)).slice(0, bytes);

const prose =
  "A paragraph with **strong words**, `code`, and [a link](https://example.org/page), which goes on for a while, as " +
  "answers do, until it has said what there is to say.\n\n";
const list = "- An item with *emphasis* and `code` in it\n- another one, which is a little longer\n";
const code = "```ts\nexport function add(a: number, b: number): number {\n  return a + b; // the sum\n}\n```\n\n";
const table = "| name | value | note |\n|:-----|------:|------|\n| one | 1 | *first* |\n| two | 2 | `second` |\n\n";

/** `[name, Markdown]`: a mixture as a whole message, and single blocks that never end. */
export const answers = [
  ["mixed, 100 kB", repeated(`## A heading\n\n${prose}${list}\n${code}${prose}${table}`, 100_000)],
  ["one list, 60 kB", repeated(list, 60_000)],
  ["one list item, 60 kB", `- ${repeated(prose.replaceAll("\n\n", "\n\n  "), 60_000)}`],
  [
    "one table, 60 kB",
    `| name | value | note |\n|:--|--:|--|\n${repeated("| one | 1 | *first* and `code` |\n", 60_000)}`,
  ],
  ["one quote, 60 kB", repeated(`> ${prose.trim()}\n>\n`, 60_000)],
  ["one code block, 60 kB", `\`\`\`ts\n${repeated("const value = compute(42); // a line\n", 60_000)}`],
  ["one paragraph, 60 kB", repeated(`${prose.trim()} `, 60_000)],
];
