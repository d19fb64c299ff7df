/** Compares the parts, slots and variables documented in comments with templates and style sheets. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { transformSync } from "esbuild";

const folder = new URL("../../widget/", import.meta.url);
const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
  .filter((path) => /\.(?:ts|css)$/.test(path))
  .map((path) => ({ path, code: readFileSync(new URL(path, folder), "utf8") }));
const source = (path: string) => files.find((file) => file.path === path)?.code ?? assert.fail(path);

/** Parts and variables are documented where they are defined. */
const element = ["element/agent-chat.ts", "ui/screen.ts", "styles/tokens.css"].map(source).join("");
const launcher = source("launcher/launcher.ts");
/** Style sheets without nesting, as the build flattens them. */
const styles = files
  .filter(({ path }) => path.endsWith(".css"))
  .map(({ path, code }) => ({
    path,
    code: transformSync(code, { loader: "css", supported: { nesting: false } }).code,
  }));
const ofChat = files.filter(({ path }) => path.endsWith(".ts") && !path.startsWith("launcher/"));
const ofLauncher = files.filter(({ path }) => /^launcher\/.*\.ts$/.test(path));

function documented(code: string, tag: string): string[] {
  return [...code.matchAll(new RegExp(`^ \\* @${tag} ([\\w-]+)`, "gm"))].map(([, name = ""]) => name);
}

/** Names captured by `pattern` in these files; one capture may contain several. */
function found(sources: readonly { code: string }[], pattern: RegExp): string[] {
  const names = sources.flatMap(({ code }) =>
    [...code.matchAll(pattern)].flatMap(([, list = ""]) => list.split(/[\s,]+/)),
  );
  return [...new Set(names)].sort();
}

/** Parts in templates, in DOM code, and in arguments of button functions. */
const part = /(?:\bpart=\\?"|"part", "|part\.add\("|\b(?:icon|small)Button\(\s*")([\w -]+)"/g;

/** Actions use their names as parts. */
const actionNames = found(
  ["ui/message-actions.ts", "ui/feedback.ts"].map((path) => ({ code: source(path) })),
  /\bname: "([\w-]+)"/g,
);

test("every part of <agent-chat> that is documented is in a template, and the other way round", () => {
  const names = documented(element, "csspart");
  assert.ok(names.length > 20);
  assert.deepEqual([...new Set([...found(ofChat, part), ...actionNames])].sort(), names.sort());
});

test("every slot of <agent-chat> that is documented is in a template, and the other way round", () => {
  assert.deepEqual(found(ofChat, /<slot name="([^"]+)"/g), documented(element, "slot").sort());
});

test("the launcher has the parts that it documents", () => {
  assert.deepEqual(found(ofLauncher, part), documented(launcher, "csspart").sort());
});

test("the launcher has a slot of its own", () => {
  const [own] = documented(launcher, "slot");
  assert.match(launcher, new RegExp(`slot\\.name = "${own}"`));
});

test("every documented variable is read in one place, and no style sets one", () => {
  const names = [...(element + launcher).matchAll(/@cssprop --agent-chat-([\w-]+)/g)].map(([, name]) => name);
  const all = styles.map(({ code }) => code).join("");
  const read = [...all.matchAll(/(?:--_([\w-]+):\s*)?var\(\s*--agent-chat-([\w-]+)/g)];
  assert.deepEqual(read.map(([, , name]) => name).sort(), names.sort());
  for (const [, own, name = ""] of read) {
    if (!name.startsWith("code-")) assert.equal(own, name, "becomes the private variable of the same name");
  }
  for (const { path, code } of files) assert.doesNotMatch(code, /--agent-chat-[\w-]+:/, path);
});

// Browsers re-evaluate such rules for each token that is added to the conversation.
test("no rule asks what the chat or its conversation holds, and none stands apart from the classes that browsers find rules by", () => {
  for (const { path, code } of styles) {
    assert.doesNotMatch(
      code,
      /\.(?:chat|is-empty|scroller|column|exchange|message|markdown)(?::not\([^)]*\))?:(?:not\()?has\(/,
      path,
    );
    assert.doesNotMatch(code, /^\s*:is\([^()]*\)(?::[\w-]+)*(?: \{|,)$/m, path);
  }
});

test("every private variable that a rule reads is set", () => {
  const read = found(styles, /var\(--([\w-]+)\)/g);
  // Set by a rule or by a script.
  const set = new Set([...found(styles, /--([\w-]+):/g), ...found(files, /\("--([\w-]+)",/g)]);
  assert.ok(read.length > 15);
  assert.deepEqual(
    read.filter((name) => !set.has(name)),
    [],
  );
});

/** The templates of a source, innermost first, each without its nested templates. */
function templatesOf(code: string): string[] {
  const templates: string[] = [];
  const take = (_whole: string, html: string) => {
    templates.push(html);
    return "";
  };
  let [before, rest] = ["", code.replace(/\/\*[\s\S]*?\*\/|\/\/ .*/g, "")];
  while (rest !== before) {
    before = rest;
    rest = rest
      .replace(/\bhtml`([^`{}]*)`/g, take)
      .replace(/`[^`{}]*`/g, "")
      .replace(/\$?\{[^`{}]*\}/g, "");
  }
  return templates;
}

test("no template says anything by itself: every word is in the table of texts", () => {
  const templates = files.flatMap(({ path, code }) => templatesOf(code).map((html) => ({ path, html })));
  assert.ok(templates.length > 60, `${templates.length} templates were found`);
  for (const { path, html } of templates) {
    const between = [...html.matchAll(/>([^<>]*)</g)].map(([, text = ""]) => text.trim());
    const named = [...html.matchAll(/(?:aria-label|title|alt|placeholder)="([^"]+)"/g)];
    const words = [...between, ...named.map(([, text = ""]) => text)].filter((text) => /\p{L}{2}/u.test(text));
    assert.deepEqual(words, [], path);
  }
});

test("no source holds what a strict policy forbids: styles or handlers in attributes, and code made of texts", () => {
  const forbidden =
    /\sstyle=|\son[a-z]+="|setAttribute\("(?:style|on\w+)"|\beval\(|\bFunction\(|insertAdjacentHTML|\.outerHTML|innerHTML =/;
  for (const { path, code } of files) {
    const withoutComments = code.replace(/\/\*[\s\S]*?\*\/|\/\/ .*/g, "");
    assert.equal(forbidden.exec(withoutComments)?.[0], undefined, path);
  }
});
