/** Users of the element's client: what the page says, what the server answers, and what is stored for whom. */

import assert from "node:assert/strict";
import { beforeEach, type TestContext, test } from "node:test";
import type { Feedback } from "../../server/agent/hooks.ts";
import { type AnyToolDefinition, tool } from "../../server/agent/tool-definition.ts";
import { type Authenticate, Unauthorized } from "../../server/auth/authenticate.ts";
import { IndexedDbStore } from "../../widget/conversations/indexed-db.ts";
import type { Metadata, UserToken } from "../../widget/session/identity.ts";
import { gate, within } from "../support/deadline.ts";
import { call, say, type Turn } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { TestStorage } from "./browser-stubs.ts";
import { keptAt, lastAnswer, openClient, type TestClient, text, textsOf } from "./chat-client.ts";

beforeEach(() => {
  localStorage.clear();
  openTab();
});

function openTab(storage = new TestStorage()): void {
  Object.assign(globalThis, { sessionStorage: storage });
  Reflect.deleteProperty(globalThis, Symbol.for("agent-chat-slots"));
}

/** Anonymous users may chat; some tokens are refused or cannot be checked. A user may have numbered tokens. */
const byToken: Authenticate = ({ token }) => {
  if (token?.startsWith("expired")) throw new Unauthorized();
  if (token === "broken") throw new Error("no database");
  return token === undefined ? undefined : { id: token.replace(/\d+$/, "") };
};

interface Page {
  userToken?: UserToken | undefined;
  metadata?: unknown;
  id?: string;
  keepsAll?: boolean;
}

async function start(
  t: TestContext,
  turns: Turn[] = Array.from({ length: 9 }, () => [say("ok")]),
  tools: AnyToolDefinition[] = [],
) {
  const asked: string[] = [];
  const rated: string[] = [];
  const agent = {
    tools,
    onFeedback: ({ user, run }: Feedback) => void rated.push(`${user?.id ?? "nobody"} ${run}`),
    instructions: ({ user, metadata }: { user?: { id: string } | undefined; metadata: Metadata }) => {
      asked.push(`${user?.id ?? "nobody"} ${JSON.stringify(metadata)}`);
      return "Help.";
    },
  };
  const { url } = await startServer(t, { authenticate: byToken, turns, agent });
  const open = (
    { userToken, metadata, id = "", keepsAll = false }: Page = {},
    until?: (it: TestClient["client"]) => boolean,
  ) =>
    openClient(t, {
      url: `${url}/`,
      persist: true,
      id,
      keepsAll,
      userToken,
      metadata: metadata as Metadata,
      ...(until && { until }),
    });
  /** First texts of all stored conversations. */
  const kept = async () => (await keptAt(`${url}/`)).flatMap(({ tree }) => textsOf(tree).slice(0, 1));
  return { asked, rated, open, kept };
}

/** Sends a message like the element, which first asks who sends it. Returns the error code of a refusal. */
async function ask({ client }: TestClient, message: string): Promise<string | undefined> {
  const refusal = await client.admit();
  await client.library.restored;
  if (!refusal) await (await client.session.send(text(message))).ended;
  await client.library.stored;
  return refusal?.code;
}

const shownIn = ({ client }: TestClient) => (client.isHidden ? [] : textsOf(client.session.messages));

const leave = ({ client }: TestClient) => {
  client.suspend();
  client.close();
  openTab(sessionStorage as unknown as TestStorage);
};

/** Collects the console's warnings. */
function warnings(t: TestContext): string[] {
  const said: string[] = [];
  t.mock.method(console, "warn", (...words: unknown[]) => said.push(words.join(" ")));
  return said;
}

test("what nobody has begun is shown at once and becomes the user's, and is gone with them", async (t) => {
  const { asked, open, kept } = await start(t);
  const chat = await open();
  await ask(chat, "Hi");
  chat.client.setUserToken("ada");
  await chat.until(({ isKnown, user }) => isKnown && user !== "");
  await ask(chat, "More");
  assert.deepEqual(shownIn(chat), ["Hi", "ok", "More", "ok"]);
  assert.deepEqual(asked, ["nobody {}", "ada {}"]);
  await chat.client.signOut();
  assert.deepEqual(
    [shownIn(chat), await kept(), Object.keys(localStorage), Object.keys(sessionStorage)],
    [[], [], [], []],
  );
});

