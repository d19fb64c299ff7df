import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import { chatIn, failOnComplaints, watchAddresses } from "../browser/chat-page.ts";
import { complained, launchBrowser, openPage } from "../support/browser.ts";
import { say } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";

const browser = await launchBrowser({ after });

interface VisitOptions {
  key?: string;
  env?: Record<string, string>;
  /** Expected console messages. */
  expected?: RegExp;
}

/** Messages of the browser and the element when the server rejects the site. */
const REFUSED = /blocked by CORS policy|net::ERR_FAILED|does not allow pages of/;

/** Opens the widget on another site's page, with this key in its script tag; in settings, `SITE` is that site. */
async function visit(t: TestContext, { key, env = {}, expected }: VisitOptions) {
  const pages: Record<string, string> = {};
  const { publicUrl } = await startSite(t, pages);
  const named = Object.entries(env).map(([name, value]) => [name, value.replace("SITE", publicUrl)]);
  const server = await startServer(t, { turns: [[say("Hello, visitor.")]], env: Object.fromEntries(named) });
  const data = key === undefined ? "" : ` data-key="${key}"`;
  pages["/"] = sitePage(`<script src="${server.url}/widget.js"${data}></script>`);
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints, expected);
  const seen = watchAddresses(page);
  await page.goto(publicUrl);
  await page.getByRole("button", { name: "Open chat" }).click();
  return { page, server, complaints, seen, ...chatIn(page.locator("agent-chat")) };
}

test("a site that is not named is refused although it has the key", async (t) => {
  const chat = await visit(t, {
    key: "w-1",
    env: { PARLEY_WIDGET_KEY: "w-1", PARLEY_ALLOWED_ORIGINS: "https://other.example" },
    expected: REFUSED,
  });
  await chat.error.waitFor();
  assert.equal(await chat.keyField.count(), 0);
  await chat.say("Is somebody there?");
  await chat.page.getByText("This chat may not be used on this site.").nth(1).waitFor({ state: "attached" });
  assert.equal(await chat.input.inputValue(), "Is somebody there?");
  assert.equal(chat.server.model.asked.length, 0);
  await complained(chat, /CORS/);
});

test("a chat key is of no use on another site", async (t) => {
  const chat = await visit(t, { key: "c-1", env: { PARLEY_CHAT_KEY: "c-1" }, expected: /only from the chat page/ });
  await chat.say("Hi");
  await chat.error.getByText("This chat may not be used on this site.").waitFor();
  await complained(chat, /only from the chat page/);
  assert.equal(await chat.keyField.count(), 0);
});

test("its key opens the chat on a site that is named, and is in no address but the socket's, and in no storage", async (t) => {
  const env = { PARLEY_WIDGET_KEY: "w-other,w-secret", PARLEY_ALLOWED_ORIGINS: "SITE" };
  const chat = await visit(t, { key: "w-secret", env });
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

test("where the site has forgotten its key, visitors are asked for none, and the console says what to set", async (t) => {
  const chat = await visit(t, { env: { PARLEY_WIDGET_KEY: "w-1" }, expected: /needs a key/ });
  await chat.page.getByText("This site has no valid chat key.").waitFor();
  assert.equal(await chat.keyField.count(), 0);
  const needsKey = /needs a key, and this page gives none\. Set data-key="/;
  await complained(chat, needsKey);
  assert.equal(chat.complaints.filter((text) => needsKey.test(text)).length, 1);
  const { page, input } = chat;
  await chat.say("Is somebody there?");
  const failed = page.locator("agent-chat").evaluate(async (it: HTMLElementTagNameMap["agent-chat"]) => {
    const event = new Promise<string>((resolve) =>
      it.addEventListener("agent-chat-error", ({ code }) => resolve(code)),
    );
    await it.send("Nor from a script");
    return event;
  });
  assert.equal(await failed, "unauthorized");
  await chat.replies.getByText("This site has no valid chat key.").waitFor();
  await page.locator('[part="connection"]').getByText("This site has no valid chat key.").waitFor();
  assert.equal(await input.inputValue(), "Is somebody there?", "nothing that was written is lost");
  await page.locator("agent-chat-launcher").evaluate((it) => void Object.assign(it, { apiKey: "w-1" }));
  await page.locator('[part="connection"]').waitFor({ state: "detached" });
  await input.press("Enter");
  await chat.replies.getByText("Hello, visitor.").waitFor();
  await chat.questions.last().getByText("Is somebody there?").waitFor();
});
