/**
 * Answers of all shapes, each streamed in random pieces in a real browser: nothing flickers, they end as if rendered at once,
 * and look as on GitHub (`github.json`, written by update.py), except for intended differences. `npm test` tries every third
 * shape, `npm run test:rich` all of them; `RICH_SEED` changes the pieces.
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import { openChat } from "../browser/chat-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { randomFrom } from "../support/random.ts";
import { say } from "../support/scripted-provider.ts";

const browser = await launchBrowser({ after });

const CJK = "Beside CJK punctuation marks count, as they are meant; a single tilde strikes nothing out.";
const FORMULA =
  "Formulas stay as they are written, below what is drawn. GitHub's parser leaves them to another program, and eats backslashes.";
const HTML = "Raw HTML is text. GitHub parses it, and takes away afterwards what could do harm.";
const ALERT = "GitHub draws alerts after its parser. Ours are boxes as well.";

/** Intended differences from GitHub, with the reasons. */
const OTHERWISE: Readonly<Record<string, string>> = {
  "dangerous link": "Its address could run a script.",
  "Japanese bold beside marks": CJK,
  "Chinese bold beside quotes": CJK,
  Korean: CJK,
  "Chinese with an address": "A bare address ends before full-width punctuation.",
  "image in a sentence and in a link": "The page at / may load none, and links to it.",
  "image of another site": "The page at / may load none, and links to it.",
  "formulas in a line": FORMULA,
  "formula on its own lines": FORMULA,
  "formula between dollars": FORMULA,
  "formula with lines like a list": FORMULA,
  "formula in a list and a table": FORMULA,
  matrix: FORMULA,
  "formulas of fractions, roots and powers": FORMULA,
  "formulas of sums, integrals and limits": FORMULA,
  "derivation in lines": FORMULA,
  "formula of cases": FORMULA,
  "formulas of vectors, sets and logic": FORMULA,
  "formulas of chemistry and units": FORMULA,
  "wrong formula": FORMULA,
  "formula beside Japanese": FORMULA,
  "footnote that nothing refers to": "A model's words are not dropped.",
  "note alert": ALERT,
  "all alerts": ALERT,
  details: "Markdown in a summary is read, too.",
  "other HTML": HTML,
  "comment of HTML": HTML,
  "generics that look like tags": HTML,
  "thoughts in the text": HTML,
  "everything at once": `${FORMULA} ${ALERT}`,
};

/** Shapes in which visible text disappears while more arrives, with the reasons why this is unavoidable. */
const SHRINKS: Readonly<Record<string, string>> = {
  "reference links": "Text in brackets is a link only once its definition has come.",
};

const [, ...parts] = readFileSync("test/rich/shapes.txt", "utf8").split(/^=== (.*)\n/m);
const names = parts.filter((_, index) => index % 2 === 0);
const texts = parts.filter((_, index) => index % 2 === 1).map((text) => text.replace(/\n$/, ""));
const github: Record<string, string> = JSON.parse(readFileSync("test/rich/github.json", "utf8"));
const all = names.map((name, index) => ({ name, text: texts[index] ?? "", github: github[name] ?? "" }));
const seed = Number(process.env.RICH_SEED ?? 41);
const shapes = process.env.RICH === "all" ? all : all.filter((_, index) => index % 3 === seed % 3);

/** End positions of pieces of 1 to 30 characters. */
function endsOf(text: string, random: () => number): number[] {
  const ends: number[] = [];
  for (let end = 0; end < text.length; ends.push(end)) end = Math.min(text.length, end + 1 + Math.floor(random() * 30));
  return ends;
}

const random = randomFrom(seed);
const streams = shapes.map((shape) => ({ ...shape, ends: endsOf(shape.text, random) }));

/** The results for a shape. */
interface Drawn {
  readonly name: string;
  readonly streamed: string;
  readonly atOnce: string;
  readonly github: string;
  /** Samples in which a block before the growing one has another type than at the end. */
  readonly retyped: readonly string[];
  readonly shrunk: readonly string[];
}

// The page's policy allows no parsing of HTML, which GitHub's answers need.
const CHAT = { turns: [[say("Text.")]], browser: { bypassCSP: true } };

test("every shape is there once, with GitHub's answer", () => {
  assert.ok(all.length >= 100);
  assert.deepEqual(Object.keys(github), names);
});

test("answers of all shapes stream without flicker, end as if they had come at once, and as GitHub draws them", async (t) => {
  const chat = await openChat(t, browser, CHAT);
  await chat.ask("Hello", "Text.");
  const drawn = await chat.answer.evaluate(draw, streams);
  const failing = (fails: (shape: Drawn) => boolean) => drawn.filter(fails);
  assert.deepEqual(
    failing(({ streamed, atOnce }) => streamed !== atOnce),
    [],
    `pieces of seed ${seed}`,
  );
  assert.deepEqual(
    failing(({ retyped }) => retyped.length > 0),
    [],
    `pieces of seed ${seed}`,
  );
  assert.deepEqual(
    failing(({ name, shrunk }) => shrunk.length > 0 && !SHRINKS[name]),
    [],
    `pieces of seed ${seed}`,
  );
  assert.deepEqual(
    failing(({ name, atOnce, github }) => atOnce !== github && !OTHERWISE[name]),
    [],
  );
  assert.deepEqual(
    failing(({ name, atOnce, github }) => atOnce === github && Boolean(OTHERWISE[name])),
    [],
  );
});