test("a page that gives its token late finds the user's conversation again, and until then shows and stores nothing of it", async (t) => {
  const { open } = await start(t);
  const first = await open({ userToken: "ada" });
  await ask(first, "Ada here");
  first.client.library.saveDraft({ text: "Ada writes", files: [] });
  leave(first);
  const second = await open();
  assert.deepEqual([shownIn(second), second.drafts], [[], []]);
  second.client.setUserToken(async () => "ada");
  await second.until(({ session }) => session.messages.length > 0);
  assert.deepEqual(shownIn(second), ["Ada here", "ok"]);
  assert.deepEqual(second.drafts, [{ text: "Ada writes", files: [] }]);
});

test("another user finds nothing of the one before, who has closed the tab, and nothing of them is kept", async (t) => {
  const { open, kept } = await start(t);
  const first = await open({ userToken: "ada" });
  await ask(first, "Ada here");
  first.client.library.saveDraft({ text: "Ada writes", files: [] });
  leave(first);
  const second = await open({ userToken: "bob" });
  assert.deepEqual([shownIn(second), second.drafts, await kept()], [[], [], []]);
  assert.doesNotMatch(JSON.stringify(sessionStorage), /Ada/);
});

for (const how of ["signs out", "is followed by another one"]) {
  test(`a user who ${how} leaves nothing in the tab for elements of pages that were left`, async (t) => {
    const { open, kept } = await start(t);
    const [chat, other] = [await open({ userToken: "ada" }), await open({ userToken: "ada", id: "help" })];
    await ask(other, "Ada here");
    other.client.library.saveDraft({ text: "Ada writes", files: [] });
    other.client.suspend();
    other.client.close();
    const slot = Object.keys(sessionStorage).find((name) => name.endsWith("#help")) ?? "";
    const content = sessionStorage.getItem(slot) ?? "";
    assert.match(content, /Ada writes/);
    const ofOtherServer = slot.replace("#help", "other/");
    sessionStorage.setItem(ofOtherServer, content);
    if (how === "signs out") await chat.client.signOut();
    else {
      chat.client.setUserToken("bob");
      await ask(chat, "Bob here");
    }
    assert.equal(sessionStorage.getItem(ofOtherServer), content);
    sessionStorage.removeItem(ofOtherServer);
    assert.doesNotMatch(JSON.stringify([sessionStorage, await kept()]), /Ada/);
  });
}

test("two tabs with two users leave each other alone after the first change", async (t) => {
  const { open } = await start(t);
  const one = await open({ userToken: "ada" });
  await ask(one, "Ada here");
  openTab();
  const two = await open({ userToken: "bob" });
  const name = Object.keys(localStorage).find((it) => it.startsWith("agent-chat-user")) ?? "";
  window.dispatchEvent(Object.assign(new Event("storage"), { key: name, newValue: localStorage.getItem(name) }));
  await one.until(({ isKnown }) => isKnown);
  assert.deepEqual([shownIn(one), shownIn(two)], [[], []]);
  await ask(two, "Bob here");
  await ask(one, "Ada again");
  assert.deepEqual(
    [shownIn(one), shownIn(two)],
    [
      ["Ada again", "ok"],
      ["Bob here", "ok"],
    ],
  );
});

test("a function that gives another user's token before a message begins a conversation of theirs with it", async (t) => {
  const { asked, open } = await start(t);
  let token = "ada";
  const chat = await open({ userToken: () => token });
  await ask(chat, "Ada here");
  token = "bob";
  await ask(chat, "Bob here");
  assert.deepEqual(
    [shownIn(chat), asked],
    [
      ["Bob here", "ok"],
      ["ada {}", "bob {}"],
    ],
  );
});

test("with a new token for each message, a message and a rating at once are both sent", async (t) => {
  const { rated, open } = await start(t);
  let count = 0;
  const chat = await open({ userToken: async () => `ada${count++}` });
  await ask(chat, "Ada here");
  const answer = lastAnswer(chat.client);
  assert.ok(answer);
  const sent = chat.client.sendFeedback({ ...answer, feedback: { rating: "up" } });
  assert.deepEqual([await ask(chat, "More"), await sent], [undefined, undefined]);
  assert.deepEqual([shownIn(chat), rated.length], [["Ada here", "ok", "More", "ok"], 1]);
});

