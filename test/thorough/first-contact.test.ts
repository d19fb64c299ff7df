/** A developer's first try: a chat without styles has a height, and problems are reported once, with a remedy. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chatIn, failOnComplaints, shown } from "../browser/chat-page.ts";
import { complained, launchBrowser, openPage, type WatchedPage } from "../support/browser.ts";
import { say } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { INFO } from "../widget/scripted-server.ts";

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
  await page.waitForFunction(() => document.querySelector("#bare")?.getBoundingClientRect().height === 400);
});

const FORBIDDEN = "This chat may not be used on this site.";
const NO_KEY = /^This site has no valid chat key\./;

/** The element's console messages, once the last one has arrived. */
async function ours(watched: WatchedPage, last = /^<agent-chat>/) {
  await complained(watched, last);
  return watched.complaints.filter((text) => text.startsWith("<agent-chat>"));
}

test("where the server does not allow the site, visitors read one sentence and the console says what to set", async (t) => {
  const server = await startServer(t, { turns: [], env: { PARLEY_ALLOWED_ORIGINS: "https://other.example" } });
  const site = await startSite(t, {
    "/": sitePage(`<script src="${server.url}/widget.js"></script><agent-chat></agent-chat>`),
  });
  const { page, complaints } = await openPage(t, browser);
  let asked = 0;
  page.on("request", (request) => {
    if (request.url().endsWith("/api/info")) asked += 1;
  });
  await page.goto(site.publicUrl);
  await page.getByRole("alert").getByText(FORBIDDEN).waitFor();
  assert.equal(asked, 2);
  const chat = chatIn(page);
  await chat.say("Hi");
  // The live region repeats the visible sentence.
  await page.getByText(FORBIDDEN).nth(1).waitFor({ state: "attached" });
  assert.equal(await shown(chat.error), FORBIDDEN);
  assert.equal(await chat.input.inputValue(), "Hi", "what was written is not lost");
  assert.deepEqual(await ours({ page, complaints }), [
    `<agent-chat>: the Parley server at ${server.url}/ does not allow pages of ${site.publicUrl}. ` +
      `Add ${site.publicUrl} to the list PARLEY_ALLOWED_ORIGINS of its settings, and restart it.`,
  ]);
});

test("on a page that was opened from a file, or is in a sandbox, the console says that it must be served", async (t) => {
  const server = await startServer(t, { turns: [] });
  const html = sitePage(`<script src="${server.url}/widget.js"></script><agent-chat></agent-chat>`);
  const folder = temporaryProject(t, { "page.html": html });
  const site = await startSite(t, {
    "/": { html, headers: { "content-security-policy": "sandbox allow-scripts" } },
  });
  for (const address of [pathToFileURL(join(folder, "page.html")).href, site.url]) {
    const { page, complaints } = await openPage(t, browser);
    await page.goto(address);
    await page.getByRole("alert").getByText(FORBIDDEN).waitFor();
    assert.deepEqual(await ours({ page, complaints }), [
      "<agent-chat>: PARLEY_ALLOWED_ORIGINS cannot name a page that was opened from a file or is in a sandbox. " +
        "Open it from a web server, for example with: npx serve",
    ]);
  }
});

const needsKey = (url: string) =>
  `<agent-chat>: the Parley server at ${url}/ needs a key, and this page gives none. ` +
  'Set data-key="YOUR_WIDGET_KEY" on the script tag, or api-key on an <agent-chat> of the page.';

test("a network that fails for a moment is not taken for a server that refuses the site", async (t) => {
  const server = await startServer(t, { turns: [], env: { PARLEY_WIDGET_KEY: "w-1" } });
  const site = await startSite(t, {
    "/": sitePage(`<script src="${server.url}/widget.js"></script><agent-chat></agent-chat>`),
  });
  const { page, complaints } = await openPage(t, browser);
  await page.route("**/api/info", (route) => route.abort("internetdisconnected"), { times: 1 });
  await page.goto(site.url);
  await page.getByText(NO_KEY).waitFor();
  assert.deepEqual(await ours({ page, complaints }), [needsKey(server.url)]);
});

