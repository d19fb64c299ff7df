/** The chat below a path of a site: on the server's own page and on another site, and its stored data. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, type TestContext, test } from "node:test";
import { createParley } from "../../server/mount.ts";
import { chatIn, failOnComplaints, watchAddresses } from "../browser/chat-page.ts";
import { button, chatTag } from "../browser/launcher-page.ts";
import { atEnd } from "../support/at-end.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { listen } from "../support/listen.ts";
import { startProxy, type TestProxy } from "../support/proxy.ts";
import { hang, say, wait } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { type ServerOptions, startServer, type TestServer } from "../support/start-server.ts";

const browser = await launchBrowser({ after });

/** Each way uses another transport and another form of the address. */
const WAYS = {
  "below PARLEY_BASE_PATH": {
    env: { PARLEY_BASE_PATH: "/team/support" },
    below: [""],
    transport: "WebSocket",
    slash: "",
  },
  "behind a proxy that strips the path": { env: {}, below: ["/team/support"], transport: "SSE", slash: "/" },
};

type Way = keyof typeof WAYS;

interface Below {
  readonly server: TestServer;
  readonly proxy: TestProxy;
  /** Without a slash at the end. */
  readonly url: string;
}

async function startBelow(
  t: TestContext,
  way: Way,
  { upgrades, ...options }: ServerOptions & { upgrades?: "refuse" },
): Promise<Below> {
  const { env, below } = WAYS[way];
  const server = await startServer(t, { ...options, env: { ...options.env, ...env } });
  const proxy = await startProxy(t, server.port, { below, ...(upgrades && { upgrades }) });
  return { server, proxy, url: `${proxy.url}/team/support` };
}

/** Console messages about connections that the test has cut. */
const LOST = /^WebSocket connection to|^Failed to load resource: net::/;

for (const way of Object.keys(WAYS) as Way[]) {
  const { transport, slash } = WAYS[way];

  test(`${way} the page chats, resumes a lost answer and stops one, all below it (${transport})`, async (t) => {
    const more = gate();
    const turns = [
      [say("One, "), wait(more.opened), say("two.")],
      [say("Endless"), hang],
    ];
    const { server, proxy, url } = await startBelow(t, way, {
      turns,
      ...(transport === "SSE" && { upgrades: "refuse" }),
    });
    const { page, complaints } = await openPage(t, browser);
    failOnComplaints(t, complaints, LOST);
    const seen = watchAddresses(page);
    await page.goto(`${url}/`);
    const chat = chatIn(page);
    await chat.say("Count");
    await chat.answer.getByText("One,").waitFor();
    proxy.cut();
    more.open();
    await chat.answer.getByText("One, two.").waitFor();
    await chat.answered();
    await chat.say("And?");
    await chat.answer.getByText("Endless").waitFor();
    await chat.stop.click();
    await chat.replies.getByText("You stopped this answer.").waitFor();
    await server.model.asked[1]?.aborted;
    assert.equal(server.model.asked.length, 2);
    const addresses = [...seen.requests, ...seen.sockets].map((address) => new URL(address));
    const outside = addresses.filter(
      ({ protocol, pathname }) => protocol !== "data:" && !pathname.startsWith("/team/support/"),
    );
    assert.deepEqual(outside.map(String), []);
    assert.ok(seen.sockets.length > 0);
  });

  test(`${way} an element of another site finds its server by https://…/support${slash}`, async (t) => {
    const { url } = await startBelow(t, way, { turns: [[say("Hello.")]] });
    const site = await startSite(t, {
      "/": sitePage(`<script src="${url}/widget.js"></script>${chatTag(400, `server="${url}${slash}"`)}`),
    });
    const { page, complaints } = await openPage(t, browser);
    failOnComplaints(t, complaints);
    await page.goto(site.url);
    await chatIn(page.locator("agent-chat")).ask("Hi", "Hello.");
  });

  test(`${way} the button of another site finds its server by its script`, async (t) => {
    const { url } = await startBelow(t, way, { turns: [[say("Hello.")]] });
    const site = await startSite(t, { "/": sitePage(`<script src="${url}/widget.js"></script>`) });
    const { page, complaints } = await openPage(t, browser);
    failOnComplaints(t, complaints);
    await page.goto(site.url);
    await button(page).click();
    await chatIn(page.locator("agent-chat")).ask("Hi", "Hello.");
  });
}