test("a message that waits for the token of a user who signs out is not sent for nobody", async (t) => {
  const { asked, open, kept } = await start(t);
  const [isAsked, held] = [gate(), gate()];
  let isSlow = false;
  const userToken = async () => {
    if (isSlow) isAsked.open();
    if (isSlow) await held.opened;
    return "ada";
  };
  const chat = await open({ userToken });
  await ask(chat, "Ada here");
  isSlow = true;
  const refusal = ask(chat, "Ada's secret");
  await isAsked.opened;
  await chat.client.signOut();
  held.open();
  assert.equal(await refusal, "login_required");
  assert.deepEqual([asked, shownIn(chat), await kept()], [["ada {}"], [], []]);
  assert.equal(await ask(chat, "Hi"), undefined);
  assert.deepEqual(asked, ["ada {}", "nobody {}"]);
});

test("what a user says while the store is asked is none of the user who comes meanwhile", async (t) => {
  const { open } = await start(t);
  const chat = await open({ userToken: "ada", keepsAll: true });
  await ask(chat, "Ada here");
  const { update } = IndexedDbStore.prototype;
  const held = gate();
  const updates: Promise<void>[] = [];
  t.mock.method(
    IndexedDbStore.prototype,
    "update",
    function (this: IndexedDbStore, ...given: Parameters<typeof update>) {
      const updated = held.opened.then(() => update.apply(this, given));
      updates.push(updated);
      return updated;
    },
  );
  const ada = chat.client.user;
  const sent = chat.client.session.send(text("Ada's secret"));
  chat.client.setUserToken("bob");
  await chat.until(({ user }) => user !== ada);
  held.open();
  await sent;
  await Promise.all(updates);
  const titlesOf = async ({ client }: TestClient) =>
    (await (await client.library.all())?.list())?.map(({ title }) => title);
  assert.deepEqual(await titlesOf(chat), []);
  chat.client.setUserToken("ada");
  await chat.until(({ user }) => user === ada);
  assert.deepEqual(await titlesOf(chat), ["Ada here"]);
});

test("a message that waits until the chat is back in its page is not sent with the token of a user whom the server has not named", async (t) => {
  const named = gate();
  const asked: string[] = [];
  const authenticate: Authenticate = async (request) => {
    if (request.token === "bob" && request.raw.url === "/api/info") await named.opened;
    return byToken(request);
  };
  const instructions = ({ user }: { user?: { id: string } | undefined }) => {
    asked.push(user?.id ?? "nobody");
    return "Help.";
  };
  const turns = [1, 2, 3].map(() => [say("ok")]);
  const { url } = await startServer(t, { authenticate, turns, agent: { instructions } });
  const chat = await openClient(t, { url: `${url}/`, persist: true, userToken: "ada" });
  await ask(chat, "Ada here");
  const { session, user: ada } = chat.client;
  chat.client.close();
  const { ended } = await session.send(text("Ada's secret"));
  chat.client.setUserToken("bob");
  chat.client.open(true);
  await within(ended, "the end of the answer");
  named.open();
  await chat.until(({ user }) => user !== ada);
  assert.equal(await ask(chat, "Bob here"), undefined);
  assert.deepEqual(
    [asked, shownIn(chat)],
    [
      ["ada", "ada", "bob"],
      ["Bob here", "ok"],
    ],
  );
});

test("a rating is sent for the user who gave it, and for nobody who has come since", async (t) => {
  const { rated, open } = await start(t);
  let token = "ada";
  const chat = await open({ userToken: () => token });
  const rateAnswer = () => {
    const answer = lastAnswer(chat.client);
    assert.ok(answer?.run);
    return { run: answer.run, sent: chat.client.sendFeedback({ ...answer, feedback: { rating: "up" } }) };
  };
  await ask(chat, "Ada here");
  const ofAda = rateAnswer();
  await ofAda.sent;
  const late = rateAnswer();
  token = "bob";
  await late.sent;
  await ask(chat, "Bob here");
  const ofBob = rateAnswer();
  const signedOut = chat.client.signOut();
  await Promise.all([ofBob.sent, signedOut]);
  assert.deepEqual(rated, [`ada ${ofAda.run}`]);
});