test("where the server is none of ours, the console says so, and no reference leads to a log", async (t) => {
  const server = await startServer(t, { turns: [] });
  const site = await startSite(t, {
    "/": sitePage(`<script src="${server.url}/widget.js"></script><agent-chat server="/"></agent-chat>`),
    "/html": sitePage(`<script src="${server.url}/widget.js"></script><agent-chat server="/spa"></agent-chat>`),
    "/spa/api/info": sitePage(""),
  });
  const { page, complaints } = await openPage(t, browser);
  await page.goto(site.url);
  await page.getByRole("alert").getByText("The chat server cannot be reached.").waitFor();
  const chat = chatIn(page);
  await chat.say("Hi");
  await chat.answered();
  assert.equal(await shown(chat.error.locator("p")), "The server sent an answer that this chat cannot read.");
  await page.goto(`${site.url}/html`);
  await page.getByRole("alert").getByText("The chat server cannot be reached.").waitFor();
  assert.deepEqual(await ours({ page, complaints }, /spa/), [
    `<agent-chat>: ${site.url}/ is not a Parley server (GET /api/info gave 404). Check the attribute server.`,
    `<agent-chat>: ${site.url}/spa/ is not a Parley server (GET /api/info gave text/html; charset=utf-8). Check the attribute server.`,
  ]);
});

test("no key, no token and no message follows a redirect to another server, and the console says where it leads from", async (t) => {
  const server = await startServer(t, { turns: [] });
  const asked: string[] = [];
  let isMoved = false;
  const cors = { "access-control-allow-origin": "*", "access-control-allow-headers": "*" };
  const listening = async (answer: RequestListener) => {
    const http = createServer(answer).listen(0, "127.0.0.1");
    await once(http, "listening");
    t.after(() => http.close());
    t.after(() => http.closeAllConnections());
    return `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  };
  const elsewhere = await listening((req, res) => {
    asked.push(`${req.method} ${req.url}`);
    res.writeHead(200, { ...cors, "content-type": "application/json" }).end(JSON.stringify(INFO));
  });
  const site = await listening((req, res) => {
    const { url = "" } = req;
    if (isMoved && url.startsWith("/api/")) res.writeHead(307, { location: elsewhere + url }).end();
    else if (url === "/api/info") res.end(JSON.stringify({ ...INFO, user: "Ada" }));
    else if (url.startsWith("/?")) {
      const chat = '<agent-chat server="/" api-key="w-1"></agent-chat>';
      const token = '<script>document.querySelector("agent-chat").userToken = "ada"</script>';
      res.writeHead(200, { "content-type": "text/html" });
      res.end(sitePage(`${chat}${token}<script src="${server.url}/widget.js"></script>`));
    } else res.writeHead(404).end();
  });
  const { page, complaints } = await openPage(t, browser);
  const chat = chatIn(page);
  await page.goto(`${site}/?before`);
  await chat.greeting.waitFor();
  isMoved = true;
  await chat.say("Hi");
  await page.getByText("The chat server cannot be reached.").first().waitFor();
  const hinted = page.waitForEvent("console", (it) => it.text().includes("a redirect"));
  await page.goto(`${site}/?after`);
  await hinted;
  assert.deepEqual(await ours({ page, complaints }, /redirect/), [
    `<agent-chat>: ${site}/ is not a Parley server (GET /api/info gave a redirect). Check the attribute server.`,
  ]);
  assert.deepEqual(asked, []);
});

test("a key in the script's tag beside a chat of the page's own, and a wrong key, are in the console", async (t) => {
  const server = await startServer(t, { turns: [], env: { PARLEY_WIDGET_KEY: "w-1" } });
  const site = await startSite(t, {
    "/": sitePage(`<script src="${server.url}/widget.js" data-key="w-1"></script><agent-chat></agent-chat>`),
    "/wrong": sitePage(`<script src="${server.url}/widget.js"></script><agent-chat api-key="w-2"></agent-chat>`),
  });
  const { page, complaints } = await openPage(t, browser);
  await page.goto(site.url);
  const chat = chatIn(page);
  await page.getByText(NO_KEY).waitFor();
  await page.goto(`${site.url}/wrong`);
  await chat.say("Hi");
  await chat.answered();
  await chat.say("Hi again");
  await chat.answered(2);
  assert.match(await shown(chat.error.last()), NO_KEY);
  assert.equal(await chat.keyField.count(), 0, "the visitor is not asked for another");
  assert.equal(await chat.retry.count(), 0, "trying again would not help");
  assert.deepEqual(await ours({ page, complaints }, /does not accept/), [
    needsKey(server.url),
    "<agent-chat>: the server does not accept the key of the attribute api-key (of a script: data-key).",
  ]);
});
