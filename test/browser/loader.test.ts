/** `/widget.js`: the launcher button before anything else is loaded, and what triggers loading the rest. */

import assert from "node:assert/strict";
import { basename, join } from "node:path";
import { after } from "node:test";
import { build } from "esbuild";
import type { Page } from "playwright-core";
import type { AgentChatLauncher } from "../../widget/element/public-types.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { DIST } from "../support/command.ts";
import { gate } from "../support/deadline.ts";
import { it, test } from "../support/rows.ts";
import { say } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";
import { chatIn, failOnComplaints, hasFocus } from "./chat-page.ts";
import { button, panel, preview, script, visit } from "./launcher-page.ts";

const browser = await launchBrowser({ after });

/** The file that opening the panel has to wait for. */
const PANEL = "**/chunks/panel-*.js";

/** Paths that the page has loaded from the chat's server. */
const loaded = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    performance
      .getEntriesByType("resource")
      .map(({ name }) => new URL(name).pathname)
      .filter((path) => path !== "/favicon.ico"),
  );

test("the button stands there with /widget.js alone, and one click opens the chat with the cursor in it", async (t) => {
  const chat = await visit(t, browser, { turns: [[say("Hello.")]] });
  const { page, input } = chat;
  const opener = page.getByRole("button", { name: "Open chat", expanded: false });
  await opener.waitFor();
  assert.deepEqual(await loaded(page), ["/widget.js"]);
  await opener.click();
  await page.getByRole("dialog", { name: "Chat" }).waitFor();
  await input.waitFor();
  await input.and(page.locator(":focus")).waitFor();
  assert.equal(await button(page).getAttribute("aria-expanded"), "true");
  await chat.ask("Hi", "Hello.");
  await page.keyboard.press("Escape");
  await panel(page).waitFor({ state: "hidden" });
  await hasFocus(button(page));
  assert.equal(await button(page).getAttribute("aria-expanded"), "false");
});

test("it follows the page's language and its own attributes, as the launcher does", async (t) => {
  const { page } = await visit(t, browser);
  await page.getByRole("button", { name: "Open chat" }).waitFor();
  await page.evaluate(() => document.documentElement.setAttribute("lang", "fr"));
  await page.getByRole("button", { name: "Ouvrir le chat" }).waitFor();
  await page.evaluate(() => document.querySelector("agent-chat-launcher")?.setAttribute("label", "Une question ?"));
  await page.getByRole("button", { name: "Une question ?" }).getByText("Une question ?").waitFor();
  assert.deepEqual(await loaded(page), ["/widget.js"]);
});

test("the keyboard opens it, and all else is loaded as soon as it has the focus", async (t) => {
  const { page, input } = await visit(t, browser);
  await button(page).waitFor();
  assert.deepEqual(await loaded(page), ["/widget.js"]);
  const asked = page.waitForRequest(PANEL);
  await page.keyboard.press("Tab");
  await asked;
  await page.keyboard.press("Enter");
  await input.and(page.locator(":focus")).waitFor();
});

test("what could not be loaded comes by itself when it can, and the button says meanwhile that it waits", async (t) => {
  const { page, input } = await visit(t, browser, { expectedComplaints: /ERR_FAILED/ });
  await page.route(PANEL, (route) => route.abort());
  const failed = page.waitForEvent("requestfailed");
  await button(page).click();
  await page.locator('[part="launcher"][aria-busy="true"]').waitFor();
  await failed;
  await page.unroute(PANEL);
  await input.and(page.locator(":focus")).waitFor();
});

it("a preview that the page sets later is shown, and a bubble that was seen has the next page load nothing before its time", async (t) => {
  const { page } = await visit(t, browser, { script: 'data-preview-after="0"' });
  await button(page).waitFor();
  await page.evaluate(() => {
    document.querySelector("agent-chat-launcher")?.setAttribute("preview", "Hello Ann");
  });
  await preview(page).getByText("Hello Ann").waitFor();
  await page.goto(new URL("/next", page.url()).href);
  await button(page).waitFor();
  assert.deepEqual(await loaded(page), ["/widget.js"]);
});

it("a person who has gone on to another field by the time the chat could open is left there", async (t) => {
  const { page } = await visit(t, browser, { body: '<input id="name">' });
  const held = gate();
  await page.route(PANEL, async (route) => {
    await held.opened;
    await route.continue();
  });
  await button(page).dblclick();
  await page.locator('[part="launcher"][aria-busy="true"]').waitFor();
  const name = page.locator("#name");
  await name.fill("Ann");
  held.open();
  await page.locator('[part="launcher"]:not([aria-busy])').waitFor();
  await hasFocus(name);
  assert.equal(await panel(page).isVisible(), false);
  await button(page).click();
  await panel(page).waitFor();
});

