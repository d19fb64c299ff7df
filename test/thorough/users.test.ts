/** Users in the browser: no screen, storage or tab shows one user's conversations to the next. */

import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { Page } from "playwright-core";
import type { RunContext } from "../../server/agent/run-context.ts";
import { type Authenticate, Unauthorized } from "../../server/auth/authenticate.ts";
import type { AgentChat, AgentChatLauncher } from "../../widget/element/public-types.ts";
import { type ChatElement, chatIn, failOnComplaints, shown } from "../browser/chat-page.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { gate, within } from "../support/deadline.ts";
import { say, type Turn, wait } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer, type TestServer } from "../support/start-server.ts";

const browser = await launchBrowser({ after });

/** The token is the user's id unless it has expired. A session of the server's own site works, too. */
const byToken: Authenticate = ({ token, headers }) => {
  const id = token ?? /session=(\w+)/.exec(headers.cookie ?? "")?.[1];
  if (id === undefined || id.startsWith("expired")) throw new Unauthorized("Your session has ended.");
  return { id };
};

const SIGN_IN = "Please sign in to write here.";

const turnsOf = (...texts: string[]): Turn[] => texts.map((text) => [say(text)]);

/** A server with `authenticate` that records the users of all messages. */
async function startWithUsers(
  t: TestContext,
  turns: readonly Turn[],
): Promise<{ server: TestServer; users: string[] }> {
  const users: string[] = [];
  const instructions = ({ user, metadata }: RunContext) => {
    users.push([user?.id, ...Object.entries(metadata).flat()].join(" "));
    return "Help.";
  };
  const env = { PARLEY_ALLOWED_ORIGINS: "*" };
  return { server: await startServer(t, { authenticate: byToken, turns, agent: { instructions }, env }), users };
}

/** A page of another site, whose script runs before the element is rendered. */
async function openSite(t: TestContext, { url }: TestServer, script: string, expected?: RegExp) {
  const html = `<agent-chat server="${url}"></agent-chat>
    <script>const chat = document.querySelector("agent-chat"); ${script}
      addEventListener("agent-chat-login-required", () => { document.title += "!"; });</script>
    <script src="${url}/widget.js" async></script>`;
  const site = await startSite(t, { "/": sitePage(html) });
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints, expected);
  await page.goto(site.url);
  return { page, site, ...chatIn(page) };
}

const set = (page: Page, token: string | undefined) =>
  page.locator("agent-chat").evaluate((chat: AgentChat, to) => {
    chat.userToken = to;
  }, token);

const signOut = (page: Page) => page.locator("agent-chat").evaluate((chat: AgentChat) => chat.signOut());

/** All data that the element has stored in the browser, as a text. */
const stored = (page: Page): Promise<string> =>
  page.evaluate(`(async () => {
    let rows = [];
    for (const { name } of await indexedDB.databases()) {
      const opening = indexedDB.open(name);
      await new Promise((resolve) => { opening.onsuccess = resolve; });
      const reading = opening.result.transaction("conversations").objectStore("conversations").getAll();
      await new Promise((resolve) => { reading.onsuccess = resolve; });
      opening.result.close();
      rows = [...rows, ...reading.result];
    }
    return JSON.stringify([{ ...localStorage }, { ...sessionStorage }, rows]);
  })()`);

/** All that the element has rendered, visible or not. */
const drawn = (page: Page): Promise<string> =>
  page.locator("agent-chat").evaluate((chat) => {
    const field = chat.shadowRoot?.querySelector("textarea")?.value ?? "";
    return `${chat.shadowRoot?.textContent ?? ""}${field}`;
  });

/** Waits until the data match (or no longer match): databases are written a moment after the screen. */
async function untilStored(page: Page, what: RegExp, isStored = true): Promise<void> {
  const waiting = async () => {
    while (what.test(await stored(page)) !== isStored) await page.evaluate(() => new Promise(requestAnimationFrame));
  };
  await within(waiting(), `${isStored ? "" : "the end of "}${what} in what is stored`);
}

