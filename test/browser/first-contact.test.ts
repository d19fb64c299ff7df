/** A developer's first try: a chat without any style has a height, and what is wrong is said once, with what to do. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { launchBrowser, openPage } from "../support/browser.ts";
import { say } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";
import { chatIn, failOnComplaints } from "./chat-page.ts";

const browser = await launchBrowser({ after });

test("a chat without a height has one, and takes one from its own style or from what it stands in", async (t) => {
  const server = await startServer(t, { turns: [[say("A paragraph.\n\n".repeat(40))]] });
  const site = await startSite(t, {
    "/": sitePage(
      [
        `<script src="${server.url}/widget.js"></script>`,
        '<agent-chat id="bare"></agent-chat>',
        '<agent-chat id="styled" style="height: 300px"></agent-chat>',
        '<div style="height: 350px"><agent-chat id="inside"></agent-chat></div>',
        '<div style="height: 700px; display: flex; flex-direction: column"><p>Title</p><agent-chat id="flexible" style="flex: 1"></agent-chat></div>',
        '<div style="display: grid"><agent-chat id="cell"></agent-chat></div>',
      ].join(""),
    ),
  });
  const { page, complaints } = await openPage(t, browser, { viewport: { width: 800, height: 1000 } });
  failOnComplaints(t, complaints);
  await page.goto(site.url);
  await page.locator("#cell").getByRole("textbox").waitFor();
  const heights = () =>
    page.evaluate(() =>
      Object.fromEntries(
        [...document.querySelectorAll("agent-chat")].map((chat) => [chat.id, chat.getBoundingClientRect().height]),
      ),
    );
  const { flexible = 0, ...others } = await heights();
  assert.deepEqual(others, { bare: 600, styled: 300, inside: 350, cell: 600 });
  assert.ok(flexible > 600 && flexible < 700, `${flexible}`);
  const bare = chatIn(page.locator("#bare"));
  await bare.say("Long");
  await bare.answered();
  assert.equal((await heights()).bare, 600, "the conversation scrolls inside");
  await page.setViewportSize({ width: 800, height: 500 });
  assert.equal((await heights()).bare, 400);
});

test("where the server does not allow the site, one message names the setting and the site", async (t) => {
  const server = await startServer(t, { turns: [], env: { PARLEY_ALLOWED_ORIGINS: "https://other.example" } });
  const site = await startSite(t, {
    "/": sitePage(`<script src="${server.url}/widget.js"></script><agent-chat></agent-chat>`),
  });
  const { page, complaints } = await openPage(t, browser);
  await page.goto(site.publicUrl);
  await page.getByRole("alert").getByText("The chat server cannot be reached.").waitFor();
  const ours = () => complaints.filter((text) => text.startsWith("<agent-chat>"));
  const refused = page.waitForEvent("requestfailed", (request) => request.url().endsWith("/api/info"));
  await page.getByRole("button", { name: "Try again" }).click();
  await refused;
  assert.deepEqual(ours(), [
    `<agent-chat> ${server.url}/ answers, but not for this site: PARLEY_ALLOWED_ORIGINS of a Parley server there must contain ${site.publicUrl}`,
  ]);
});