test("in a server of one's own the page and an element of the host's page chat below the path", async (t) => {
  const settings = { PARLEY_LOG: "off", PARLEY_DRAIN_SECONDS: "0" };
  const agent = { name: "Acme Support", model: "demo" };
  const parley = await createParley({ agent, settings, basePath: "/team/support" });
  atEnd(t, () => parley.close());
  const html = sitePage(`<script src="/team/support/widget.js"></script>${chatTag(400, 'server="/team/support"')}`);
  const host = createServer((req, res) =>
    parley.handle(req, res, () => res.setHeader("content-type", "text/html").end(html)),
  );
  const url = await listen(t, host.on("upgrade", parley.upgrade));
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints);
  const seen = watchAddresses(page);
  const chats = async (chat: ReturnType<typeof chatIn>, count: number) => {
    await chat.say("Hi");
    await chat.replies
      .nth(count - 1)
      .getByText("demo model")
      .waitFor();
    await chat.answered(count);
  };
  await page.goto(`${url}/team/support`);
  await chats(chatIn(page), 1);
  assert.equal(page.url(), `${url}/team/support/`);
  await page.goto(`${url}/shop/`);
  // The page's conversation continues.
  const element = chatIn(page.locator("agent-chat"));
  await element.replies.getByText("demo model").waitFor();
  await chats(element, 2);
  // If the page was left before the end of the answer was stored, the element resumes it.
  assert.ok(seen.sockets.length >= 2);
  for (const address of seen.sockets) assert.equal(new URL(address).pathname, "/team/support/ws/chat");
});

test("the bare path leads to the page, in a frame of another site, too", async (t) => {
  const { url } = await startBelow(t, "below PARLEY_BASE_PATH", {
    turns: [[say("Hello.")]],
    env: { PARLEY_WIDGET_KEY: "site-key" },
  });
  const site = await startSite(t, {
    "/": sitePage(`<iframe src="${url}?embed=1#key=site-key" style="width: 600px; height: 500px"></iframe>`),
  });
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints);
  await page.goto(site.url);
  const frame = page.frames()[1] ?? assert.fail("there is no frame");
  await chatIn(frame).ask("Hi", "Hello.");
  assert.equal(frame.url(), `${url}/?embed=1#key=site-key`);
});

test("below two paths of one site the browser shares neither key, conversation nor draft", async (t) => {
  const server = await startServer(t, {
    turns: [[say("First.")], [say("Second.")]],
    env: { PARLEY_CHAT_KEY: "the-key" },
  });
  const proxy = await startProxy(t, server.port, { below: ["/one", "/two"] });
  const { page } = await openPage(t, browser);
  const chat = chatIn(page);
  const open = (path: string) => page.goto(`${proxy.url}${path}/`);
  const enterKey = async () => {
    await chat.keyField.fill("the-key");
    await chat.keyField.press("Enter");
  };
  await open("/one");
  await enterKey();
  await chat.ask("Hi from one", "First.");
  await chat.input.fill("Draft of one");
  await open("/two");
  await enterKey();
  await chat.input.waitFor();
  assert.equal(await chat.input.inputValue(), "");
  assert.equal(await chat.messages.getByText("one").count(), 0);
  await chat.ask("Hi from two", "Second.");
  await open("/one");
  await chat.questions.getByText("Hi from one").waitFor();
  assert.equal(await chat.input.inputValue(), "Draft of one");
  assert.equal(await chat.messages.getByText("two").count(), 0);
});

test("what a launcher keeps in the tab is kept by its server's whole address, also where a page names it relatively", async (t) => {
  const server = await startServer(t, { turns: [] });
  const html = sitePage(
    `<script src="${server.url}/widget.js" data-launcher="none"></script><agent-chat-launcher server="chat"></agent-chat-launcher>`,
  );
  const site = await startSite(t, { "/shop/": html, "/blog/": html });
  const { page } = await openPage(t, browser);
  await page.goto(`${site.url}/shop/`);
  await button(page).click();
  await page.getByRole("dialog", { name: "Chat" }).waitFor();
  await page.goto(`${site.url}/blog/`);
  await button(page).waitFor();
  const names = await page.evaluate(() => Object.keys(sessionStorage).filter((name) => name.includes("panel")));
  assert.deepEqual(names, [`agent-chat-panel:${site.url}/shop/chat`]);
});
