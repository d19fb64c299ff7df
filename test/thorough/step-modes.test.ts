/** `thinking`, `tools`, `agent-chat-tool` and `exportTranscript`: settings, events and exports of an answer. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { AgentChat } from "../../widget/element/agent-chat.ts";
import type { AgentChatToolEvent } from "../../widget/element/public-types.ts";
import type { MessageSource } from "../../widget/ui/extensions.ts";
import { isFocused, openChat } from "../browser/chat-page.ts";
import { visit } from "../browser/launcher-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { call, say, think, wait } from "../support/scripted-provider.ts";
import { broken, define, echo } from "../support/test-tools.ts";

const browser = await launchBrowser({ after });

const CODE = "Look:\n\n```js\nlet a;\n```\n\n| a |\n|---|\n| b |";

test("a page opens, closes and hides thoughts and tool calls, hears of calls, and exports what is shown", async (t) => {
  const chat = await openChat(t, browser, {
    agent: { tools: [echo, broken] },
    turns: [[think("A thought."), call("c1", "echo", { text: "`ping`" }), call("c2", "broken")], [say(CODE)]],
  });
  const element = chat.page.locator("agent-chat");
  const set = (attributes: Record<string, string>) =>
    element.evaluate(async (node, values) => {
      for (const [name, value] of Object.entries(values)) node.setAttribute(name, value);
      await (node as AgentChat).updateComplete;
    }, attributes);
  await element.evaluate((node) => {
    Object.assign(window, { heard: [] });
    document.addEventListener("agent-chat-tool", (event) => {
      const { callId, tool, status, arguments: args, output } = event as AgentChatToolEvent;
      const { heard } = window as unknown as { heard: unknown[] };
      heard.push([callId, tool, status, args, output === undefined, event.target === node]);
    });
  });
  await set({ thinking: "open", tools: "closed" });
  await chat.say("Go `now`");
  await chat.answered();
  await chat.thinking.getByText("A thought.").waitFor();
  const heard = await chat.page.evaluate(() => (window as unknown as { heard: unknown }).heard);
  const rows = (heard as unknown[][]).map((row) => row.map(String).join(" ")).sort();
  assert.deepEqual(rows, [
    'c1 echo completed {"text":"`ping`"} false true',
    'c1 echo running {"text":"`ping`"} true true',
    "c2 broken failed {} false true",
    "c2 broken running {} true true",
  ]);

  const expanded = chat.tools.locator('[aria-expanded="true"]');
  assert.equal(await expanded.count(), 0);
  await set({ tools: "open" });
  assert.equal(await expanded.count(), 2);
  await chat.tools.first().getByRole("button").first().click();
  assert.equal(await expanded.count(), 1, "the person's choice wins");

  const exported = (format: string) =>
    element.evaluate((node, name) => (node as AgentChat).exportTranscript(name as "json").catch(String), format);
  const [question, reply] = JSON.parse(await exported("json"));
  assert.deepEqual(question, { role: "user", text: "Go `now`", at: question.at });
  assert.ok(Date.now() - Date.parse(question.at) < 60_000);
  assert.equal(reply.finish_reason, "stop");
  assert.deepEqual(
    reply.blocks.map(({ type, text, tool, status }: Record<string, string>) => text ?? [type, tool, status]),
    ["A thought.", ["tool", "echo", "completed"], ["tool", "broken", "failed"], CODE],
  );
  const markdown = await exported("markdown");
  assert.match(
    markdown,
    /^## You said: \S.+\n\nGo `now`\n\n## .+ said: \S.+\n\n> A thought\.\n\n`Echo`\n\n```\n\{"text"/,
  );
  assert.ok(markdown.endsWith(`${CODE}\n`));
  await element.evaluate((node) => (node as AgentChat).addMessage({ text: "Goes **on** here.", name: "Maria" }));
  assert.deepEqual(
    JSON.parse(await exported("json"))
      .slice(2)
      .map(({ at: _, ...rest }: object & { at: string }) => rest),
    [{ role: "page", name: "Maria", text: "Goes **on** here." }],
  );
  assert.match(await exported("markdown"), /\n\n## Maria said: \(127\.0\.0\.1\) \S.+\n\nGoes \*\*on\*\* here\.\n$/);
  assert.match(await exported("html"), /TypeError: .*format must be markdown or json, not "html"/);

  await set({ tools: "titles" });
  assert.equal(await chat.tools.getByRole("button").count(), 0);
  assert.deepEqual(await chat.tools.locator(".aside").allTextContents(), ["failed"], "a word, and no number");
  assert.doesNotMatch((await exported("markdown")) + (await exported("json")), /ping|The tool failed/);

  await set({ thinking: "hidden", tools: "hidden" });
  assert.equal(await chat.page.locator('[part="steps"]').count(), 0);
  assert.equal(JSON.parse(await exported("json"))[1].blocks.length, 1);
  assert.equal(await chat.page.locator('[part="code"], [part="table"]').count(), 2);
  await set({ thinking: "auto", tools: "auto" });
  assert.equal(await chat.tools.count(), 2);
});

/** A page that sets all properties on each piece of an answer, with new functions, like templates of frameworks. */
const FRAMEWORK = `
  document.addEventListener("DOMContentLoaded", () => {
    const chat = document.querySelector("agent-chat");
    const page = { renders: 0, drawn: 0, pressed: [], saved: [], isDone: false };
    const render = () => {
      const number = ++page.renders;
      chat.toolRenderers = {
        echo: () => {
          page.drawn += 1;
          return Object.assign(document.createElement("input"), { ariaLabel: "Note" });
        },
      };
      chat.messageHeader = ({ role }) => {
        page.drawn += 1;
        return Object.assign(document.createElement("b"), { className: "header", textContent: role });
      };
      chat.renderers = {
        csv: () => Object.assign(document.createElement("textarea"), { ariaLabel: "Sheet " + number }),
        "$$": () => Object.assign(document.createElement("i"), { textContent: "Formula " + number }),
      };
      chat.strings = { copy: "Take", placeholder: () => "Ask " + number, send: () => "Send message" };
      chat.composerActions = [
        { name: "dice", label: "Dice", icon: "M5 5h14v14H5z", run: () => page.pressed.push(number) },
      ];
      const has = (text) => ({ text: answer }) => answer.includes(text);
      chat.messageActions = [
        { name: "save", label: "Save", icon: "M5 5h14v14H5z", isAvailable: has("Three"), run: (it) => page.saved.push(number, it) },
        { name: "lost", label: "Lost", icon: "M5 5h14v14H5z", isAvailable: has("Four"), run: () => {} },
      ];
    };
    Object.assign(window, { page, render });
    render();
    for (const name of ["message", "token", "tool", "done"]) document.addEventListener("agent-chat-" + name, render);
    document.addEventListener("agent-chat-done", () => { page.isDone = true; });
  });
`;

