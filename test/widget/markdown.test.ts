import "../support/dom.ts";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { en } from "../../widget/i18n/strings.ts";
import { decodeEntities } from "../../widget/markdown/entities.ts";
import { MarkdownText } from "../../widget/markdown/markdown-text.ts";
import { assertDrawn, newStream, streamed } from "../support/markdown.ts";

const rendered = (text: string) => streamed(text);

/** Page translators must not translate code. */
const CODE = '<code translate="no">';

const names = (root: Element, selector: string) => [...root.querySelectorAll(selector)].map((node) => node.textContent);

test("inline marks become elements", () => {
  const root = rendered("**b** *i* ~~d~~ `c` ***both***");
  assert.deepEqual(names(root, "strong"), ["b", "both"]);
  assert.deepEqual(names(root, "em"), ["i", "both"]);
  assert.deepEqual(names(root, "del"), ["d"]);
  assert.deepEqual(names(root, "code"), ["c"]);
});

const MEANT: readonly (readonly [source: string, html: string])[] = [
  ["これは**「重要」**な点", "これは<strong>「重要」</strong>な点"],
  ["日本語の**強調。**文", "日本語の<strong>強調。</strong>文"],
  ["请看**《说明》**和**（注意）**：", "请看<strong>《说明》</strong>和<strong>（注意）</strong>："],
  ["中文**“引号”**中文", "中文<strong>“引号”</strong>中文"],
  ["使用*(a)*，**`x`**吧", "使用<em>(a)</em>，<strong><code>x</code></strong>吧"],
  ['한국어**(굵게)**는 **"됩니다"**만', '한국어<strong>(굵게)</strong>는 <strong>"됩니다"</strong>만'],
  ["漢**_強調_**字と**太字：**と", "漢<strong><em>強調</em></strong>字と<strong>太字：</strong>と"],
  ["𠮷**「野家」**𠮷", "𠮷<strong>「野家」</strong>𠮷"],
  ["旧~~「値段」~~新", "旧<del>「値段」</del>新"],
  ['a**"b"**c', 'a**"b"**c'],
  ["漢_(h)_字", "漢_(h)_字"],
  ["5~7U and 100~200x, ~5 and ~/bin", "5~7U and 100~200x, ~5 and ~/bin"],
  ["~gone~ and ~~gone~~", "~gone~ and <del>gone</del>"],
];

test("marks mean what models write: beside CJK punctuation they count, and single tildes do not, at every cut", () => {
  for (const [source, html] of MEANT) assertDrawn(source, `<p>${html.replaceAll("<code>", CODE)}</p>`);
});

const NAMED: readonly (readonly [source: string, html: string])[] = [
  ["H<sub>2</sub>O and x<SUP>2</SUP>", "<p>H<sub>2</sub>O and x<sup>2</sup></p>"],
  ["Press <kbd>Ctrl</kbd>+<kbd>&lt;</kbd> &amp; go", "<p>Press <kbd>Ctrl</kbd>+<kbd>&lt;</kbd> &amp; go</p>"],
  ["<u>a **b** <s>c</s></u> d", "<p><u>a <strong>b</strong> <s>c</s></u> d</p>"],
  [
    "<mark>new</mark> <ins>in</ins> <s>out</s> <small>fine</small>",
    "<p><mark>new</mark> <ins>in</ins> <s>out</s> <small>fine</small></p>",
  ],
  ["<br>\n*a*", "<p><br>\n<em>a</em></p>"],
  ['<u class="x">a</u> and <u>b', '<p>&lt;u class="x"&gt;a&lt;/u&gt; and &lt;u&gt;b</p>'],
  ["**<u>a** b</u>", "<p><strong>&lt;u&gt;a</strong> b&lt;/u&gt;</p>"],
  ["<u>a\n\nb</u>", "<p>&lt;u&gt;a</p><p>b&lt;/u&gt;</p>"],
  ["<script>a</script>", '<p class="source">&lt;script&gt;a&lt;/script&gt;</p>'],
  [
    "Text\n<details>\n<summary>More **words**</summary>\n\n- a\n- b\n\n</details>\n\nEnd",
    '<p>Text</p><details dir="auto"><summary>More <strong>words</strong></summary><ul dir="auto" class="tight"><li><p>a</p></li><li><p>b</p></li></ul></details><p>End</p>',
  ],
  [
    "<details><summary>a</summary>\nb\n<details>\n<summary>c</summary>\nd\n</details>\ne `</details>`\n</details> f",
    `<details dir="auto"><summary>a</summary><p>b</p><details dir="auto"><summary>c</summary><p>d</p></details><p>e ${CODE}&lt;/details&gt;</code></p></details><p>f</p>`,
  ],
  ["The <details> element", "<p>The &lt;details&gt; element</p>"],
  ["<details open>\na\n</details>", '<p class="source">&lt;details open&gt;\na\n&lt;/details&gt;</p>'],
];

