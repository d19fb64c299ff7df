/** The elements' doc blocks name their parts, slots and variables: here they are compared with templates and styles. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const folder = new URL("../../widget/", import.meta.url);
const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".ts"))
  .map((path) => ({ path, code: readFileSync(new URL(path, folder), "utf8") }));
const source = (path: string) => files.find((file) => file.path === path)?.code ?? "";

/** Parts and variables are described where they are. */
const element = ["agent-chat.ts", "views/frame.ts", "styles/tokens.styles.ts"].map(source).join("");
const launcher = source("agent-chat-launcher.ts");
/** The launcher's views are a chunk of their own. */
const launcherView = source("chunks/launcher-view.ts");
const views = files.filter(({ path }) => !path.startsWith("chunks/launcher"));

function documented(code: string, tag: string): string[] {
  return [...code.matchAll(new RegExp(`^ \\* @${tag} ([\\w-]+)`, "gm"))].map(([, name = ""]) => name);
}

/** Names that `pattern` captures in these files; one capture may hold several. */
function found(sources: readonly { code: string }[], pattern: RegExp): string[] {
  const names = sources.flatMap(({ code }) =>
    [...code.matchAll(pattern)].flatMap(([, list = ""]) => list.split(/[\s,]+/)),
  );
  return [...new Set(names)].sort();
}

const part = /(?:\bpart="|"part", "|(?:icon|small)Button\(\s*")([^"]+)"/g;

test("every part of <agent-chat> that is documented is in a view, and the other way round", () => {
  const names = documented(element, "csspart");
  assert.ok(names.length > 20);
  assert.deepEqual(found(views, part), names.sort());
});

test("every slot of <agent-chat> that is documented is in a view, and the other way round", () => {
  assert.deepEqual(found(views, /<slot name="([^"]+)"/g), documented(element, "slot").sort());
});

test("the launcher has the parts that it documents, and hands on all parts of the chat", () => {
  const own = found([{ code: launcherView }], part);
  assert.deepEqual(own, documented(launcher, "csspart").sort());
  const list = /CHAT_PARTS =\s*([^;]*);/.exec(launcherView)?.[1] ?? "";
  const exported = [...list.matchAll(/[\w-]+/g)].map(([name]) => name);
  assert.deepEqual(exported.sort(), documented(element, "csspart").sort());
});

test("the launcher has a slot of its own, and hands on all slots of the chat", () => {
  const [own] = documented(launcher, "slot");
  const list = /CHAT_SLOTS = \[([^\]]*)\]/.exec(launcherView)?.[1] ?? "";
  const handedOn = [...list.matchAll(/[\w-]+/g)].map(([name]) => name);
  const fixed = found([{ code: launcherView }], /<slot name="([^"]+)"/g);
  assert.deepEqual([...handedOn, ...fixed].sort(), [own, ...documented(element, "slot")].sort());
});

/** Where the variables of a site become private ones: those of code, steps and launcher come with these. */
const TOKENS = [
  "styles/tokens.styles.ts",
  "chunks/highlight.styles.ts",
  "styles/launcher-button.styles.ts",
  "styles/steps.styles.ts",
];

test("every documented variable is read in one place, and no style sets one", () => {
  const names = [...(element + launcher).matchAll(/@cssprop --agent-chat-([\w-]+)/g)].map(([, name]) => name);
  const tokens = TOKENS.map(source).join("");
  const read = [...tokens.matchAll(/--_([\w-]+):\s*var\(\s*--agent-chat-([\w-]+),/g)];
  assert.deepEqual(read.map(([, own]) => own).sort(), names.sort());
  for (const [, own, name] of read) assert.equal(own, name);
  const mentions = files.flatMap(({ path, code }) => (code.includes("var(--agent-chat-") ? [path] : []));
  assert.deepEqual(mentions.sort(), TOKENS.toSorted());
  for (const { path, code } of files) assert.doesNotMatch(code, /--agent-chat-[\w-]+:/, path);
});

test("every private variable that a rule reads is set", () => {
  const styles = files.filter(({ path }) => path.endsWith(".styles.ts"));
  const read = found(styles, /var\(--([\w-]+)\)/g);
  // By a rule, or by a script.
  const set = new Set([...found(styles, /--([\w-]+):/g), ...found(files, /\("--([\w-]+)",/g)]);
  assert.ok(read.length > 15);
  assert.deepEqual(
    read.filter((name) => !set.has(name)),
    [],
  );
});

test("no template says anything by itself: every word comes from the table of texts", () => {
  const templates = files.flatMap(({ path, code }) =>
    [...code.matchAll(/html`((?:[^`$]|\$\{[^}]*\}|\$)*)`/g)].map(([, html = ""]) => ({
      path,
      html: html.replace(/\$\{[^}]*\}/g, "").replace(/=>/g, ""),
    })),
  );
  assert.ok(templates.length > 30);
  for (const { path, html } of templates) {
    const between = [...html.matchAll(/>([^<>]*)</g)].map(([, text = ""]) => text.trim());
    const named = [...html.matchAll(/(?:aria-label|title|alt|placeholder)="([^"]+)"/g)];
    const words = [...between, ...named.map(([, text = ""]) => text)].filter((text) => /\p{L}{2}/u.test(text));
    assert.deepEqual(words, [], path);
  }
});

test("no source holds what a strict policy forbids: styles or handlers in attributes, and code made of texts", () => {
  const forbidden =
    /\sstyle=|\son[a-z]+="|setAttribute\("(?:style|on\w+)"|\beval\(|\bFunction\(|insertAdjacentHTML|\.outerHTML/;
  for (const { path, code } of files) {
    const withoutComments = code.replace(/\/\*[\s\S]*?\*\/|\/\/ .*/g, "");
    assert.equal(forbidden.exec(withoutComments)?.[0], undefined, path);
  }
});
