/** Compares the pages about the element with the table of properties and the custom-elements manifest. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { CHAT } from "../../widget/element/properties.ts";
import { LAUNCHER } from "../../widget/launcher/properties.ts";
import { DIST, REPOSITORY } from "../support/command.ts";
import { codeBlocks, readMarkdown, tableRows } from "../support/markdown-file.ts";

const docs = ["widget", "customize", "element", "conversations"]
  .map((page) => readMarkdown(`docs/${page}.md`))
  .join("\n");
const source = (path: string) => readFileSync(join(REPOSITORY, "widget", path), "utf8");

interface Named {
  name: string;
  description?: string;
  kind?: string;
  type?: { text: string };
  default?: string;
  parameters?: Named[];
}

interface Declaration {
  tagName: string;
  attributes: Named[];
  members: Named[];
  events: Named[];
  slots: Named[];
  cssParts: Named[];
  cssProperties: Named[];
}

const { modules } = JSON.parse(readFileSync(join(DIST, "custom-elements.json"), "utf8"));
const [chat, launcher]: Declaration[] = modules.map((it: { declarations: Declaration[] }) => it.declarations[0]);

const listed = (header: string) => tableRows(docs, header).map(([name = ""]) => name);
const namesOf = (all: readonly Named[]) => all.map(({ name }) => name);

for (const [declaration, prefix, tagName] of [
  [chat, "", "agent-chat"],
  [launcher, "launcher ", "agent-chat-launcher"],
] as const) {
  for (const [header, list] of [
    ["attribute", "attributes"],
    ["event", "events"],
    ["slot", "slots"],
    ["part", "cssParts"],
    ["variable", "cssProperties"],
  ] as const) {
    test(`the documents list every ${header} of <${tagName}> and no other, and the manifest describes each`, () => {
      assert.equal(declaration?.tagName, tagName);
      const named = declaration[list];
      assert.ok(named.length > 0);
      // Most of the launcher's attributes belong to its chat.
      const isShared = ({ name }: Named) => list === "attributes" && listed("attribute").includes(name);
      const own = prefix === "" ? named : named.filter((it) => !isShared(it));
      assert.deepEqual(listed(prefix + header).sort(), namesOf(own).sort());
      assert.ok(named.every(({ description }) => description));
    });
  }

  test(`the documents list every method of <${tagName}> with its parameters, and name every property`, () => {
    const members = declaration?.members ?? [];
    const methods = members.filter(({ kind }) => kind === "method");
    const signatures = methods.map(({ name, parameters = [] }) => `${name}(${namesOf(parameters).join(", ")})`);
    assert.ok(signatures.length > 2);
    assert.deepEqual(signatures.sort(), listed(`${prefix}method`).sort());
    assert.ok(methods.every(({ description }) => description));
    for (const { name } of members) assert.match(docs, new RegExp(`\\b${name}\\b`), name);
  });
}

test("the choices of the table of properties are those of their types, and the manifest names the first as the default", () => {
  for (const [table, declaration] of [
    [CHAT, chat],
    [LAUNCHER, launcher],
  ] as const) {
    for (const [name, { kind, choices }] of Object.entries(table)) {
      const { type, default: initial } = declaration?.members.find((it) => it.name === name) ?? assert.fail(name);
      if (choices) assert.equal(initial, JSON.stringify(choices[0]), name);
      if (choices && kind === undefined)
        assert.equal(type?.text, choices.map((it) => JSON.stringify(it)).join(" | "), name);
    }
  }
});

test("docs/element.md names the fields of each event", () => {
  const interfaces = source("element/public-types.ts").split(/^export interface /m);
  const fields = interfaces.flatMap((code) => {
    const [, name] = /^AgentChat(\w+)Event extends Event/.exec(code) ?? [];
    const names = [...code.matchAll(/^ {2}readonly (\w+)/gm)].map(([, field = ""]) => field);
    return name ? [[`agent-chat-${name.toLowerCase()}`, names]] : [];
  });
  const withFields = tableRows(docs, "event").filter(([, cell]) => cell);
  const inDocs = withFields.map(([name, cell = ""]) => [name, cell.split(":")[0]?.split(", ")]);
  assert.deepEqual(inDocs, fields);
});

test("docs/conversations.md names what the element keeps in localStorage", () => {
  const files = ["session/api-key.ts", "session/access.ts", "element/theme.ts"].map(source);
  const names = files.map((code) => /[`"](agent-chat-[\w-]+:?)/.exec(code)?.[1]);
  names.push(/"(agent-chat-opened:)"/.exec(source("launcher/state.ts"))?.[1]);
  const inDocs = tableRows(docs, "in `localStorage`").map(([name = ""]) => name.replace("SERVER", ""));
  assert.deepEqual(inDocs, names);
});

test("the snippets of these pages and the README use attributes and variables that exist", () => {
  const known = new Set([...namesOf(chat?.attributes ?? []), "style"]);
  const variables = new Set([chat, launcher].flatMap((it) => namesOf(it?.cssProperties ?? [])));
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