test("a few harmless names of HTML are elements where they end in their own block, without attributes, at every cut", () => {
  for (const [source, html] of NAMED) assertDrawn(source, html);
});

test("a quote that begins with the name of a kind is a box with a title, at every cut, and never shows its code", () => {
  const box = (kind: string, title: string, html: string) =>
    `<div class="alert alert-${kind}" dir="auto" role="note"><p class="alert-title">${title}</p>${html}</div>`;
  for (const [source, html] of [
    ["> [!NOTE]\n> Some *text*\n> goes on.", box("note", "Note", "<p>Some <em>text</em>\ngoes on.</p>")],
    ["> [!warning]  \n>\n> a\n>\n> b", box("warning", "Warning", "<p>a</p><p>b</p>")],
    ["> [!TIP]\n\nEnd", `${box("tip", "Tip", "")}<p>End</p>`],
    ["> [!NOTE] a", '<blockquote dir="auto"><p>[!NOTE] a</p></blockquote>'],
    ["> [!OTHER]\n> a", '<blockquote dir="auto"><p>[!OTHER]\na</p></blockquote>'],
  ] as const) {
    assertDrawn(source, html);
  }
  const root = document.createElement("div");
  const stream = newStream(root);
  const text = "> [!CAUTION]\n> Hot";
  for (let end = 1; end <= text.length; end += 1) {
    stream.update(text.slice(0, end), true);
    assert.doesNotMatch(root.textContent ?? "", /[[!\]]/);
  }
});

test("a bare address ends before full-width and CJK punctuation, and keeps its letters", () => {
  const link = "https://example.com/a";
  for (const [text, address] of [
    ...["，详见", "。", "）和", "」です", "”。", "、b", "！", "；", "——见", "…", "《"].map((end) => [link + end, link]),
    ["（www.example.com", undefined],
    ["见 www.example.com：", "http://www.example.com/"],
    ["联系 a@example.com。", "mailto:a@example.com"],
    [
      "https://ja.wikipedia.org/wiki/ジョン・レノン です",
      `https://ja.wikipedia.org/wiki/${encodeURI("ジョン・レノン")}`,
    ],
    ["https://example.com/a_(b)?c=d,e.", "https://example.com/a_(b)?c=d,e"],
  ] as const) {
    for (const root of [rendered(text ?? ""), streamed(text ?? "", 1)]) {
      assert.equal(root.querySelector("a")?.href, address, text);
      assert.equal(root.textContent, text);
    }
  }
});

test("a line break that is written as HTML breaks the line, in the cell of a table too, at every cut", () => {
  for (const [source, html] of [
    ["Ann<br>Bob<BR/>Cid<br />Dan", "<p>Ann<br>Bob<br>Cid<br>Dan</p>"],
    ["**a <br>b**", "<p><strong>a <br>b</strong></p>"],
    ["`a<br>b`, \\<br> and <brand>", "<p><code>a&lt;br&gt;b</code>, &lt;br&gt; and &lt;brand&gt;</p>"],
  ] as const) {
    assertDrawn(source, html.replaceAll("<code>", CODE));
  }
  const table = streamed("| A |\n|---|\n| Ann<br>*Bob* |", 1);
  assert.equal(table.querySelector("td")?.innerHTML, "Ann<br><em>Bob</em>");
});

test("headings of six levels have no id", () => {
  const root = rendered("# 1\n## 2\n### 3\n#### 4\n##### 5\n###### 6\n\nSetext\n===");
  assert.deepEqual(
    [...root.children].map((node) => node.localName),
    ["h1", "h2", "h3", "h4", "h5", "h6", "h1"],
  );
  assert.equal(root.querySelector("[id]"), null);
});

