/** Formulas: MathML while an answer streams, speech, scrolling, copying as TeX; invalid or hostile ones stay text. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, type TestContext, test } from "node:test";
import type { Locator } from "playwright-core";
import { axeFindings } from "../support/axe.ts";
import { launchBrowser } from "../support/browser.ts";
import { randomFrom } from "../support/random.ts";
import { say } from "../support/scripted-provider.ts";
import { canCopy, openChat } from "./chat-page.ts";

const browser = await launchBrowser({ after });

/** Formulas as models write them. */
const WRITTEN = readFileSync("test/fixtures/formulas/written.txt", "utf8").trim().split("\n");
const DISPLAY_ONLY = /\\begin\{(?:align\*|equation)\}/;

/** Answers with five formulas each, inline and on lines of their own, with all kinds of delimiters. */
function answers(): { readonly text: string; readonly drawn: number }[] {
  const paragraphs = WRITTEN.flatMap((tex, index) => {
    const [line, block] = index % 2 === 0 ? [`$${tex}$`, `$$\n${tex}\n$$`] : [`\\(${tex}\\)`, `\\[ ${tex} \\]`];
    const isInline = !DISPLAY_ONLY.test(tex);
    return [
      { text: `So *here* ${line} is **it**, and\nmore of it.`, drawn: Number(isInline) },
      { text: `The whole:\n\n${block}\n\nThat is it.`, drawn: 1 },
    ];
  });
  return Array.from({ length: paragraphs.length / 5 }, (_, index) => {
    const five = paragraphs.slice(index * 5, index * 5 + 5);
    return { text: five.map(({ text }) => text).join("\n\n"), drawn: five.reduce((sum, { drawn }) => sum + drawn, 0) };
  });
}

/** End positions of pieces of `size` characters, or of 1 to 30. */
function endsOf({ length }: string, size: number | undefined, random: () => number): number[] {
  const ends = [];
  for (let end = 0; end < length; ends.push(end)) end = Math.min(length, end + (size ?? 1 + Math.floor(random() * 30)));
  return ends;
}

interface MarkdownElement extends HTMLElement {
  context: unknown;
  updateComplete: Promise<unknown>;
}

/** A chat with a rendered formula, so that the renderer is loaded. */
async function openWithFormula(t: TestContext, text = "So $x$.", options: Parameters<typeof openChat>[2] = {}) {
  const chat = await openChat(t, browser, { turns: [[say(text)]], ...options });
  await chat.say("Hello");
  await chat.answered();
  await chat.answer.locator("math").first().waitFor();
  return chat;
}

/** Renders a text next to an answer, whole or up to each of these positions, and returns the result. */
const show = (answer: Locator, text: string, ends: readonly number[] = [text.length]) =>
  answer.evaluate(
    async (known, { text, ends }) => {
      const like = (known.closest("agent-chat-markdown") ?? known) as MarkdownElement;
      const element = document.createElement("agent-chat-markdown") as MarkdownElement;
      element.className = like.className;
      like.after(element);
      const moved: string[] = [];
      let before: { block: Element; top: number; height: number }[] = [];
      for (const end of ends) {
        const isStreaming = end < text.length || ends.length > 1;
        Object.assign(element, { context: like.context, text: text.slice(0, end), isStreaming });
        await element.updateComplete;
        // Waits until all rendering of this frame is done.
        await new Promise((resolve) => {
          const { port1, port2 } = new MessageChannel();
          port1.onmessage = resolve;
          port2.postMessage(0);
        });
        // All blocks but the last two, the upper of which may still merge with the last.
        for (const { block, top, height } of before.slice(0, -2)) {
          const { offsetTop, offsetHeight } = block as HTMLElement;
          if (!block.isConnected || offsetTop !== top || offsetHeight !== height) moved.push(text.slice(0, end));
        }
        before = [...element.children].map((block) => {
          const { offsetTop, offsetHeight } = block as HTMLElement;
          return { block, top: offsetTop, height: offsetHeight };
        });
      }
      Object.assign(element, { isStreaming: false });
      await element.updateComplete;
      for (let frames = 0; frames < 3; frames += 1) await new Promise(requestAnimationFrame);
      const foreign = [...element.querySelectorAll(".math *")].filter(
        (node) => node.namespaceURI !== "http://www.w3.org/1998/Math/MathML" && node.localName !== "code",
      );
      const named = [...element.querySelectorAll("math *")].filter((node) =>
        node
          .getAttributeNames()
          .some((name) => /^(?:id|name|href|xlink|src|on|action|data|style$)/.test(name) && name !== "style"),
      );
      const sizes = [...element.querySelectorAll("math")].map((math) => math.querySelectorAll("*").length);
      const shown = {
        html: element.innerHTML,
        text: element.innerText,
        moved,
        sizes,
        odd: foreign.length + named.length,
      };
      element.remove();
      return shown;
    },
    { text, ends },
  );