/** Waits until this is in the text field. */
const untilWritten = (page: Page, text: string) =>
  page.waitForFunction(
    (it) => document.querySelector("agent-chat")?.shadowRoot?.querySelector("textarea")?.value === it,
    text,
  );

async function assertNothingOf(page: Page, what: RegExp, tab: string): Promise<void> {
  assert.doesNotMatch(await drawn(page), what, tab);
  await untilStored(page, what, false);
}

/** Attaches a file, read once the returned function is called, whose promise resolves when it was checked. */
const attachSlowly = (page: Page, name: string) =>
  page.locator("agent-chat").evaluateHandle((chat: AgentChat, fileName) => {
    const file = new File(["no picture"], fileName);
    const held = { open(_bytes: ArrayBuffer) {} };
    const bytes = new Promise<ArrayBuffer>((resolve) => {
      held.open = resolve;
    });
    const part = {
      arrayBuffer() {
        return bytes;
      },
    };
    Object.assign(file, {
      slice() {
        return part;
      },
    });
    const attached = chat.attach([file]);
    return () => {
      held.open(new ArrayBuffer(8));
      return attached;
    };
  }, name);

const isEmpty = (chat: ChatElement) => chat.questions.first().waitFor({ state: "detached" });

test("of a user who has signed out nothing is left, on screen, in storage and in other tabs, and the next one is asked as themself", async (t) => {
  const { server, users } = await startWithUsers(
    t,
    turnsOf("Fine, Ada.", "Once more, Ada.", "Fine, Bob.", "Fine, Eve."),
  );
  const one = await openSite(t, server, `chat.userToken = "ada"; chat.metadata = { page: "home" };`);
  await one.ask("Ada here", "Fine, Ada.");
  await one.input.fill("Ada was writing");
  const page = await one.page.context().newPage();
  await page.goto(one.site.url);
  const two = { page, ...chatIn(page) };
  await two.ask("Ada again", "Once more, Ada.");
  await untilStored(page, /Ada again/);
  await signOut(one.page);
  await Promise.all([isEmpty(one), isEmpty(two)]);
  await one.page.getByText(SIGN_IN).waitFor();
  await two.page.getByText(SIGN_IN).waitFor();
  for (const tab of [one, two]) await assertNothingOf(tab.page, /Ada|agent-chat-user/, "after the sign-out");
  await one.input.fill("Bob here");
  await set(one.page, "bob");
  await one.greeting.waitFor();
  await one.input.press("Enter");
  await one.answered();
  assert.equal(await shown(one.answer), "Fine, Bob.");
  // Without a sign-out, the page changes to another user.
  await one.input.fill("Bob was writing");
  const readOn = await attachSlowly(one.page, "Bob.png");
  await set(one.page, "eve");
  await isEmpty(one);
  await one.greeting.waitFor();
  await readOn.evaluate((go) => go());
  await assertNothingOf(one.page, /Bob/, "after Bob");
  await one.ask("Eve here", "Fine, Eve.");
  assert.deepEqual(users, ["ada page home", "ada page home", "bob page home", "eve page home"]);
});

for (const [way, blocked] of [
  ["a socket", false],
  ["HTTP", true],
] as const) {
  test(`a token that has expired is asked for again over ${way}, and the message is answered once`, async (t) => {
    const { server, users } = await startWithUsers(t, turnsOf("One.", "Two."));
    const script = `const tokens = ["ada", "ada", "expired", "ada"]; let asked = 0;
      ${blocked ? 'window.WebSocket = function () { throw new Error("blocked"); };' : ""}
      chat.userToken = async () => { asked++; document.title = asked; return tokens[Math.min(asked - 1, 3)]; };`;
    const chat = await openSite(t, server, script);
    await chat.ask("First", "One.");
    await chat.ask("Second", "Two.");
    assert.deepEqual(users, ["ada", "ada"]);
    assert.equal(await chat.page.title(), "4");
    assert.equal(await chat.questions.count(), 2);
  });
}