it("with a script twice, or with both names, there is one button that opens one chat", async (t) => {
  const server = await startServer(t, { turns: [] });
  const [early = "", widget = ""] = ["launcher", "widget"].map(
    (it) => `<script src="${server.url}/${it}.js"></script>`,
  );
  for (const scripts of [widget + widget, early + widget, widget + early]) {
    const site = await startSite(t, { "/": sitePage(scripts) });
    const { page, complaints } = await openPage(t, browser);
    await page.goto(site.url);
    await page.waitForFunction(() => customElements.get("agent-chat-launcher"));
    await button(page).click();
    await chatIn(page.locator("agent-chat")).input.waitFor();
    assert.equal(await button(page).count(), 1);
    assert.deepEqual(complaints, []);
  }
});

it("a launcher that another server's script has put there keeps its server, and so its key", async (t) => {
  const [own, other] = [await startServer(t, { turns: [] }), await startServer(t, { turns: [] })];
  const tags = `<script src="${own.url}/widget.js" data-key="own"></script><script src="${other.url}/widget.js"></script>`;
  const site = await startSite(t, { "/": sitePage(tags) });
  const { page } = await openPage(t, browser);
  await page.goto(site.url);
  await button(page).waitFor();
  const server = page
    .locator("agent-chat-launcher")
    .evaluate((it: HTMLElementTagNameMap["agent-chat-launcher"]) => it.server);
  assert.equal(await server, `${own.url}/`);
});

test("a chat that the page adds later comes to life, and nothing of it is loaded before", async (t) => {
  const chat = await visit(t, browser, { turns: [[say("Hello.")]] });
  await button(chat.page).waitFor();
  assert.deepEqual(await loaded(chat.page), ["/widget.js"]);
  await chat.page.evaluate(() => {
    const box = document.createElement("div");
    box.innerHTML = '<p><agent-chat style="height: 400px"></agent-chat></p>';
    document.body.append(box);
  });
  await chat.ask("Hi", "Hello.");
});

it("a change of a large page has nothing asked of the whole page, and a chat inside of what is added comes to life", async (t) => {
  const chat = await visit(t, browser, { body: `<ul>${"<li><b>x</b>".repeat(500)}</ul>`, turns: [[say("Hello.")]] });
  await button(chat.page).waitFor();
  const asked = await script(
    chat.page,
    `(async () => {
       let count = 0;
       const counted = (owner, name) => {
         const { get, value } = Object.getOwnPropertyDescriptor(owner, name);
         function call(...args) {
           count += 1;
           return (get ?? value).apply(this, args);
         }
         Object.defineProperty(owner, name, get ? { get: call } : { value: call });
       };
       counted(HTMLCollection.prototype, "length");
       for (const name of ["querySelector", "querySelectorAll", "getElementsByTagName"]) counted(Document.prototype, name);
       for (let changes = 0; changes < 10; changes++) {
         document.body.append(document.createElement("i"));
         // By then the observers have been called.
         await new Promise((resolve) => setTimeout(resolve));
       }
       return count;
     })()`,
  );
  assert.equal(asked, 0);
  await script(
    chat.page,
    `{ const item = document.querySelector("ul").appendChild(document.createElement("li"));
       item.innerHTML = '<p><agent-chat style="height: 400px"></agent-chat>'; }`,
  );
  await chat.ask("Hi", "Hello.");
});

it("a button that the page has removed stays away, also on the next page", async (t) => {
  const { page } = await visit(t, browser);
  await button(page).waitFor();
  await page.locator("agent-chat-launcher").evaluate((it) => it.remove());
  await script(page, "document.body.innerHTML = '<main>Next</main>'; new Promise((resolve) => setTimeout(resolve))");
  assert.equal(await button(page).count(), 0);
});

it("the button goes when the page has a chat of its own, as often as one comes, and is back when that goes", async (t) => {
  const { page } = await visit(t, browser, { body: "<main></main>" });
  await button(page).waitFor();
  const buttonsAfter = (change: string) =>
    script(page, `${change}; new Promise((resolve) => setTimeout(resolve))`).then(() => button(page).count());
  await script(page, "var own = document.createElement('agent-chat'), main = document.querySelector('main')");
  const steps = [
    ["main.append(own)", 0],
    ["document.body.append(own)", 0],
    ["own.remove()", 1],
    ["main.append(own)", 0],
    ["document.body.innerHTML = ''", 1],
    ["document.body.innerHTML = '<main><agent-chat-launcher></agent-chat-launcher></main>'", 1],
    ["document.querySelector('main').remove()", 1],
  ] as const;
  for (const [change, count] of steps) assert.equal(await buttonsAfter(change), count, change);
});

test('with data-launcher="none" there is no button, and a chat comes to life wherever the page puts it', async (t) => {
  const chat = await visit(t, browser, { script: 'data-launcher="none"', turns: [[say("Hello.")]] });
  await chat.page.evaluate(() => {
    const box = document.body.appendChild(document.createElement("div"));
    box.attachShadow({ mode: "open" }).innerHTML = '<agent-chat style="height: 400px"></agent-chat>';
  });
  await chat.ask("Hi", "Hello.");
  assert.equal(await button(chat.page).count(), 0);
});