test("200 formulas as models write them are drawn as they stream, in pieces of every size, and nothing above moves", async (t) => {
  const chat = await openWithFormula(t);
  const random = randomFrom(Number(process.env.RICH_SEED ?? 62));
  for (const [index, { text, drawn }] of answers().entries()) {
    const whole = await show(chat.answer, text);
    assert.equal(whole.sizes.length, drawn, text);
    for (const size of index % 4 === 0 ? [1, undefined] : [[3, 7, undefined][index % 3]]) {
      const streamed = await show(chat.answer, text, endsOf(text, size, random));
      assert.deepEqual(streamed.moved, [], text);
      assert.equal(streamed.html, whole.html, text);
    }
  }
});

const often = (text: string, count: number) => text.repeat(count);

test("a formula that is wrong, hostile or too large stays as it is written, and draws neither links nor images nor names", async (t) => {
  const chat = await openWithFormula(t);
  for (const tex of [
    ...["\\frac{a", "\\foo{x}", "x^", "\\left( x", "\\begin{matrix} a", "a & b", "\\tag{1}\\tag{2}"],
    ...[
      "\\href{javascript:alert(1)}{x}",
      "\\url{https://evil.example}",
      "\\includegraphics{https://evil.example/a.png}",
    ],
    ...["\\class{a}{b}", "\\htmlClass{a}{b}", "\\id{a}{b}", "\\style{position:fixed}{x}", "\\data{a=b}{c}"],
    ...["\\textcolor{url(https://evil.example)}{x}", "\\def\\a{\\a\\a}\\a", "\\def\\a#1{\\a{#1#1}}\\a{x}"],
    `\\def\\a{${often("x", 900)}}${often("\\a", 900)}`,
    ...[often("\\frac{", 200) + often("}{y}", 200), often("x^{", 490) + often("}", 490), often("x+", 990)],
    ...[often("\\binom{a}{b}", 160), `\\ce{${often("H2O + ", 90)}}`, `\\begin{matrix}${often("&", 1900)}\\end{matrix}`],
    often("x+", 50_000),
  ]) {
    const { sizes, text } = await show(chat.answer, `So \\(${tex}\\) is.`);
    assert.deepEqual(sizes, [], tex.slice(0, 80));
    assert.match(text, /^So \S/);
  }
  for (const tex of [
    "x \\label{a} \\ref{a} \\eqref{a}",
    "\\pmb{x} {}_a^b X",
    "\\rule{900em}{900em} \\hspace{-900em} y",
  ]) {
    const { odd, sizes } = await show(chat.answer, `So \\(${tex}\\) is.`);
    assert.deepEqual([sizes.length, odd], [1, 0], tex);
  }
});

const WIDE = String.raw`Area: $A = \pi r^2$ and \(\frac{1}{2}\).

$$${Array.from({ length: 40 }, (_, index) => `a_{${index}}`).join(" + ")}$$

| Law | Formula |
|---|---|
| Ohm | $U = R \cdot I$ |`;

test("formulas are in the accessibility tree, wide ones scroll by the keyboard, and there are no barriers", async (t) => {
  const chat = await openWithFormula(t, WIDE, { browser: { viewport: { width: 390, height: 844 } } });
  const cdp = await chat.page.context().newCDPSession(chat.page);
  const { nodes } = await cdp.send("Accessibility.getFullAXTree");
  const roles = nodes.map(({ role }) => role?.value);
  for (const role of ["MathMLMath", "MathMLFraction", "MathMLSup"]) assert.ok(roles.includes(role), role);
  assert.ok(!nodes.some(({ name, ignored }) => !ignored && name?.value === "$A = \\pi r^2$"), "it is not spoken twice");
  const wide = chat.answer.getByRole("group", { name: "Formula" });
  await wide.focus();
  await chat.page.keyboard.press("ArrowRight");
  await chat.page.waitForFunction((box) => (box?.scrollLeft ?? 0) > 0, await wide.elementHandle());
  assert.deepEqual(await axeFindings(chat.page), []);
  // The page's policy allows no fonts from any address.
  assert.ok(
    await chat.page.evaluate(() =>
      [...document.fonts].some(({ family, status }) => /math/.test(family) && status === "loaded"),
    ),
  );
});