test("a page that sets new objects of the same content, as a framework does at each render, has nothing drawn again", async (t) => {
  const [ran, rest] = [gate(), gate()];
  const text = "One\n\n```csv\na\n```\n\nAnd\n\nfor";
  const chat = await openChat(t, browser, {
    agent: {
      tools: [
        define("echo", async () => {
          await ran.opened;
          return "ping";
        }),
      ],
    },
    turns: [
      [call("c1", "echo", { text: "ping" })],
      [say(text), wait(rest.opened), say(" two.\n\n$$\nx\n$$\n\nThree.")],
    ],
  });
  const { page, answer } = chat;
  await page.addInitScript(FRAMEWORK);
  await page.reload();
  await chat.say("Go");
  const note = page.getByRole("textbox", { name: "Note" });
  await note.waitFor();
  ran.open();
  const sheet = answer.locator("textarea");
  await sheet.fill("kept as well");
  await note.fill("kept");
  const nodes = await answer.evaluateHandle((markdown) => [...markdown.children]);
  rest.open();
  await chat.answered();
  await page.waitForFunction("page.isDone");
  await page.evaluate("render()");
  assert.deepEqual([await note.inputValue(), await isFocused(note)], ["kept", true]);
  assert.equal(await sheet.inputValue(), "kept as well");
  assert.equal(
    await answer.evaluate((markdown, before) => before.every((node) => markdown.contains(node)), nodes),
    true,
  );
  const { drawn, renders } = (await page.evaluate("page")) as { drawn: number; renders: number };
  assert.equal(drawn, 4, "the call once as it ran and once as it had ended, and each message's header once");
  // New content is rendered by the functions that were set last.
  const formula = await answer.locator("i").textContent();
  assert.ok(Number(formula?.replace("Formula ", "")) > 5, `${formula}`);
  await page.getByRole("button", { name: "Dice" }).click();
  assert.deepEqual(await page.evaluate("page.pressed"), [renders]);
  assert.equal(await answer.getByRole("button", { name: "Take" }).count(), 0);
  const save = page.locator("[part=save]");
  const button = await save.elementHandle();
  await page.evaluate("render()");
  await save.click();
  assert.equal(await button?.evaluate((it) => it.isConnected), true);
  const saved = await page.evaluate("page.saved.flatMap((it) => it.text ? [it.text, it.messageId] : it)");
  assert.deepEqual(saved, [renders + 1, `${text} two.\n\n$$\nx\n$$\n\nThree.`, "m2"]);
  assert.equal(await page.getByRole("button", { name: "Lost" }).count(), 0);
});

