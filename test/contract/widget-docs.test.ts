import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { REPOSITORY } from "../support/command.ts";
import { codeBlocks, readMarkdown, tableRows } from "../support/markdown-file.ts";

const docs = readMarkdown("docs/widget.md");
const source = (path: string) => readFileSync(join(REPOSITORY, "widget", path), "utf8");
/** Parts and variables are described where they are. */
const element = ["agent-chat.ts", "views/frame.ts", "styles/tokens.styles.ts"].map(source).join("");
const launcher = source("agent-chat-launcher.ts");

/** Names after a tag of an element's doc block, whose completeness the element's own tests prove. */
function documented(code: string, tag: string): string[] {
  return [...code.matchAll(new RegExp(`^ \\* @${tag} (?:\\{[^}]*\\} )?([\\w-]+)`, "gm"))].map(([, name = ""]) => name);
}

function listed(header: string): string[] {
  return tableRows(docs, header).map(([name = ""]) => name);
}

for (const [header, tag] of [
  ["attribute", "attr"],
  ["event", "fires"],
  ["slot", "slot"],
  ["part", "csspart"],
  ["variable", "cssprop"],
] as const) {
  test(`docs/widget.md lists every ${header} of <agent-chat> and no other`, () => {
    const names = documented(element, tag);
    assert.ok(names.length > 0);
    assert.deepEqual(listed(header), names);
  });
}

for (const [header, code] of [
  ["method", element],
  ["launcher method", launcher],
] as const) {
  test(`docs/widget.md lists every public ${header} with its parameters`, () => {
    const own = [...code.matchAll(/^ {2}(?:async )?(\w+)\(((?:\w+: [\w<>]+)?)\)[^{]*\{$/gm)];
    const signatures = own.map(([, name, parameter = ""]) => `${name}(${parameter.split(":")[0]})`).sort();
    assert.ok(signatures.length > 2);
    assert.deepEqual(listed(header).sort(), signatures);
  });
}

test("the custom-elements manifest says of both elements what the document says", () => {
  const manifest = JSON.parse(readFileSync(join(REPOSITORY, "dist/custom-elements.json"), "utf8"));
  type Named = { name: string; description?: string; kind?: string; parameters?: Named[] };
  for (const [index, prefix, tagName] of [
    [0, "", "agent-chat"],
    [1, "launcher ", "agent-chat-launcher"],
  ] as const) {
    const [declaration] = manifest.modules[index].declarations;
    assert.equal(declaration.tagName, tagName);
    for (const [header, list] of [
      ["attribute", "attributes"],
      ["event", "events"],
      ["slot", "slots"],
      ["part", "cssParts"],
    ] as const) {
      const named: Named[] = declaration[list];
      assert.deepEqual(
        named.map(({ name }) => name),
        listed(`${prefix}${header}`),
      );
      assert.ok(
        named.every(({ description }) => description),
        `${header}s are described`,
      );
    }
    const members: Named[] = declaration.members;
    const methods = members.filter(({ kind }) => kind === "method");
    const signatures = methods.map(
      ({ name, parameters = [] }) => `${name}(${parameters.map((it) => it.name).join(", ")})`,
    );
    assert.deepEqual(signatures.sort(), listed(`${prefix}method`).sort());
    assert.ok(
      methods.every(({ description }) => description),
      "methods are described",
    );
    for (const { name } of members) assert.match(docs, new RegExp(`\\b${name}\\b`), name);
  }
});

test("docs/widget.md names the fields of each event", () => {
  const events = source("agent-chat.events.ts")
    .split(/^export class /m)
    .slice(1);
  const fields = events.map((code) => [
    /super\("([\w-]+)"/.exec(code)?.[1],
    [...code.matchAll(/^ {2}readonly (\w+)/gm)].map(([, name = ""]) => name),
  ]);
  const inDocs = tableRows(docs, "event").map(([name, cell = ""]) => [name, cell.split(":")[0]?.split(", ")]);
  assert.deepEqual(inDocs, fields);
});

for (const [header, tag] of [
  ["launcher attribute", "attr"],
  ["launcher event", "fires"],
  ["launcher slot", "slot"],
  ["launcher part", "csspart"],
  ["launcher variable", "cssprop"],
] as const) {
  test(`docs/widget.md lists every ${header} and no other`, () => {
    const names = documented(launcher, tag);
    assert.ok(names.length > 0);
    assert.deepEqual(listed(header), names);
  });
}

test("docs/widget.md names what the element keeps in localStorage", () => {
  const names = [source("api-key.ts"), source("theme.ts")].map((code) => /[`"](agent-chat-[\w-]+:?)/.exec(code)?.[1]);
  const inDocs = tableRows(docs, "in `localStorage`").map(([name = ""]) => name.replace("SERVER", ""));
  assert.deepEqual(inDocs, names);
});

test("the snippets of docs/widget.md and the README use attributes and variables that exist", () => {
  const attributes = documented(element, "attr");
  const known = new Set([...attributes, "style"]);
  const variables = new Set(documented(element + launcher, "cssprop"));
  for (const { language, text } of [...codeBlocks(docs), ...codeBlocks(readMarkdown("README.md"))]) {
    if (language === "html") {
      for (const [, list = ""] of text.matchAll(/<agent-chat([^>]*)>/g)) {
        const used = [...list.matchAll(/([\w-]+)=/g)].map(([, name = ""]) => name);
        assert.deepEqual(
          used.filter((name) => !known.has(name)),
          [],
        );
      }
    }
    if (language === "css") {
      const used = text.match(/--[\w-]+/g) ?? [];
      assert.deepEqual(
        used.filter((name) => !variables.has(name)),
        [],
      );
    }
  }
});
