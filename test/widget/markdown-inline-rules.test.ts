/** Inline rules, which the table of the chat's own ones is tried with: formulas and references to sources. */

import "../support/dom.ts";
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { inlineRules } from "../../widget/markdown/inline-rules.ts";
import { canonical, newStream, streamed } from "../support/markdown.ts";

const drawnAs = (name: string) => (text: string) => {
  const node = document.createElement(name);
  node.textContent = text;
  return node;
};

const ownRules = inlineRules.length;
inlineRules.push(
  {
    open: "$",
    pattern: /\$([^\s$]|[^\s$][^$]*[^\s$])\$(?!\d)/y,
    unfinished: /\$(?:[^\s\d$][^$]*)?$/y,
    draw: drawnAs("var"),
  },
  { open: "\\(", pattern: /\\\((.+?)\\\)/y, unfinished: /\\\((?:(?!\\\)).)*$/y, draw: drawnAs("var") },
  { open: "【", pattern: /【(\d+)】/y, unfinished: /【\d*$/y, draw: drawnAs("sup") },
);
after(() => void inlineRules.splice(ownRules));

function streaming() {
  const root = document.createElement("div");
  const stream = newStream(root);
  return (text: string) => {
    stream.update(text, true);
    return root.innerHTML;
  };
}

const html = (text: string) => streamed(text).innerHTML;

test("what an inline rule reads is no Markdown, and drawn by the rule, wherever it stands", () => {
  assert.equal(
    html("If $a_1*b$ and \\(c*d\\) are *e*, see【1】."),
    "<p>If <var>a_1*b</var> and <var>c*d</var> are <em>e</em>, see<sup>1</sup>.</p>",
  );
  assert.equal(html("**so $x**y$ is** it"), "<p><strong>so <var>x**y</var> is</strong> it</p>");
  assert.equal(html("*a \\(b*c\\) d*"), "<p><em>a <var>b*c</var> d</em></p>");
  assert.equal(streamed("| $a$ |\n|---|\n| *【2】* |").querySelectorAll("th var, td em sup").length, 2);
});

test("what only looks like an inline rule stays as it is written", () => {
  assert.equal(html("costs $5 or $ 6 and *US$8* and $9"), "<p>costs $5 or $ 6 and <em>US$8</em> and $9</p>");
  assert.equal(html("*a \\$+b*c$*"), "<p><em>a $+b</em>c$*</p>");
  assert.equal(
    html("`$a$` and *`$a*b$` c*"),
    '<p><code translate="no">$a$</code> and <em><code translate="no">$a*b$</code> c</em></p>',
  );
  assert.equal(html("\\\\(a\\\\)"), "<p>\\(a\\)</p>");
});

test("text with inline rules ends as if rendered at once, at every cut", () => {
  const text = "> **so $x**y$ is** `$a`, \\(c*d\\)【12】 and $5\n\n- $a\n- b$ *c*";
  for (const step of [1, 2, 5]) assert.equal(canonical(streamed(text, step)), canonical(streamed(text)));
});

test("an unfinished inline rule is held back while more may come, and marks around it are closed", () => {
  const show = streaming();
  for (const text of ["**the $", "**the $a_1", "**the $a_1 + *b"])
    assert.equal(show(text), "<p><strong>the</strong></p>");
  assert.equal(show("**the $a_1 + *b$"), "<p><strong>the <var>a_1 + *b</var></strong></p>");
  assert.equal(streaming()("a \\(b *c"), "<p>a </p>");
  assert.equal(streaming()("a【1"), "<p>a</p>");
  assert.equal(streaming()("costs $5 and *more"), "<p>costs $5 and <em>more</em></p>");
});

test("long text is not cut inside of what an inline rule reads", () => {
  const text = `${"plain words ".repeat(334)} \\(a formula that goes on and on\\) and more. `.repeat(3);
  assert.equal(streamed(text).querySelectorAll("var").length, 3);
});
