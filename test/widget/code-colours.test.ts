import "../support/dom.ts";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { grammarOf } from "../../widget/markdown/code-blocks/code-blocks.ts";

// The chunk observes visibility, which does not exist without a layout.
Object.assign(globalThis, {
  IntersectionObserver: class {
    observe() {}
    unobserve() {}
  },
});
const { spansOf } = await import("../../widget/markdown/code-blocks/highlight.ts");

const styles = (path: string) => readFileSync(new URL(`../../widget/${path}`, import.meta.url), "utf8");

/** `[light, dark]` of a variable with this name. */
function coloursOf(css: string, name: string): [string, string] {
  const [, light = "", dark = ""] =
    new RegExp(`--agent-chat-${name},[^;]*light-dark\\((#\\w{6}), (#\\w{6})\\)`).exec(css) ?? [];
  return [light, dark];
}

/** Contrast ratio of two colours by WCAG 2. */
function contrast(a: string, b: string): number {
  const luminance = (colour: string) => {
    const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
      const value = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [low = 0, high = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

test("every colour of code reaches 4.5:1 on the background of code, in both themes", () => {
  const css = styles("styles/code-blocks.css");
  const sunken = coloursOf(styles("styles/tokens.css") + styles("styles/screen.css"), "sunken");
  const names = [...css.matchAll(/--agent-chat-(code-\w+)/g)].map(([, name = ""]) => name);
  assert.equal(names.length, 9);
  for (const name of names) {
    for (const [theme, colour] of coloursOf(css, name).entries()) {
      const ratio = contrast(colour, sunken[theme] ?? "");
      assert.ok(ratio >= 4.5, `${name} ${colour}: ${ratio.toFixed(2)}`);
    }
  }
});

function code(language: string): Element {
  const element = document.createElement("code");
  element.className = `language-${language}`;
  return element;
}

/** Names after a fence, a source, and a part of it that gets a colour in these languages. */
const SAMPLES: [languages: string, source: string, text: string, role: string][] = [
  ["js ts jsx tsx javascript typescript mjs cts", "const a = 1;", "const", "keyword"],
  ["py python", "def f(): return None", "def", "keyword"],
  ["bash sh shell zsh console", "if true; then", "if", "keyword"],
  ["json jsonc jsonl", '{"a": 1}', '"a"', "variable"],
  ["html htm vue svelte xml svg", '<a href="x">', "href", "type"],
  ["css scss", "a { color: red }", "color", "variable"],
  ["yaml yml", "name: x", "name", "variable"],
  ["toml", "[a]\nb = 1", "[a]", "keyword"],
  ["ini conf", "[a]\nb = 1", "[a]", "keyword"],
  ["sql postgresql", "select 1", "select", "keyword"],
  ["go golang rs rust", "match break", "break", "keyword"],
  ["java c cpp c++", "int a;", "int", "keyword"],
  ["lua", "local a", "local", "keyword"],
  ["docker dockerfile", "FROM scratch", "FROM", "keyword"],
  ["diff patch", "-a\n+b", "-a", "deleted"],
];

test("every language that is known has a grammar that colours it, and no other is guessed", () => {
  for (const [languages, source, text, role] of SAMPLES) {
    for (const language of languages.split(" ")) {
      const tokens = spansOf(source, grammarOf(code(language)) ?? "") ?? [];
      const found = tokens.map((token) => [source.slice(token.start, token.end), token.role]);
      assert.ok(
        found.some(([part, name]) => part === text && name === role),
        `${language}: ${JSON.stringify(found)}`,
      );
    }
  }
  for (const language of ["", "text", "plaintext", "mermaid", "constructor", "todo", "regex"]) {
    assert.equal(grammarOf(code(language)), undefined, language);
  }
});

test("what is painted lies in the source, in order and without overlaps", () => {
  const source = readFileSync(new URL("../../widget/conversations/messages.ts", import.meta.url), "utf8");
  const tokens = spansOf(source, "ts") ?? [];
  assert.ok(tokens.length > 200);
  let end = 0;
  for (const token of tokens) {
    assert.ok(token.start >= end && token.end > token.start && token.end <= source.length);
    end = token.end;
  }
});

test("code over 50 kB stays plain, and so does what costs a grammar the square of its length", () => {
  assert.ok(spansOf("a = 1\n".repeat(8000), "py"));
  assert.equal(spansOf("a = 1\n".repeat(8400), "py"), undefined);
  assert.equal(spansOf("a".repeat(1000), "js"), undefined);
  assert.equal(spansOf(`a${"\n".repeat(200)}b`, "js"), undefined);
});
