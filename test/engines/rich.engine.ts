/** Formulas and sources in answers, in Firefox and WebKit. */

import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { say, type Turn } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { engineTest, type Page } from "./page.ts";

async function answered(t: TestContext, page: Page, turn: Turn): Promise<void> {
  const { url } = await startServer(t, { turns: [turn] });
  await page.open(url);
  await page.send("Go");
  await page.shown(".message.assistant[aria-busy=false]");
}

const WIDE = Array.from({ length: 90 }, (_, index) => `a_{${index}}`).join(" + ");

const FORMULAS = String.raw`So $x^2$, and $\frac{a$.

\[ \begin{pmatrix} a \\ b \\ c \end{pmatrix} \]

$$${WIDE}$$
`;

engineTest(
  "formulas are drawn and spoken, in a font whose brackets grow; wide ones scroll by themselves, and wrong ones stay text",
  async (page, t) => {
    await answered(t, page, [say(FORMULAS)]);
    await page.shown("math msup mn", "2");
    assert.equal(await page.role(await page.shown("math")), "math");
    await page.until(() => {
      const [bracket] = findAll('math mo[fence="true"]');
      const [letter] = findAll("math mtd mi");
      const height = (node?: Element) => node?.getBoundingClientRect().height ?? 0;
      return height(bracket) > 2 * height(letter);
    });
    await page.until(() => {
      const [box] = findAll('.math[tabindex="0"]');
      box?.scrollTo(200, 0);
      return box?.scrollLeft === 200;
    });
    const wrong = await page.run(() => findAll(".tex").find((it) => it.innerText.includes("frac"))?.innerHTML);
    assert.equal(wrong, "<code>$\\frac{a$</code>");
  },
);

const PAGE = { title: "Delivery", url: "https://acme.example/delivery", quote: "Two days in the city." };

engineTest("a source has a mark, a card that the keyboard opens and closes, and a row in the list", async (page, t) => {
  const source = { type: "source", source: { ...PAGE, back: 0 } as never } as const;
  await answered(t, page, [say("It takes **two days.**"), source, say(" That is all.")]);
  const mark = await page.shown("strong + .source-at .source-mark", "1");
  assert.equal(await page.role(mark), "button");
  await page.focus(mark);
  await page.press("Enter");
  const card = await page.shown('[part="source-card"]:popover-open', "acme.example");
  assert.equal(await page.role(card), "dialog");
  await page.press("Escape");
  await page.gone('[part="source-card"]:popover-open');
  await page.shown(".source-mark:focus");
  await page.click(mark);
  await page.shown('[part="source-card"]:popover-open', PAGE.quote);
  await page.click(await page.shown('[part="sources"] summary', "1 source"));
  await page.gone('[part="source-card"]:popover-open');
  await page.shown('[part="sources"] li a', "Delivery");
});