test("a fenced block shows its language, a copy button and its text", () => {
  const root = rendered("```TypeScript title=x\nconst a = 1 < 2;\n\n  b\n```");
  assert.deepEqual(names(root, ".code-language"), ["TypeScript"]);
  assert.equal(root.querySelector<HTMLElement>("button.copy")?.title, "Copy");
  assert.equal(root.querySelector("code")?.textContent, "const a = 1 < 2;\n\n  b");
  assert.equal(root.querySelector("code")?.className, "language-typescript");
});

test("an info string becomes a class only when it is a plain name", () => {
  for (const info of ['js" onload="x', "a.b", "x".repeat(31), "ж", "a&quot;b"]) {
    assert.equal(
      rendered(`\`\`\`${info}\nx\n\`\`\``)
        .querySelector("code")
        ?.className.match(/[^a-z-]/),
      null,
    );
  }
  for (const info of ["c++", "c#", "objective-c", "x".repeat(30)]) {
    const code = rendered(`\`\`\`${info}\nx\n\`\`\``).querySelector("code");
    assert.equal(code?.className, `language-${info}`);
  }
});

test("indented code is a code block without a language", () => {
  const root = rendered("    let x\n      y");
  assert.deepEqual(names(root, ".code-language"), ["Code"]);
  assert.equal(root.querySelector("code")?.textContent, "let x\n  y");
});

test("lists nest, keep their start number and say whether they are loose", () => {
  const root = rendered("3. a\n   - b\n     - c\n4. d");
  assert.equal(root.querySelector("ol")?.getAttribute("start"), "3");
  assert.equal(root.querySelectorAll("ol > li").length, 2);
  assert.equal(root.querySelectorAll("ol > li > ul > li > ul > li").length, 1);
  assert.equal(root.querySelector("ol")?.className, "tight");
  assert.equal(rendered("- a\n\n- b").querySelector("ul")?.className, "loose");
});

test("a task is a disabled checkbox that says whether it is done", () => {
  for (const text of ["- [x] done\n- [ ] open", "- [x] done\n\n- [ ] open"]) {
    const boxes = [...rendered(text).querySelectorAll<HTMLInputElement>("li.task > p > input")];
    assert.deepEqual(
      boxes.map((box) => [box.type, box.disabled, box.checked, box.getAttribute("aria-label")]),
      [
        ["checkbox", true, true, "Completed task"],
        ["checkbox", true, false, "Open task"],
      ],
    );
  }
});

test("a table is aligned by class inside a box, which is a stop of the keyboard only once it is known to scroll", () => {
  const root = rendered("| a | b | c | d |\n|:--|:-:|--:|---|\n| 1 | *2* | 3 | 4 |");
  const box = root.querySelector(".table");
  assert.equal(box?.hasAttribute("tabindex"), false);
  assert.deepEqual(
    [...root.querySelectorAll("td")].map((cell) => cell.className),
    ["align-left", "align-center", "align-right", ""],
  );
  assert.deepEqual(names(root, "th[scope=col]"), ["a", "b", "c", "d"]);
  assert.deepEqual(names(root, "td em"), ["2"]);
});

test("quotes, rules and hard breaks", () => {
  const root = rendered("> a\n> > b\n\n***\n\nline  \nnext\\\nlast");
  assert.equal(root.querySelector("blockquote > blockquote > p")?.textContent, "b");
  assert.equal(root.querySelectorAll("hr").length, 1);
  assert.equal(root.querySelectorAll("p > br").length, 2);
});

test("every name of a character in HTML 4 is known, and no name is wrong", () => {
  const html4 = readFileSync(new URL("../fixtures/markdown/html4-entities.txt", import.meta.url), "utf8");
  const lines = html4.trim().split("\n");
  assert.equal(lines.length, 252);
  for (const line of lines) {
    const [name = "", code = ""] = line.split(" ");
    assert.equal(decodeEntities(`&${name};`), String.fromCodePoint(Number(code)), name);
  }
  // An HTML 5 entity of two characters, and one that ends like an invalid name.
  assert.equal(decodeEntities("&NotEqualTilde; &CounterClockwiseContourIntegral; &semi;"), "≂̸ ∳ ;");
  for (const name of ["Alpha1", "SIGMA", "sigmaF", "930", "constructor", "notit", "ampx"]) {
    assert.equal(decodeEntities(`&${name};`), `&${name};`);
  }
});

test("references to characters are resolved in text, and left alone in code", () => {
  const root = rendered("&copy; &#169; &#xA9; &amp;lt; \\&amp; &unknown; `&copy;`\n\n    &copy;");
  assert.equal(root.querySelector("p")?.textContent, "© © © &lt; &amp; &unknown; &copy;");
  assert.equal(root.querySelector("pre")?.textContent, "&copy;");
});

