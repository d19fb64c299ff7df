/** The chat page under `parley dev`: it explains why the agent is broken, and continues once the agent is fixed. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { chatIn, shown } from "../browser/chat-page.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { Command } from "../support/command.ts";
import { temporaryProject } from "../support/temporary-project.ts";

const browser = await launchBrowser({ after });

const agent = (name: string, welcome: string) =>
  `export default { id: "a", name: "${name}", agent: "Guide", model: "demo", chat: { welcome: "${welcome}" } };`;

test("the page shows where the agent is broken until it is fine again, without losing the conversation", async (t) => {
  const folder = temporaryProject(t, { "agent.ts": agent("First", "Hello one") });
  const command = new Command(["dev", folder], { env: { PORT: "0" } });
  t.after(() => {
    command.kill("SIGKILL");
    return command.end();
  });
  const address = await command.printed("stdout", /^(http:\/\/\S+#dev=\S+)\n$/m);
  const { page, complaints } = await openPage(t, browser, { viewport: { width: 360, height: 640 } });
  await page.goto(address);
  const chat = chatIn(page);
  await page.getByText("Hello one").waitFor();
  assert.equal(new URL(page.url()).hash, "");
  const bar = page.locator(".dev-bar");
  const broken = page.locator(".dev-bar", { hasText: /agent\.ts:1:\d+/ });
  await bar.waitFor({ state: "attached" });
  assert.equal(await bar.getByRole("status").count(), 1);
  assert.equal((await bar.boundingBox())?.height ?? 0, 0);

  const write = (text: string) => writeFileSync(join(folder, "agent.ts"), text);
  write(agent("Second", "Hello two"));
  await page.getByText("Hello two").waitFor();
  await page.waitForFunction(() => document.title === "Second");
  await chat.say("Hello");
  await chat.answered();

  write(`const broken: = 1;\n${agent("Third", "<b>")}`);
  await broken.waitFor();
  assert.match(await shown(bar), /^agent\.ts cannot be loaded: .*\nThe last good agent goes on answering\.$/);
  const box = await bar.boundingBox();
  assert.ok(box && box.x >= 0 && box.x + box.width <= 360 && box.y + box.height <= 640, JSON.stringify(box));
  // This tab still has the token.
  await page.reload();
  await broken.waitFor();
  await chat.replies.first().waitFor();
  assert.equal(await chat.replies.count(), 1);

  write(agent("Third", "Hello three"));
  await broken.waitFor({ state: "detached" });
  await chat.say("And again");
  await chat.answered(2);
  assert.equal(await chat.error.count(), 0);
  assert.deepEqual(complaints, []);
});

test("the bar switches between devUsers by keyboard, and this tab keeps the one that was chosen", async (t) => {
  const users = '[{ id: "ada", name: "Ada" }, { id: "zoë" }, undefined]';
  const said = 'async *run({ ctx }) { yield "You are " + ctx.user?.id + "."; }';
  const project = { "agent.ts": `export const devUsers = ${users}; export default { name: "Mine", ${said} };` };
  const command = new Command(["dev", temporaryProject(t, project)], { env: { PORT: "0" } });
  t.after(() => {
    command.kill("SIGKILL");
    return command.end();
  });
  const { page, complaints } = await openPage(t, browser, { viewport: { width: 360, height: 640 } });
  await page.goto(await command.printed("stdout", /^(http:\/\/\S+#dev=\S+)\n$/m));
  const chat = chatIn(page);
  const select = page.getByLabel("Ask as");
  const choose = async () => {
    await select.focus();
    await page.keyboard.press("ArrowDown");
    // The previous user's conversation disappears once the server has named the next user, not before.
    await chat.replies.first().waitFor({ state: "detached" });
  };
  const ask = async (label: string, answer: string) => {
    await page.locator("option:checked", { hasText: label }).waitFor({ state: "attached" });
    await chat.say("Who am I?");
    await chat.replies.getByText(answer).waitFor();
  };
  await select.waitFor();
  assert.deepEqual(await select.locator("option").allTextContents(), ["Ada (ada)", "zoë", "nobody"]);
  await ask("Ada", "You are ada.");
  await choose();
  await ask("zoë", "You are zoë.");
  await page.reload();
  await chat.replies.getByText("You are zoë.").waitFor();
  await choose();
  await ask("nobody", "You are undefined.");
  assert.deepEqual(complaints, []);
});

test("a page without the token asks nothing of /dev/ and loads nothing for it", async (t) => {
  const folder = temporaryProject(t, { "agent.ts": agent("First", "Hello one") });
  const command = new Command(["dev", folder], { env: { PORT: "0" } });
  t.after(() => {
    command.kill("SIGKILL");
    return command.end();
  });
  const address = await command.printed("stdout", /^(http:\/\/\S+\/)#dev=\S+\n$/m);
  const { page, complaints } = await openPage(t, browser);
  const asked: string[] = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(address);
  await page.getByText("Hello one").waitFor();
  assert.deepEqual(
    asked.filter((url) => /\/dev\/|\/bar-/.test(url)),
    [],
  );
  assert.deepEqual(complaints, []);
});