interface Streamed {
  readonly name: string;
  readonly text: string;
  readonly ends: readonly number[];
  readonly github: string;
}

interface MarkdownElement extends HTMLElement {
  context: unknown;
  text: string;
  isStreaming: boolean;
  updateComplete: Promise<unknown>;
}

/** Runs in the page, next to the existing answer. Uses object methods, because named functions need a helper there. */
async function draw(answer: Element, shapes: readonly Streamed[]): Promise<Drawn[]> {
  const known = (answer.closest("agent-chat-markdown") ?? answer) as MarkdownElement;
  const page = {
    async show(element: MarkdownElement, text: string, isStreaming: boolean) {
      Object.assign(element, { context: known.context, text, isStreaming });
      await element.updateComplete;
    },
    begin() {
      const element = document.createElement("agent-chat-markdown") as MarkdownElement;
      element.className = known.className;
      known.after(element);
      return element;
    },
    attributes(node: Element): string {
      const href = node.getAttribute("href");
      if (node.localName === "a" && href !== null) return ` ${new URL(href, location.href).href}`;
      if (node.localName === "ol" && node.hasAttribute("start")) return ` ${node.getAttribute("start")}`;
      const align = node.getAttribute("align") ?? /^align-(.*)/.exec(node.className)?.[1];
      return align ? ` ${align}` : "";
    },
    /** A common description of both renderings. */
    outline(node: Node): string {
      if (node instanceof Text) return node.data.replaceAll("<", "&lt;");
      if (!(node instanceof HTMLElement)) return "";
      if (node.matches(".tools, .visually-hidden, .back, .footnote-backref, tbody:empty")) return "";
      const inside = [...node.childNodes].map((child) => page.outline(child)).join("");
      if (node.matches(".footnote:has(sup), .footnote-ref")) return `{${node.textContent}}`;
      if (node.matches(".code, pre")) {
        const code = node.querySelector("code") as HTMLElement;
        const language = node.getAttribute("lang") ?? code.className.replace("language-", "");
        return `<pre ${language}>${code.textContent?.trimEnd().replaceAll("<", "&lt;")}</pre>`;
      }
      if (node.matches("input")) return node.hasAttribute("checked") ? "[x] " : "[ ] ";
      if (node.matches("button.image")) return node.dataset.alt ?? "";
      if (node.matches("img")) return node.getAttribute("alt") ?? "";
      if (node.matches("agent-chat-markdown, body, span, .table, .section, .tight > li > p")) return inside;
      return `<${node.localName}${page.attributes(node)}>${inside}</${node.localName}>`;
    },
    tidy(outline: string): string {
      return outline
        .split(/(<pre .*?<\/pre>)/s)
        .map((part, index) => (index % 2 === 1 ? part : part.replace(/[\s\u00a0]+/g, " ")))
        .join("")
        .replace(/ ?(<\/?(?:p|[uo]l|li|blockquote|h\d|hr|br|pre|t[a-z]+|details|summary|section|div)\b[^>]*>) ?/g, "$1")
        .trim();
    },
    kinds(element: MarkdownElement): string[] {
      return [...element.querySelectorAll(":scope > :not(.section, .footnotes), .section > *")].map(
        (block) => `${block.localName} ${block.className}`,
      );
    },
    text(element: MarkdownElement): string {
      const blocks = [...element.querySelectorAll<HTMLElement>(":scope > *")].filter((it) => !it.matches(".footnotes"));
      return blocks
        .map((block) => block.textContent)
        .join("\n")
        .replace(/\s+/g, "");
    },
  };
  const first = page.begin();
  while (!first.querySelector(".footnotes")) {
    await page.show(first, "a[^1] b\n\n[^1]: c", false);
    await new Promise(requestAnimationFrame);
  }
  const drawn: Drawn[] = [];
  for (const { name, text, ends, github } of shapes) {
    const whole = page.begin();
    await page.show(whole, text, false);
    const atOnce = page.tidy(page.outline(whole));
    const final = page.kinds(whole);
    const element = page.begin();
    const retyped: string[] = [];
    const shrunk: string[] = [];
    let before = "";
    for (const end of ends) {
      await page.show(element, text.slice(0, end), true);
      const kinds = page.kinds(element).slice(0, -1);
      if (kinds.some((kind, index) => kind !== final[index])) retyped.push(`${text.slice(0, end)}\n${kinds.join()}`);
      const shown = page.text(element);
      if (shown.length < before.length - 3) shrunk.push(`${before} ⇒ ${shown}`);
      before = shown;
    }
    await page.show(element, text, false);
    const streamed = page.tidy(page.outline(element));
    const theirs = new DOMParser().parseFromString(github, "text/html").body;
    drawn.push({ name, streamed, atOnce, github: page.tidy(page.outline(theirs)), retyped, shrunk });
    whole.remove();
    element.remove();
  }
  return drawn;
}