test("a page that is shown again has forgotten a user who has signed out in another page of its tab", async (t) => {
  const { open, kept } = await start(t);
  const chat = await open({ userToken: "ada" });
  await ask(chat, "Ada here");
  chat.client.suspend();
  // A page that was left gets no storage events.
  for (const name of Object.keys(localStorage)) localStorage.removeItem(name);
  await chat.client.returned();
  assert.deepEqual([shownIn(chat), chat.client.userToken, await kept()], [[], undefined, []]);
  assert.deepEqual(Object.keys(localStorage), []);
});

for (const [what, userToken, why] of [
  ["throws", () => assert.fail("no session"), /no session/],
  ["rejects", () => Promise.reject(new Error("no session")), /no session/],
  ["returns no text", () => 42 as unknown as string, /such as a JWT, but this is of the type number\./],
  [
    "returns what no header can carry",
    () => "a\nb",
    /such as a JWT, but this text has other characters, or is longer\./,
  ],
] as [string, UserToken, RegExp][]) {
  test(`a userToken that ${what} is said in the chat and the console, and tried again with the next message`, async (t) => {
    const said = warnings(t);
    const { open } = await start(t);
    let works = false;
    const token = async () => (works ? "ada" : (userToken as () => string)());
    const chat = await open({ userToken: token }, ({ phase }) => phase === "user_unknown");
    assert.match(said.join(), /userToken has failed/);
    assert.match(said.join(), why);
    assert.equal(await ask(chat, "Hi"), "user_unknown");
    works = true;
    assert.equal(await ask(chat, "Hi"), undefined);
    works = false;
    assert.equal(await ask(chat, "More"), "user_unknown");
    assert.deepEqual(shownIn(chat), ["Hi", "ok"]);
    works = true;
    assert.equal(await ask(chat, "More"), undefined);
  });
}

test("a userToken that never answers is given up after ten seconds", async (t) => {
  const said = warnings(t);
  const { open } = await start(t);
  const setTimer = globalThis.setTimeout;
  t.mock.method(globalThis, "setTimeout", (run: () => void, ms = 0, ...more: unknown[]) =>
    setTimer(run, ms === 10_000 ? 0 : ms, ...more),
  );
  const chat = await open({ userToken: () => new Promise(() => {}) }, ({ phase }) => phase === "user_unknown");
  assert.match(said.join(), /longer than 10 seconds/);
  assert.equal(chat.client.isHidden, true);
});

test("where the server cannot say who is there, the user who is known stays until it names another one", async (t) => {
  const { open, kept } = await start(t);
  const chat = await open({ userToken: "ada" });
  await ask(chat, "Ada here");
  chat.client.setUserToken("broken");
  await chat.until(({ isSettled }) => isSettled);
  assert.deepEqual([shownIn(chat), await ask(chat, "Hi")], [["Ada here", "ok"], undefined]);
  assert.equal(lastAnswer(chat.client)?.status, "failed", "the server judges each message");
  chat.client.setUserToken("bob");
  await chat.until(({ isSettled }) => isSettled);
  assert.deepEqual([shownIn(chat), await kept()], [[], []]);
  // While the server cannot identify a new user, the client keeps asking.
  const other = await open({ userToken: "broken" }, ({ phase }) => phase === "unreachable");
  assert.equal(other.client.isHidden, true);
});

test("a page that sets a new function with each of its renders has the server asked once, and nothing vanishes", async (t) => {
  const rendered = gate();
  const authenticate: Authenticate = async (request) => {
    await rendered.opened;
    return byToken(request);
  };
  const { url } = await startServer(t, { authenticate, turns: [[say("ok")], [say("ok")]] });
  const asking = t.mock.method(globalThis, "fetch");
  let [tokens, renders, hidden] = [0, 0, 0];
  const chat = await openClient(t, { url: `${url}/`, persist: true, userToken: async () => "ada", until: () => true });
  const rendering = setInterval(() => {
    // As in the documentation: a token that is valid for some minutes, made for this call.
    chat.client.setUserToken(async () => `ada${tokens++}`);
    if (chat.client.user && chat.client.isHidden) hidden += 1;
    if (++renders === 5) rendered.open();
  }, 5);
  t.after(() => clearInterval(rendering));
  await chat.until(({ user }) => user !== "");
  assert.deepEqual([await ask(chat, "Ada here"), await ask(chat, "Still here")], [undefined, undefined]);
  assert.deepEqual([shownIn(chat), hidden], [["Ada here", "ok", "Still here", "ok"], 0]);
  const infos = asking.mock.calls.filter(({ arguments: [input] }) => String(input).includes("/api/info"));
  assert.equal(infos.length, 3, "at first, and with each message");
});