test("links, addresses and references become links", () => {
  const root = rendered('[a](/x "t") <https://b.example/?q=&amp;> www.c.example d@e.example [f][g]\n\n[g]: tel:+1');
  assert.deepEqual(
    [...root.querySelectorAll("a")].map((link) => link.getAttribute("href")),
    ["/x", "https://b.example/?q=&amp;", "http://www.c.example/", "mailto:d@e.example", "tel:+1"],
  );
});

test("the element shows its text, keeps its nodes while that grows, and speaks another language when it is given one", async () => {
  const context = { strings: en, renderers: {}, theme: "light", headingLevel: 0 } as const;
  const element = new MarkdownText();
  document.body.replaceChildren(element);
  Object.assign(element, { context, text: "# Title\n\nsome **te", isStreaming: true });
  await element.updateComplete;
  const title = element.querySelector("h1");
  assert.equal(element.querySelector("strong")?.textContent, "te");
  // Other changes of the context have no effect.
  Object.assign(element, {
    context: { ...context },
    text: "# Title\n\nsome **text**\n\n```\ncode\n```",
    isStreaming: false,
  });
  await element.updateComplete;
  assert.equal(element.querySelector("h1"), title);
  assert.equal(element.querySelector("p > strong")?.textContent, "text");
  assert.equal(element.querySelector<HTMLElement>(".copy")?.title, "Copy");
  element.context = { ...context, strings: { ...en, copy: "Kopieren" } };
  await element.updateComplete;
  assert.equal(element.querySelector<HTMLElement>(".copy")?.title, "Kopieren");
  assert.equal(element.querySelector("code")?.textContent, "code");
});

test("an underline makes a heading, with a tab behind it and under more than a hundred lines, too", () => {
  for (const text of ["Title\n===\t", "Title\n---\t\n", `${"line\n".repeat(150)}---\n`]) {
    const root = rendered(text);
    assert.equal(root.children.length, 1, JSON.stringify(text.slice(0, 20)));
    assert.match(root.firstElementChild?.localName ?? "", /^h[12]$/);
  }
});

test("a long text that is there at once is drawn in pieces, and is in the end what it is as a whole", async (t) => {
  t.mock.getter(document, "hidden", () => false);
  const text = `${"# A\n\nSee [this][b].\n\n- one\n- two\n\n> said\n\n".repeat(300)}[b]: https://example.org/\n`;
  const element = new MarkdownText();
  document.body.replaceChildren(element);
  Object.assign(element, { context: { strings: en, renderers: {}, theme: "light", headingLevel: 0 }, text });
  const lengths: number[] = [];
  while (!(await element.updateComplete)) lengths.push(element.textContent.length);
  const whole = rendered(text);
  assert.ok(lengths.length > 2 && (lengths[0] ?? 0) < whole.textContent.length / 2, `drawn up to ${lengths}`);
  assert.ok(element.innerHTML === whole.innerHTML, "the same elements");
});

for (const [what, duration, more, until] of [
  ["came in a coarse piece, and a frame is awaited", 0, "words ".repeat(100), "paused"],
  ["came in a coarse piece, of which a part was just drawn", 0, "words ".repeat(100), "drawn"],
  ["is slow to draw, and a pause has begun", 20, "more", "paused"],
  ["is slow to draw, and comes together with the end", 20, "more", "now"],
] as const) {
  test(`the end of an answer is drawn before the page shows that it has ended, also where it ${what}`, async (t) => {
    t.mock.getter(document, "hidden", () => false);
    t.mock.method(globalThis, "requestAnimationFrame", () => 0);
    let now = 0;
    t.mock.method(performance, "now", () => (now += duration));
    const element = new MarkdownText();
    document.body.replaceChildren(element);
    const context = { strings: en, renderers: {}, theme: "light", headingLevel: 0 };
    Object.assign(element, { context, text: "First ", isStreaming: true });
    await element.updateComplete;
    element.text += more;
    if (until === "paused") await new Promise(setImmediate);
    if (until === "drawn") await element.updateComplete;
    assert.ok(!element.textContent.endsWith(more.trim()), "it is drawn in time");
    Object.assign(element, { text: `${element.text} end`, isStreaming: false });
    await new Promise(setImmediate);
    assert.equal(element.textContent, `First ${more} end`);
  });
}
