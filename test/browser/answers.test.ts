import assert from "node:assert/strict";
import { after } from "node:test";
import { ToolError, tool } from "../../server/agent/tool-definition.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { it, test } from "../support/rows.ts";
import { call, say, think, wait } from "../support/scripted-provider.ts";
import { openChat, shown, stopTime } from "./chat-page.ts";

const browser = await launchBrowser({ after });

const MARKDOWN = `# Title

**bold**, *italic*, ~~struck~~, \`inline\` and [a link](https://example.org/a?b=1).

1. one
   - nested
     - deeper
2. two

- [x] done
- [ ] open

\`\`\`ts
const a = "<b>";
\`\`\`

| Left | Right |
|:-----|------:|
| a | 1 |

> quoted

---

### Smaller
`;

/** Splits a text in the middle of words, as models do. */
function inPieces(text: string, length: number): ReturnType<typeof say>[] {
  return text.match(new RegExp(`[^]{1,${length}}`, "g"))?.map(say) ?? [];
}

/** A tool that answers when the test lets it. */
function waitingTool(name: string, until: Promise<void>, answer: () => unknown) {
  return tool<Record<string, unknown>>({
    name,
    description: "Waits.",
    parameters: { type: "object" },
    execute: async () => {
      await until;
      return answer();
    },
  });
}

test("every kind of Markdown becomes an element of its own, a link opens elsewhere, and a button copies exactly the code", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [inPieces(MARKDOWN, 7)],
    browser: { permissions: ["clipboard-read", "clipboard-write"] },
  });
  await chat.say("Show me");
  await chat.answered();
  const expected = {
    h1: "Title",
    h3: "Smaller",
    strong: "bold",
    em: "italic",
    del: "struck",
    "p code": "inline",
    "ol > li:nth-child(2)": "two",
    "ol ul ul li": "deeper",
    blockquote: "quoted",
    "pre code": 'const a = "<b>";',
    "th:nth-child(2)": "Right",
    "td:nth-child(2)": "1",
  };
  for (const [selector, text] of Object.entries(expected)) {
    assert.equal((await chat.answer.locator(selector).textContent())?.trim(), text, selector);
  }
  assert.equal(await chat.answer.locator("hr").count(), 1);
  const boxes = await chat.answer.getByRole("checkbox").all();
  assert.deepEqual(await Promise.all(boxes.map((box) => box.isChecked())), [true, false]);
  const alignment = chat.answer.locator("td:nth-child(2)");
  assert.equal(await alignment.evaluate((cell) => getComputedStyle(cell).textAlign), "right");
  const link = chat.answer.getByRole("link", { name: "a link" });
  assert.equal(await link.getAttribute("href"), "https://example.org/a?b=1");
  assert.equal(await link.getAttribute("target"), "_blank");
  // Bidi control characters in the link must not affect the text around it.
  assert.equal(await link.evaluate((it) => getComputedStyle(it).unicodeBidi), "isolate");
  const rel = (await link.getAttribute("rel"))?.split(" ") ?? [];
  assert.ok(rel.includes("noopener") && rel.includes("noreferrer"), `rel is ${rel.join(" ")}`);
  await chat.answer.getByRole("button", { name: "Copy", exact: true }).click();
  await chat.answer.getByRole("button", { name: "Copied" }).waitFor();
  assert.equal(await chat.page.evaluate(() => navigator.clipboard.readText()), 'const a = "<b>";');
});

it("what is selected in a paragraph stays so while it grows, also when it becomes too long to be read at once", async (t) => {
  const more = gate();
  const chat = await openChat(t, browser, {
    // These 4,094 characters are parsed as one piece; once there are more, the piece ends before "endless".
    turns: [[say(`Select me. ${"word ".repeat(816)}end`), wait(more.opened), say("less and so on. Done.")]],
  });
  await chat.say("Go on");
  await chat.replies.getByText("word end").waitFor();
  await chat.answer.locator("p").evaluate(({ firstChild }) => {
    getSelection()?.setBaseAndExtent(firstChild as Text, 0, firstChild as Text, "Select me.".length);
  });
  const selected = () => chat.page.evaluate(() => String(getSelection()));
  assert.equal(await selected(), "Select me.");
  more.open();
  await chat.replies.getByText("Done.").waitFor();
  assert.equal(await selected(), "Select me.");
});