test("where the user has to sign in, the chat says so, keeps what was written, and goes on once they have", async (t) => {
  const { server, users } = await startWithUsers(t, turnsOf("One.", "Two."));
  const script = `window.token = sessionStorage.getItem("token") ?? "ada"; chat.userToken = () => window.token;`;
  const chat = await openSite(t, server, script);
  await chat.ask("First", "One.");
  await chat.page.evaluate(() => {
    sessionStorage.setItem("token", "expired");
    Object.assign(window, { token: "expired" });
  });
  await chat.say("Second");
  await chat.page.getByText(SIGN_IN).first().waitFor();
  await chat.page.waitForFunction(() => document.title.includes("!"));
  assert.equal(await chat.input.inputValue(), "Second");
  assert.equal(await chat.questions.count(), 0);
  await chat.page.reload();
  await chat.page.getByText(SIGN_IN).waitFor();
  assert.doesNotMatch(await drawn(chat.page), /First|Second/);
  await set(chat.page, "ada");
  await chat.replies.getByText("One.").waitFor();
  await chat.page.waitForFunction(
    () => document.querySelector("agent-chat")?.shadowRoot?.querySelector("textarea")?.value,
  );
  assert.equal(await chat.input.inputValue(), "Second");
  await chat.ask("Second", "Two.");
  assert.deepEqual(users, ["ada", "ada"]);
});

test("while the user is not known nothing is shown, and an answer goes on after a reload with the token", async (t) => {
  const rest = gate();
  const { server } = await startWithUsers(t, [[say("Half "), wait(rest.opened), say("done.")]]);
  const script = `let give; const given = new Promise((resolve) => { give = resolve; });
    if (!sessionStorage.visited) give(); sessionStorage.visited = "yes";
    chat.userToken = async () => { await given; return "ada"; };`;
  const chat = await openSite(t, server, script);
  await chat.say("Go");
  await chat.answer.getByText("Half").waitFor();
  await chat.page.reload();
  await chat.input.waitFor();
  assert.doesNotMatch(await drawn(chat.page), /Half|Go/);
  await chat.page.evaluate("give()");
  await chat.answer.getByText("Half").waitFor();
  rest.open();
  await chat.answered();
  assert.equal(await shown(chat.answer), "Half done.");
});

test("a session cookie of the server's own site says who is there, without a token; when it is gone, so is the conversation, which waits for its user in the list", async (t) => {
  const { server, users } = await startWithUsers(t, turnsOf("Fine.", "Fine, too."));
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints);
  const signIn = (id: string) => page.context().addCookies([{ name: "session", value: id, url: server.url }]);
  await signIn("ada");
  await page.goto(server.url);
  const chat = chatIn(page);
  await chat.ask("Ada here", "Fine.");
  await page.reload();
  await chat.replies.getByText("Fine.").waitFor();
  await signIn("bob");
  await page.reload();
  await chat.greeting.waitFor();
  assert.doesNotMatch(await drawn(page), /Ada here/);
  await chat.ask("Bob here", "Fine, too.");
  assert.deepEqual(users, ["ada", "bob"]);
  await page.context().clearCookies();
  await page.reload();
  await page.getByText("Please sign in first, on the site that this chat belongs to.").waitFor();
  await page.waitForFunction(() => !Object.keys(localStorage).some((name) => name.startsWith("agent-chat-user")));
  assert.doesNotMatch(await drawn(page), /Bob here/);
  await signIn("ada");
  await page.reload();
  await page.locator('[part="conversation"]').waitFor();
  assert.doesNotMatch(await drawn(page), /Bob here/);
});

