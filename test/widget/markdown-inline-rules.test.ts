/** Inline rules: formulas and references to sources, tested through the chat's own table of rules. */

import "../support/dom.ts";
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { inlineRules } from "../../widget/markdown/inline-rules.ts";
import { canonical, newStream, streamed } from "../support/markdown.ts";

const ownRules = inlineRules.length;
inlineRules.push({
  open: "【",
  pattern: /【(\d+)】/y,
  unfinished: /【\d*$/y,
  draw: (text) => {
    const node = document.createElement("sup");
    node.textContent = text;
    return node;
  },
});
after(() => void inlineRules.splice(ownRules));

function streaming() {
  const root = document.createElement("div");
  const stream = newStream(root);
  return (text: string) => {
    stream.update(text, true);
    return root.innerHTML;
  };
}

/** The rendered HTML, with formulas as «…». */
const html = (text: string) =>
  streamed(text).innerHTML.replace(/<span class="tex" .*?><code>(.*?)<\/code><\/span>/gs, "«$1»");

test("what an inline rule reads is no Markdown, and drawn by the rule, wherever it stands", () => {
  assert.equal(
    html("If $a_1*b$ and \\(c*d\\) are *e*, see【1】."),
    "<p>If «$a_1*b$» and «\\(c*d\\)» are <em>e</em>, see<sup>1</sup>.</p>",
  );
  assert.equal(html("**so $x**y$ is** it"), "<p><strong>so «$x**y$» is</strong> it</p>");
  assert.equal(html("*a \\(b*c\\) d*"), "<p><em>a «\\(b*c\\)» d</em></p>");
  assert.equal(streamed("| $a$ |\n|---|\n| *【2】* |").querySelectorAll("th .tex, td em sup").length, 2);
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

test("prices, price levels, variables of a shell and escaped brackets are no formulas", () => {
  for (const text of [
    "It costs $5 and $10, or 50$ and 60$, or US$8 and A$9 ($5-$10).",
    "**$5** to **$10**, $20k–$30k, $5, $6 and $7.50.",
    "Chez Anne ($$) and Bo ($$$), $$–$$$",
    "echo $HOME and $PATH or $A/$B",
    "$AAPL rose, $MSFT fell",
    "\\[1\\] Smith, \\[2, 3\\] and \\[a link\\]",
    "$ a$ and $b $",
    "a\\$b$ `$`",
  ]) {
    for (const step of [text.length, 1]) assert.equal(streamed(text, step).querySelector(".tex"), null, text);
  }
  assert.equal(html("\\$5$ `a`"), '<p>$5$ <code translate="no">a</code></p>');
});

test("formulas are shown as they are written, within a line and on lines of their own", () => {
  for (const formula of [
    ...["$x$", "$n$th", "$5$", "$2n$", "$2^{10} = 1024$", "$\\$5$", "$a < b$", "$f(x)$は", "$\\frac{1}{2}$"],
    ...["\\(a^2\\)", "\\(e^{-x^2}\\,dx\\)", "\\(\\left(a\\right)\\)", "\\[x = 1\\] is", "$$a_1*b*c$$.", "$$x$$ is"],
  ]) {
    const [whole = ""] = /^(\$\$?).*\1|^\\[([].*\\[)\]]/.exec(formula) ?? [];
    const rest = formula.slice(whole.length);
    const text = `So *e* ${formula} *e*`;
    const shown = `<p>So <em>e</em> «${whole.replace("<", "&lt;")}»${rest} <em>e</em></p>`;
    assert.equal(html(text), shown);
    assert.equal(canonical(streamed(text, 1)), canonical(streamed(text)), text);
  }
  for (const formula of [
    "\\[\na\n- b\n= c\n\\]",
    "$$\na_1 + *b* * c\n+ d\n# e\n$$",
    "$$ x_1 $$",
    "\\[ \\begin{aligned} a &= b \\\\ c &= d \\end{aligned} \\]",
  ]) {
    const shown = `<p class="formula">«${formula.replaceAll("&", "&amp;")}»</p>`;
    assert.equal(html(`The sum\n${formula}\nand *so*`), `<p>The sum</p>${shown}<p>and <em>so</em></p>`);
    const item = formula.replaceAll("\n", "\n   ");
    const list = streamed(`1. The sum\n\n   ${item}\n\n   and\n2. b`);
    assert.equal(list.querySelector("li .tex")?.textContent, formula);
    const quote = streamed(`> The sum\n> ${formula.replaceAll("\n", "\n> ")}\n> and`);
    assert.equal(quote.querySelector("blockquote .tex")?.textContent, formula);
  }
});

test("a formula that never ends is text, and so is what follows on the line of its end", () => {
  assert.equal(html("The sum\n\\[ x^2\n\n*e*"), "<p>The sum\n[ x^2</p><p><em>e</em></p>");
  assert.equal(html("So\n\\[ x^2 \\] is"), "<p>So\n«\\[ x^2 \\]» is</p>");
});

test("a formula on lines of its own grows as it is written, and no list or heading is seen in it", () => {
  const show = streaming();
  const text = "The sum\n\n\\[\na_1\n- b\n===\n\\]\n";
  for (let end = text.indexOf("a_1"); end <= text.length; end += 1) {
    assert.match(
      show(text.slice(0, end)),
      /^<p>The sum<\/p>(?:<p class="formula"><span class="tex"[^>]*><code>\\\[[^<]*<\/code><\/span><\/p>)?$/,
    );
  }
});

test("text with inline rules ends as if rendered at once, at every cut", () => {
  const text = "> **so $x**y$ is** `$a`, \\(c*d\\)【12】 and $5\n\n- $a\n- b$ *c*";
  for (const step of [1, 2, 5]) assert.equal(canonical(streamed(text, step)), canonical(streamed(text)));
});

test("an unfinished inline rule is held back while more may come, and marks around it are closed", () => {
  const show = streaming();
  for (const text of ["**the $", "**the $a_1", "**the $a_1 + *b"])
    assert.equal(show(text), "<p><strong>the</strong></p>");
  assert.match(
    show("**the $a_1 + *b$"),
    /^<p><strong>the <span class="tex".*><code>\$a_1 \+ \*b\$<\/code><\/span><\/strong><\/p>$/,
  );
  assert.equal(streaming()("a \\(b *c"), "<p>a </p>");
  assert.equal(streaming()("a【1"), "<p>a</p>");
  assert.equal(streaming()("costs $5 and *more"), "<p>costs $5 and <em>more</em></p>");
});
