import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { Page } from "playwright-core";
import { launchBrowser, openPage } from "../support/browser.ts";
import { say } from "../support/scripted-provider.ts";
import { type Site, sitePage, startSite } from "../support/site.ts";
import { startServer, type TestServer } from "../support/start-server.ts";
import { type ChatElement, chatIn, failOnComplaints, watchAddresses } from "./chat-page.ts";

const browser = await launchBrowser({ after });

interface Visit extends ChatElement {
  page: Page;
  server: TestServer;
  site: Site;
  complaints: string[];
  seen: ReturnType<typeof watchAddresses>;
}

interface VisitOptions {
  key?: string;
  env?: Record<string, string>;
  from?: keyof Site;
  /** What will be in the console. */
  expected?: RegExp;
}

/** The browser and the element say that the server refuses the site. */
const REFUSED = /blocked by CORS policy|net::ERR_FAILED|does not allow pages of/;

/** Opens the widget on another site's page, with this key in its script tag. */
async function visit(t: TestContext, { key, env = {}, from = "publicUrl", expected }: VisitOptions): Promise<Visit> {
  const pages: Record<string, string> = {};
  const site = await startSite(t, pages);
  const allowed = env.PARLEY_ALLOWED_ORIGINS?.replace("SITE", site[from]);
  const server = await startServer(t, {
    turns: [[say("Hello, visitor.")]],
    env: { ...env, ...(allowed === undefined ? {} : { PARLEY_ALLOWED_ORIGINS: allowed }) },
  });
  const data = key === undefined ? "" : ` data-key="${key}"`;
  pages["/"] = sitePage(`<script src="${server.url}/widget.js"${data}></script>`);
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints, expected);
  const seen = watchAddresses(page);
  await page.goto(`${site[from]}/`);
  await page.getByRole("button", { name: "Open chat" }).click();
  return { page, server, site, complaints, seen, ...chatIn(page.locator("agent-chat")) };
}

test("a widget key opens the chat on any site when no origins are named", async (t) => {
  const chat = await visit(t, { key: "w-1", env: { PARLEY_WIDGET_KEY: "w-1,w-2" } });
  await chat.ask("Hi", "Hello, visitor.");
});

test("a widget key opens the chat on a site that is named", async (t) => {
  const chat = await visit(t, {
    key: "w-1",
    env: { PARLEY_WIDGET_KEY: "w-1", PARLEY_ALLOWED_ORIGINS: "SITE" },
  });
  await chat.ask("Hi", "Hello, visitor.");
});

test("a site that is not named is refused although it has the key", async (t) => {
  const chat = await visit(t, {
    key: "w-1",
    env: { PARLEY_WIDGET_KEY: "w-1", PARLEY_ALLOWED_ORIGINS: "https://other.example" },
    expected: REFUSED,
  });
  await chat.error.waitFor();
  assert.equal(await chat.keyField.count(), 0);
  assert.equal(chat.server.model.asked.length, 0);
  assert.ok(chat.complaints.some((text) => text.includes("CORS")));
});

test("an API key works in the widget as well", async (t) => {
  const chat = await visit(t, { key: "general", env: { PARLEY_API_KEY: "general" } });
  await chat.ask("Hi", "Hello, visitor.");
});

test("a wrong widget key shows an error to the visitor, who is not asked for another", async (t) => {
  const chat = await visit(t, { key: "wrong", env: { PARLEY_WIDGET_KEY: "w-1" }, expected: /does not accept the key/ });
  await chat.say("Hi");
  await chat.error.getByText("This site’s chat key was not accepted.").waitFor();
  assert.equal(await chat.keyField.count(), 0);
  assert.equal(await chat.retry.count(), 0, "trying again would not help");
  assert.equal(chat.server.model.asked.length, 0);
});

test("a chat key is of no use on another site", async (t) => {
  const chat = await visit(t, { key: "c-1", env: { PARLEY_CHAT_KEY: "c-1" }, expected: /only from the chat page/ });
  await chat.say("Hi");
  await chat.error.getByText("This chat may not be used on this site.").waitFor();
  assert.ok(chat.complaints.some((text) => text.includes("only from the chat page")));
  assert.equal(await chat.keyField.count(), 0);
});

test("without keys on a loopback address, pages of this machine may use the server", async (t) => {
  const chat = await visit(t, { from: "url" });
  await chat.ask("Hi", "Hello, visitor.");
});

test("without keys on a loopback address, a foreign site may not", async (t) => {
  const chat = await visit(t, { expected: REFUSED });
  await chat.error.waitFor();
  assert.equal(chat.server.model.asked.length, 0);
  assert.ok(chat.complaints.some((text) => text.includes("CORS")));
});

test("without keys, a foreign site that is named may", async (t) => {
  const chat = await visit(t, { env: { PARLEY_ALLOWED_ORIGINS: "SITE" } });
  await chat.ask("Hi", "Hello, visitor.");
});

test("the site's key is in no address but the socket's, and in no storage", async (t) => {
  const chat = await visit(t, { key: "w-secret", env: { PARLEY_WIDGET_KEY: "w-secret" } });
  await chat.ask("Hi", "Hello, visitor.");
  const { requests, sockets } = chat.seen;
  assert.deepEqual(
    requests.filter((url) => url.includes("w-secret")),
    [],
  );
  assert.equal(sockets.length, 1);
  assert.equal(new URL(sockets[0] ?? "").searchParams.get("key"), "w-secret");
  const stored = await chat.page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
  assert.ok(!stored.includes("w-secret"), stored);
});

test("a script tag without a key asks the visitor for one where the server needs it", async (t) => {
  const chat = await visit(t, { env: { PARLEY_WIDGET_KEY: "w-1" } });
  await chat.keyField.fill("w-1");
  await chat.keyField.press("Enter");
  await chat.ask("Hi", "Hello, visitor.");
});