test("a page of another site sends the token and no cookie", async (t) => {
  const { server, users } = await startWithUsers(t, turnsOf("Fine."));
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints);
  const sent: Promise<Record<string, string>>[] = [];
  page.on("request", (request) => {
    if (request.url().includes("/api/")) sent.push(request.allHeaders());
  });
  await page.context().addCookies([{ name: "session", value: "eve", url: server.url }]);
  const script = `window.WebSocket = function () { throw new Error("blocked"); }; document.querySelector("agent-chat").userToken = "ada";`;
  const site = await startSite(t, {
    "/": sitePage(
      `<agent-chat server="${server.url}"></agent-chat><script>${script}</script><script src="${server.url}/widget.js" async></script>`,
    ),
  });
  await page.goto(site.publicUrl);
  await chatIn(page).ask("Hi", "Fine.");
  assert.deepEqual(users, ["ada"]);
  const cookies = (await Promise.all(sent)).map(({ cookie }) => cookie);
  assert.deepEqual([...new Set(cookies)], [undefined]);
});

test("a launcher hands the token on to its chat, and forgets it with the user", async (t) => {
  const { server, users } = await startWithUsers(t, turnsOf("Fine."));
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints);
  const site = await startSite(t, { "/": sitePage(`<script src="${server.url}/widget.js"></script>`) });
  await page.goto(site.url);
  const launcher = page.locator("agent-chat-launcher");
  await launcher.evaluate((element: AgentChatLauncher) => {
    element.userToken = () => "ada";
    return element.open();
  });
  const chat = chatIn(page);
  await chat.ask("Ada here", "Fine.");
  await launcher.evaluate((element: AgentChatLauncher) => element.signOut());
  await page.getByText(SIGN_IN).waitFor();
  await launcher.evaluate((element: AgentChatLauncher) => {
    element.label = "Help";
    return element.updateComplete;
  });
  assert.deepEqual(
    await launcher.evaluate((element: AgentChatLauncher) => [element.userToken, element.chat?.userToken]),
    [undefined, undefined],
  );
  await untilStored(page, /Ada|agent-chat-user/, false);
  assert.deepEqual(users, ["ada"]);
});

for (const next of ["ada", "bob"]) {
  const whose = next === "ada" ? "is there after signing in" : "is not shown to another user";
  test(`what is written as the session of a site ends is back in the text field, alone, and ${whose}`, async (t) => {
    let user: string | undefined = "ada";
    const authenticate: Authenticate = () => {
      if (user === undefined) throw new Unauthorized();
      return { id: user };
    };
    const server = await startServer(t, { authenticate, turns: turnsOf("It is there.", "It is back.") });
    const { page, complaints } = await openPage(t, browser);
    failOnComplaints(t, complaints, /401/);
    await page.goto(server.url);
    const chat = chatIn(page);
    await chat.ask("Where is it?", "It is there.");
    user = undefined;
    await chat.say("And now?");
    await page.locator('[part="sign-in"]').waitFor();
    await isEmpty(chat);
    await untilWritten(page, "And now?");
    assert.doesNotMatch(await drawn(page), /Where is it|It is there/);
    user = next;
    await page.reload();
    await chat.greeting.waitFor();
    if (next === "ada") {
      await untilWritten(page, "And now?");
      await chat.input.press("Enter");
      await chat.replies.getByText("It is back.").waitFor();
    } else {
      await chat.ask("Hello", "It is back.");
      assert.doesNotMatch(await drawn(page), /And now|Where is it/);
      assert.doesNotMatch(await page.evaluate(() => JSON.stringify({ ...sessionStorage })), /And now/);
    }
  });
}

test("a token that the page sets after its function's was refused is asked for at once, from the same function, too", async (t) => {
  const { server } = await startWithUsers(t, turnsOf("One.", "Two."));
  const script = `let token = "ada"; const give = async () => token; chat.userToken = give;`;
  const chat = await openSite(t, server, script, /401/);
  await chat.ask("First", "One.");
  await chat.page.evaluate('token = "expired"');
  await chat.say("Second");
  await chat.page.locator('[part="sign-in"]').waitFor();
  await chat.page.evaluate('token = "ada"; chat.userToken = give');
  await chat.page.locator('[part="sign-in"]').waitFor({ state: "detached" });
  assert.equal(await chat.input.inputValue(), "Second");
});