test("in a chat from right to left a formula stands among its words, and is read and scrolled from left to right", async (t) => {
  const text = WIDE.replace("Area:", "المساحة").replace(" and ", " أو ");
  const chat = await openWithFormula(t, text, { browser: { viewport: { width: 390, height: 844 } } });
  await chat.page.locator("agent-chat").evaluate((it) => it.setAttribute("dir", "rtl"));
  await chat.page.waitForFunction(
    () => getComputedStyle(document.querySelector("agent-chat") as Element).direction === "rtl",
  );
  const places = await chat.answer.locator("p", { hasText: "المساحة" }).evaluate((paragraph) => {
    const range = document.createRange();
    range.selectNodeContents(paragraph.firstChild as Text);
    const letters = [...paragraph.querySelectorAll("math mi")].slice(0, 3);
    return [...letters, range].map((it) => it.getBoundingClientRect().left);
  });
  assert.deepEqual(
    places,
    [...places].sort((a, b) => a - b),
    "A = πr², and the first word to the right of it",
  );
  const wide = chat.answer.getByRole("group", { name: "Formula" });
  const start = await wide.evaluate((box) => {
    const [first] = box.querySelectorAll("mi");
    return Number(first?.getBoundingClientRect().left) - box.getBoundingClientRect().left;
  });
  assert.ok(start >= 0 && start < 20, `${start} px`);
});

test("long arrows of reactions are drawn from end to end", async (t) => {
  const lengths = [20, 30, 40, 50, 60, 70];
  const text = lengths.map((length) => `So $\\ce{A ->[${"more words ".repeat(7).slice(0, length)}] B}$.`).join("\n\n");
  const chat = await openWithFormula(t, text, { browser: { viewport: { width: 900, height: 900 } } });
  const picture = (await chat.page.screenshot()).toString("base64");
  const ends = await chat.answer.evaluate(async (answer, base64) => {
    const bytes = Uint8Array.from(atob(base64), (it) => it.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes]));
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d", { willReadFrequently: true });
    canvas?.drawImage(bitmap, 0, 0);
    return [...(answer.closest("agent-chat-markdown") ?? answer).querySelectorAll("math mover:has(mover)")].map(
      (arrow) => {
        const { left, right, top, height } = arrow.getBoundingClientRect();
        // The label is above the arrow, and some pixels away from its ends.
        return [left, right - 5].map((x) => {
          const pixels = canvas?.getImageData(x, top, 5, height + 8).data ?? [];
          return [...pixels].some((it, at) => at % 4 === 0 && it < 128);
        });
      },
    );
  }, picture);
  assert.deepEqual(
    ends,
    lengths.map(() => [true, true]),
  );
});

test("formulas are printed whole, and dark on white, from a dark chat, too", async (t) => {
  const browser = { colorScheme: "dark", viewport: { width: 720, height: 900 } } as const;
  const chat = await openWithFormula(t, WIDE, { browser });
  await chat.answer.getByRole("group", { name: "Formula" }).waitFor();
  await chat.page.emulateMedia({ media: "print" });
  const printed = await chat.answer.locator("math").evaluateAll((all) =>
    all.map((math) => {
      const { left, right, width, height } = math.getBoundingClientRect();
      const [red = 255] = getComputedStyle(math).color.match(/\d+/g)?.map(Number) ?? [];
      return left >= 0 && right <= innerWidth && width > 3 && height > 5 && red < 50;
    }),
  );
  assert.deepEqual(printed, [true, true, true, true]);
  const paper = await chat.page.locator("agent-chat").evaluate((it) => getComputedStyle(it).backgroundColor);
  assert.equal(paper, "rgb(255, 255, 255)");
});

test("a formula is copied as TeX: with its answer, with its table, and as a part of what is marked", async (t) => {
  const permissions = ["clipboard-read", "clipboard-write"];
  const { page, answer, replies } = await openWithFormula(t, WIDE, { browser: { permissions } });
  await canCopy(page);
  const copied = (type: string) =>
    page.evaluate(async (type) => (await (await navigator.clipboard.read())[0]?.getType(type))?.text(), type);
  await replies.last().locator('[part="copy"]').click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  assert.equal(await copied("text/plain"), WIDE);
  const html = (await copied("text/html")) ?? "";
  assert.match(html, /<code>\$A = \\pi r\^2\$<\/code> and/);
  assert.doesNotMatch(html, /<math|π/);
  await answer.getByRole("button", { name: "Copy: Table" }).click();
  await answer.getByRole("button", { name: "Copy as Markdown" }).click();
  await page.getByRole("button", { name: "Copied" }).last().waitFor();
  assert.match((await copied("text/plain")) ?? "", /^\| Ohm \| \$U = R \\\\cdot I\$ \|$/m);
  await answer
    .locator("p")
    .first()
    .evaluate((paragraph) => getSelection()?.selectAllChildren(paragraph));
  await page.keyboard.press("ControlOrMeta+c");
  assert.equal(await copied("text/plain"), String.raw`Area: $A = \pi r^2$ and \(\frac{1}{2}\).`);
});

test("without the file that draws them, formulas are shown as they are written", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("So $x$.")]], expectedComplaints: /mathematics|ERR_FAILED/ });
  await chat.page.route("**/mathematics-*", (route) => route.abort());
  await chat.ask("Hello", "So $x$.");
});