test("while the chat says that one must sign in, a token that is set again is asked for again, also the same function", async (t) => {
  const { open } = await start(t);
  let token = "expired";
  const userToken = () => token;
  const chat = await open({ userToken }, ({ phase }) => phase === "login_required");
  token = "ada";
  chat.client.setUserToken(userToken);
  await chat.until(({ user }) => user !== "");
  assert.equal(await ask(chat, "Ada here"), undefined);
  // Known answers are not requested again.
  token = "bob";
  chat.client.setUserToken(userToken);
  assert.deepEqual(shownIn(chat), ["Ada here", "ok"]);
});

/** A tool that runs until its run is aborted. */
function slowTool() {
  const [running, aborted] = [gate(), gate()];
  const slow = tool({
    name: "slow",
    description: "Waits.",
    parameters: { type: "object" },
    execute: (_args, { signal }) => {
      signal.addEventListener("abort", aborted.open);
      running.open();
      return aborted.opened.then(() => "late");
    },
  });
  return { slow, running, aborted };
}

test("signing out ends a running answer, at the server too", async (t) => {
  const { slow, running, aborted } = slowTool();
  const { open, kept } = await start(t, [[call("c1", "slow", {})]], [slow]);
  const chat = await open({ userToken: "ada" });
  await chat.client.admit();
  const { ended } = await chat.client.session.send(text("Go"));
  await running.opened;
  await chat.client.signOut();
  await within(Promise.all([ended, aborted.opened]), "the end of the answer");
  assert.deepEqual([shownIn(chat), chat.client.session.busy, await kept()], [[], false, []]);
});

test("signing out takes from the library what it has of the user, ends their answers there, and leaves what other users have", async (t) => {
  const { slow, running, aborted } = slowTool();
  const { open, kept } = await start(t, [[say("ok")], [call("c1", "slow", {})], [say("ok")]], [slow]);
  const bob = await open({ userToken: "bob", keepsAll: true });
  await ask(bob, "Bob here");
  bob.client.setUserToken("ada");
  await bob.client.admit();
  await bob.until(({ isKnown, session }) => isKnown && session.messages.length === 0);
  void ask(bob, "Ada here");
  await running.opened;
  await bob.client.library.show(undefined);
  await ask(bob, "Ada again");
  await bob.client.library.stored;
  assert.deepEqual((await kept()).toSorted(), ["Ada again", "Ada here", "Bob here"]);
  await bob.client.signOut();
  await within(aborted.opened, "the end of the answer");
  assert.deepEqual(await kept(), ["Bob here"]);
});

test("metadata goes with each message; a field that is wrong is named in the console, and left out", async (t) => {
  const said = warnings(t);
  const { asked, open } = await start(t);
  const many = Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`n${index}`, "x"]));
  const chat = await open({ metadata: { page: "cart", count: 3, "a b": "x", long: "x".repeat(513) } });
  for (const metadata of [undefined, many, "text", null]) {
    if (metadata !== undefined) chat.client.setMetadata(metadata);
    assert.equal(await ask(chat, "Hi"), undefined);
  }
  const { n16: _, ...sixteen } = many;
  assert.deepEqual(
    asked,
    [{ page: "cart" }, sixteen, {}, {}].map((it) => `nobody ${JSON.stringify(it)}`),
  );
  const expected = [
    /metadata\.count must be a string/,
    /the name "a b"/,
    /metadata\.long/,
    /metadata\.n16/,
    /must be an object/,
  ];
  for (const [index, pattern] of expected.entries()) assert.match(said[index] ?? "", pattern);
  assert.equal(said.length, expected.length);
});
