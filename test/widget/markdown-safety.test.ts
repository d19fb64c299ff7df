import "../support/dom.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { HOSTILE_ANSWERS } from "../fixtures/hostile-answers.ts";
import { streamed } from "../support/markdown.ts";

const rendered = (text: string) => streamed(text, Math.ceil(text.length / 2));

test("raw HTML is shown as text", () => {
  for (const source of [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a <b onclick=alert(1)>b</b> c",
    "<div>\n<iframe srcdoc=x></iframe>\n</div>",
    "- <svg/onload=alert(1)>",
    "| <a href=javascript:alert(1)>x</a> |\n|---|",
    "<!-- comment -->",
    "<style>* { display: none }</style>",
    "[<img src=x onerror=alert(1)>](/x)",
  ]) {
    const root = rendered(source);
    const text = source.replace(/^- |\||---|\n$|\[|\]\(\/x\)/g, "").trim();
    assert.equal(root.textContent?.trim(), text);
    assert.equal(root.querySelector("script, img, b, iframe, svg, style, [onclick]"), null);
  }
});

test("a destination that is not http, https, mailto, tel or relative leaves only its label", () => {
  for (const destination of [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "&#106;avascript:alert(1)",
    "java&Tab;script:alert(1)",
    "java&NewLine;script:alert(1)",
    "javascript&colon;alert(1)",
    "<java\tscript:alert(1)>",
    "\u200bjavascript:alert(1)",
    "\u0001javascript:alert(1)",
    "java\u00adscript:alert(1)",
    "vbscript:x",
    "data:text/html,<script>alert(1)</script>",
    "data:image/svg+xml;base64,PHN2Zz4=",
    "file:///etc/passwd",
    "blob:https://chat.example/x",
    "view-source:https://x",
    "intent://x#Intent;end",
    "https://[",
    "http://",
  ]) {
    const root = rendered(`see [label](${destination}) there`);
    assert.equal(root.querySelector("a"), null, destination);
    assert.match(root.textContent ?? "", /label/);
    assert.equal(rendered(`[label]\n\n[label]: ${destination}`).querySelector("a"), null);
  }
  assert.equal(rendered("<javascript:alert(1)>").querySelector("a"), null);
});

test("what passes carries the attributes that keep the opened page away, and shows its host", () => {
  const [link] = rendered("[x](https://user@evil.example:8443/a?b#c)").querySelectorAll("a");
  assert.equal(link?.getAttribute("target"), "_blank");
  assert.equal(link?.getAttribute("rel"), "noopener noreferrer nofollow");
  assert.equal(link?.getAttribute("title"), "evil.example:8443");
  assert.equal(rendered("[x](//evil.example/)").querySelector("a")?.title, "evil.example");
  const backslashes = rendered("[x](\\\\\\\\evil.example/)").querySelector("a");
  assert.equal(backslashes?.getAttribute("href"), "%5C%5Cevil.example/");
  assert.equal(rendered('[x](/a "trusted.example")').querySelector("a")?.title, "");
});

test("an attribute cannot be left from within a destination", () => {
  const root = rendered('[x](https://a/"onfocus="alert(1)"autofocus=") ![y](https://a/"onerror="x)');
  for (const node of root.querySelectorAll("*")) {
    assert.ok(![...node.attributes].some(({ name }) => name.startsWith("on") || name === "autofocus"));
  }
});

test("no image is requested by itself, whatever way it is written", () => {
  for (const source of [
    "![a](https://evil.example/x.png)",
    "![a](//evil.example/x.png)",
    "![a][r]\n\n[r]: https://evil.example/x.png",
    "![r]\n\n[r]: <https://evil.example/x.png> 'title'",
    "[![a](https://evil.example/x.png)](https://evil.example)",
    "| ![a](https://evil.example/x.png) |\n|---|",
    "![a](/api/logout)",
    "![a](data:image/svg+xml;base64,PHN2Zz4=)",
    "![a](data:text/html;base64,PHN2Zz4=)",
    "![a](blob:https://chat.example/x)",
    "![a](javascript:alert(1))",
  ]) {
    assert.equal(rendered(source).querySelector("img, [src], [srcset], [style]"), null, source);
  }
});

test("an external image is a button that names its host, others are their text", () => {
  const button = rendered("![a *cat*](https://img.example/x.png)").querySelector("button");
  assert.equal(button?.textContent, "Load image from img.example a cat");
  assert.equal(rendered("![a cat](/x.png)").textContent, "a cat");
  assert.equal(rendered("[![a cat](https://img.example/x)](/y)").querySelector("a")?.textContent, "a cat");
});

test("a raster image in a data: URL is shown at once, also a long one", () => {
  const source = `data:image/png;base64,${"iVBORw0KGgo".repeat(4000)}=`;
  const image = rendered(`Look: ![a cat](${source}) there`).querySelector("img");
  assert.equal(image?.getAttribute("src"), source);
  assert.equal(image?.getAttribute("alt"), "a cat");
});

test("nesting ends at 32 levels, and what is deeper is shown as text", () => {
  for (const [marks, selector] of [
    ["> ", "blockquote"],
    ["- ", "ul"],
    ["1. ", "ol"],
  ] as const) {
    const root = rendered(`${marks.repeat(5000)}deep`);
    assert.equal(root.querySelectorAll(selector).length, 32);
    assert.match(root.textContent ?? "", /deep$/);
  }
  const emphasis = rendered(`${"*a **b ".repeat(60)}x${"** c*".repeat(60)}`);
  assert.ok(emphasis.querySelectorAll("em, strong").length <= 32);
});

test("endless combining marks continue on a dotted circle every 30", () => {
  const shown = rendered(`a${"\u0301".repeat(100_000)}`).textContent ?? "";
  assert.equal(shown.match(/\u0301/g)?.length, 100_000);
  assert.equal(/\p{M}{31}/u.test(shown), false);
  assert.equal(rendered("e\u0301\u0323").textContent, "e\u0301\u0323");
});

const ALLOWED = new Set(
  "a blockquote br button code del div em h1 h2 h3 h4 h5 h6 hr img input li ol p pre span strong table tbody td th thead tr ul".split(
    " ",
  ),
);

test("of all hostile answers none makes an element or an attribute that could do harm", () => {
  for (const { name, text } of HOSTILE_ANSWERS) {
    for (const node of streamed(text, 7).querySelectorAll("*")) {
      const isIcon = node.parentElement?.closest("button.copy");
      assert.ok(isIcon || ALLOWED.has(node.localName), `${name}: <${node.localName}>`);
      for (const { name: attribute, value } of node.attributes) {
        assert.doesNotMatch(attribute, /^on|^style$|^srcdoc$|^ping$|^formaction$/, name);
        if (attribute === "href") assert.doesNotMatch(value, /^\s*(?:javascript|data|vbscript|file|blob):/i, name);
        if (attribute === "src") assert.match(value, /^data:image\/(?:png|jpeg|gif|webp);base64,/, name);
      }
    }
  }
});