it("as a module it says once what to do instead, adds no button, and the page's chat works", async (t) => {
  const chat = await visit(t, browser, {
    script: 'type="module"',
    body: '<agent-chat style="height: 400px"></agent-chat>',
    turns: [[say("Hello.")]],
  });
  await chat.ask("Hi", "Hello.");
  const said = chat.complaints.splice(0);
  assert.equal(said.length, 1, said.join("\n"));
  assert.match(said[0] ?? "", /as a module.*Use <script src="…" async>/);
  assert.equal(await button(chat.page).count(), 0);
});

test("the server is where the script is, behind a path too, and the key is the tag's", async (t) => {
  const server = await startServer(t, { turns: [] });
  const site = await startSite(t, {
    "/": sitePage(`<script src="${server.url}/chat/widget.js?v=1" data-key=" wk " data-auto-open="86400000"></script>`),
  });
  const { page } = await openPage(t, browser);
  const asked: string[] = [];
  await page.route("**/chat/**", async (route) => {
    const { href, pathname } = new URL(route.request().url());
    asked.push(pathname);
    await route.continue({ url: href.replace("/chat/", "/") });
  });
  await page.goto(site.url);
  const info = page.waitForRequest(`${server.url}/chat/api/info`);
  await button(page).click();
  await panel(page).waitFor();
  await info;
  const launcher = page.locator("agent-chat-launcher");
  const set = await launcher.evaluate((it: HTMLElementTagNameMap["agent-chat-launcher"]) => [
    it.server,
    it.apiKey,
    it.autoOpen,
  ]);
  assert.deepEqual(set, [`${server.url}/chat/`, "wk", "86400000"]);
  assert.ok(
    asked.some((path) => path.startsWith("/chat/chunks/")),
    String(asked),
  );
});

it("a frame on another site takes the site's key from its address, and sends it to no server in one", async (t) => {
  const server = await startServer(t, { turns: [[say("Hello.")]], env: { PARLEY_WIDGET_KEY: "site-key" } });
  const site = await startSite(t, {
    "/": sitePage(`<iframe src="${server.url}/?embed=1#key=site-key" style="width: 600px; height: 500px"></iframe>`),
  });
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints);
  const asked: string[] = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(site.url);
  const frame = page.frames()[1] ?? assert.fail("there is no frame");
  await chatIn(frame).ask("Hi", "Hello.");
  // The browser reports addresses to this test with their fragment, which servers never get.
  assert.ok(
    asked.every((url) => !url.replace(/#.*$/, "").includes("site-key")),
    String(asked),
  );
  assert.doesNotMatch(server.log.join(), /site-key/);
});

/** The check of React and Vue before they set a property. */
const ASK = `for (const name of ["agent-chat", "agent-chat-launcher"]) {
  if (!("toolRenderers" in document.createElement(name))) console.error(name, "is not defined yet");
}`;

test("bundled by a site, both elements work, with their lazy parts from the site's own files, and say when these are gone", async (t) => {
  const server = await startServer(t, { turns: [[say(`\`\`\`js\n${"1 + ".repeat(60)}1\n\`\`\``)], [say("Long.")]] });
  const { outputFiles } = await build({
    stdin: { contents: `import ${JSON.stringify(join(DIST, "widget/browser.js"))};\n${ASK}`, resolveDir: DIST },
    bundle: true,
    splitting: true,
    format: "esm",
    outdir: "/assets",
    entryNames: "site",
    write: false,
  });
  const headers = { "content-type": "text/javascript" };
  const place = `<agent-chat-launcher server="${server.url}" lang="de"></agent-chat-launcher>`;
  const pages = {
    "/": sitePage(`${place}<script type="module" src="/assets/site.js"></script>`),
    ...Object.fromEntries(outputFiles.map(({ path, text }) => [`/assets/${basename(path)}`, { html: text, headers }])),
  };
  const site = await startSite(t, pages);
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints, /Failed to load resource/);
  await page.goto(site.url);
  await page.getByRole("button", { name: "Chat öffnen" }).click();
  const field = page.getByRole("textbox", { name: "Nachricht" });
  await field.fill("Hi");
  await field.press("Enter");
  await page.getByRole("button", { name: "Zeilen umbrechen" }).waitFor();
  assert.deepEqual(
    (await loaded(page)).filter((path) => !/^\/(?:assets|api)\//.test(path)),
    [],
  );
  for (const path of Object.keys(pages)) Reflect.deleteProperty(pages, path);
  await field.fill("word ".repeat(200));
  await field.press("Enter");
  await page.getByRole("button", { name: "Seite neu laden" }).waitFor();
});

test("a key under the element's name for it is taken, and never in the console", async (t) => {
  const { page, complaints } = await visit(t, browser, { script: 'data-api-key="wk"' });
  await button(page).waitFor();
  assert.equal(await page.locator("agent-chat-launcher").evaluate((it) => (it as AgentChatLauncher).apiKey), "wk");
  assert.deepEqual(complaints, []);
});