test("parallel tools spin until each has its own result, in any order", async (t) => {
  const [fast, slow] = [gate(), gate()];
  const chat = await openChat(t, browser, {
    agent: {
      tools: [waitingTool("slow", slow.opened, () => "late"), waitingTool("fast", fast.opened, () => "early")],
    },
    turns: [[say("Looking."), call("c1", "slow"), call("c2", "fast")], [say("Both are here.")]],
  });
  await chat.say("Look");
  const running = chat.page.locator('[part="tool"][data-status="running"]');
  await running.nth(1).waitFor();
  const spinner = chat.tools.first().locator(".spinner");
  assert.equal(await spinner.evaluate((icon) => icon.getAnimations().length > 0), true, "the spinner moves");
  fast.open();
  const completed = chat.page.locator('[part="tool"][data-status="completed"]');
  await completed.waitFor();
  assert.match(await shown(completed), /^Fast\s+completed/);
  assert.equal(await running.getByRole("button", { name: "slow" }).count(), 1);
  slow.open();
  await chat.replies.getByText("Both are here.").waitFor();
  assert.equal(await running.count(), 0);
  assert.equal(await chat.page.locator(".spinner").count(), 0);
});

test("a tool row opens by keyboard and shows arguments and output as text; of a failed one it says why", async (t) => {
  const broken = waitingTool("broken", Promise.resolve(), () => {
    throw new ToolError("No such city.");
  });
  const chat = await openChat(t, browser, {
    agent: { tools: [waitingTool("peek", Promise.resolve(), () => ({ html: "<b>x</b>" })), broken] },
    turns: [[call("c1", "peek", { query: "**not bold**" }), call("c2", "broken")], [say("Done.")]],
  });
  await chat.ask("Peek", "Done.");
  const row = chat.tools.getByRole("button", { name: "peek" });
  assert.equal(await row.getAttribute("aria-expanded"), "false");
  await row.focus();
  await row.press("Enter");
  assert.equal(await row.getAttribute("aria-expanded"), "true");
  const details = await chat.tools.locator("pre").allTextContents();
  assert.deepEqual(details, ['{\n  "query": "**not bold**"\n}', '{\n  "html": "<b>x</b>"\n}']);
  await row.press("Space");
  assert.equal(await row.getAttribute("aria-expanded"), "false");
  assert.equal(await chat.tools.locator("pre").count(), 0);
  assert.equal(await chat.tools.last().getAttribute("data-status"), "failed");
  await chat.tools.getByRole("button", { name: /Broken\s*failed/ }).click();
  assert.match(await shown(chat.tools.last()), /Error\s+No such city\./);
});

test("thinking is open while it streams and closes soon after the answer has begun", async (t) => {
  const rest = gate();
  const chat = await openChat(t, browser, {
    turns: [[think("Let me *see*."), wait(rest.opened), say("I see.")]],
  });
  await chat.say("Think");
  const row = chat.thinking.getByRole("button", { name: "Thinking" });
  await chat.thinking.getByText("Let me *see*.").waitFor();
  assert.equal(await row.getAttribute("aria-expanded"), "true");
  rest.open();
  await chat.replies.getByText("I see.").waitFor();
  const closed = chat.thinking.getByRole("button", { name: /^Thought / });
  await closed.and(chat.page.locator('[aria-expanded="false"]')).waitFor();
  await closed.click();
  await chat.thinking.getByText("Let me *see*.").waitFor();
});

it("a press on a thought that is about to close by itself closes it", async (t) => {
  const rest = gate();
  const chat = await openChat(t, browser, { turns: [[think("Let me see."), wait(rest.opened), say("I see.")]] });
  const { clock, mouse } = chat.page;
  await chat.say("Think");
  await chat.thinking.getByText("Let me see.").waitFor();
  await clock.install();
  await stopTime(chat.page);
  rest.open();
  while (!(await chat.replies.getByText("I see.").isVisible())) await clock.runFor(20);
  const row = chat.thinking.getByRole("button");
  await row.hover();
  await mouse.down();
  await clock.runFor(1_000);
  await mouse.up();
  await row.and(chat.page.locator('[aria-expanded="false"]')).waitFor();
});