for (const tag of ["agent-chat", "agent-chat-launcher"] as const) {
  for (const place of ["the page", "a shadow root of the page"]) {
    test(`a drawing of <${tag}> in ${place}, and a header, have the style of ${place}, and go with their message`, async (t) => {
      const chat = await visit(t, browser, {
        script: 'data-launcher="none"',
        agent: { tools: [echo] },
        turns: [[call("c1", "echo", { text: "ping" })], [say("Done.")], [say("Done.")]],
      });
      const { page } = chat;
      await page.evaluate(
        async ([name, isPage, server]) => {
          const holder = document.body.appendChild(document.createElement("div"));
          const root = isPage ? holder : holder.attachShadow({ mode: "open" });
          root.innerHTML = "<style>.weather, .speaker { color: rgb(1, 2, 3) }</style>";
          const toolRenderers = {
            echo() {
              return Object.assign(document.createElement("p"), { className: "weather", textContent: "20 °C" });
            },
          };
          const element = Object.assign(document.createElement(name), {
            server,
            toolRenderers,
            messageHeader({ role }: MessageSource) {
              return Object.assign(document.createElement("p"), { className: `speaker ${role}`, textContent: role });
            },
          });
          root.append(element);
          await customElements.whenDefined(name);
          if ("open" in element) await element.open();
        },
        [tag, place === "the page", chat.server.url] as const,
      );
      const drawing = page.locator(".weather");
      await chat.ask("Go", "Done.");
      assert.equal(await drawing.evaluate((node) => getComputedStyle(node).color), "rgb(1, 2, 3)");
      const parent = await drawing.evaluate((node) => node.parentElement?.localName);
      assert.equal(parent, tag);
      const who = page.locator(".speaker.assistant");
      assert.equal(await who.evaluate((node) => getComputedStyle(node).color), "rgb(1, 2, 3)");
      const above = await who.boundingBox();
      const [drawn, answer] = await Promise.all([drawing.boundingBox(), chat.answer.boundingBox()]);
      assert.ok(drawn && answer && drawn.height > 0 && drawn.y + drawn.height <= answer.y, "in the place of the row");
      assert.ok(above && above.height > 0 && above.y + above.height <= drawn.y, "above what is said");
      await page.getByRole("button", { name: "Answer again" }).click();
      await page.locator('[part="alternatives"]').waitFor();
      assert.deepEqual(await page.locator(".speaker").allTextContents(), ["user", "assistant"]);
      await page.getByRole("button", { name: "New conversation" }).click();
      await drawing.waitFor({ state: "detached" });
      assert.equal(await page.locator("agent-chat > slot").count(), 0);
    });
  }
}