it("a piece of an answer is drawn without asking anything of the exchanges before it", async (t) => {
  const [first, next] = [gate(), gate()];
  const turns = [
    [say("One.")],
    [say("Two.")],
    [say("Three"), wait(first.opened), say(" and"), wait(next.opened), say(" on.")],
  ];
  const chat = await openChat(t, browser, { turns });
  await chat.ask("1", "One.");
  await chat.ask("2", "Two.");
  await chat.say("3");
  await chat.answer.getByText("Three").waitFor();
  await chat.input.focus();
  await chat.page.evaluate(() => {
    const root = document.querySelector("agent-chat")?.shadowRoot as ShadowRoot;
    const asked: string[] = [];
    for (const part of [...root.querySelectorAll<HTMLElement>(".exchange")].slice(0, -1)) {
      for (const message of part.querySelectorAll<HTMLElement>("*")) {
        if (!message.localName.startsWith("agent-chat-")) continue;
        for (const name of ["message", "updateComplete"]) {
          const value = Reflect.get(message, name);
          Object.defineProperty(message, name, {
            configurable: true,
            get() {
              asked.push(`${message.localName}.${name}`);
              return value;
            },
            set() {
              asked.push(`${message.localName}.${name} =`);
            },
          });
        }
      }
    }
    Object.assign(globalThis, { asked });
  });
  first.open();
  await chat.answer.getByText("Three and").waitFor();
  await chat.page.evaluate(() => new Promise(requestAnimationFrame));
  assert.deepEqual(await chat.page.evaluate(() => Reflect.get(globalThis, "asked")), []);
  next.open();
  await chat.answered(3);
});

it("of an answer's code and tables, a browser is asked to watch the size of none by itself", async (t) => {
  const boxes = "```ts\nlet a = 1;\n```\n\n| a |\n|---|\n| 1 |\n\n".repeat(5);
  const chat = await openChat(t, browser, { turns: [[say(`${boxes}One.`)], [say(`${boxes}Two.`)]] });
  await chat.page.addInitScript(() => {
    const { observe, unobserve } = ResizeObserver.prototype;
    const watched = new Set<Element>();
    Object.assign(globalThis, { watched });
    ResizeObserver.prototype.observe = function (target, options) {
      watched.add(target);
      observe.call(this, target, options);
    };
    ResizeObserver.prototype.unobserve = function (target) {
      watched.delete(target);
      unobserve.call(this, target);
    };
  });
  await chat.page.reload();
  await chat.say("1");
  await chat.answered();
  await chat.say("2");
  await chat.answered(2);
  await chat.page.locator(".enlarge").nth(19).waitFor({ state: "attached" });
  const inAnswers = await chat.page.evaluate(() => {
    const watched: Element[] = [...Reflect.get(globalThis, "watched")];
    return watched.flatMap((element) => (element.closest(".exchange") ? element.localName : []));
  });
  assert.deepEqual(inAnswers, ["agent-chat-markdown", "agent-chat-markdown"]);
});

for (const reducedMotion of ["no-preference", "reduce"] as const) {
  test(`what a model sends in large pieces is drawn ${reducedMotion === "reduce" ? "as it comes by those who prefer no motion" : "in steps, and at its end whole"}`, async (t) => {
    const [more, end] = [gate(), gate()];
    const piece = "Some words of the answer. ".repeat(16).trim();
    const chat = await openChat(t, browser, {
      turns: [[say("First."), wait(more.opened), say(` ${piece}`), wait(end.opened), say(` ${piece}`)]],
      browser: { reducedMotion },
    });
    await chat.say("Go");
    await chat.answer.getByText("First.").waitFor();
    const lengths = chat.answer.evaluateHandle((answer) => {
      const seen = [answer.textContent?.length ?? 0];
      new MutationObserver(() => seen.push(answer.textContent?.length ?? 0)).observe(answer, {
        childList: true,
        characterData: true,
        subtree: true,
      });
      return seen;
    });
    const seen = await lengths;
    more.open();
    const whole = "First.".length + 1 + piece.length;
    await chat.answer.evaluate(async (answer, length) => {
      while ((answer.textContent?.length ?? 0) < length) await new Promise(requestAnimationFrame);
    }, whole);
    const steps = (await seen.evaluate((it) => it)).filter((length) => length > "First.".length && length < whole);
    assert.equal(steps.length > 0, reducedMotion === "no-preference", String(steps));
    end.open();
    await chat.answered();
    assert.equal(await chat.answer.textContent(), `First. ${piece} ${piece}`);
  });
}
