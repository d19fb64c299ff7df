import assert from "node:assert/strict";
import { beforeEach, type TestContext, test } from "node:test";
import type { StreamEvent } from "../../server/protocol/events.ts";
import type {
  AgentChatDoneEvent,
  AgentChatTokenEvent,
  AgentChatToolEvent,
  ToolCall,
} from "../../widget/element/public-types.ts";
import { gate } from "../support/deadline.ts";
import { openedSockets } from "./browser-globals.ts";
import { AgentChat, mount, until } from "./mount.ts";
import { done, startScriptedServer, token } from "./scripted-server.ts";

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
});

const EXPIRED: StreamEvent = {
  type: "error",
  data: "It did not work.",
  code: "conversation_expired",
  retryable: false,
};

test("an expired conversation is continued only by a click that says what it costs", async (t) => {
  const server = await startScriptedServer(t);
  const page = await mount(t, { server: server.url });
  const first = page.chat.send("Hi");
  (await server.turn()).send(done("ok", { previous_response_id: "resp_1" }));
  await first;
  void page.chat.send("More");
  (await server.turn()).send(EXPIRED);
  await page.shown("[part=retry]");
  assert.equal(page.text("[part=retry]"), "Send without the earlier messages");
  await page.click("[part=retry]");
  assert.deepEqual((await server.turn()).body.state, {});
});

/** Collects the console's messages until the end of the test. */
function consoleOf(t: TestContext, method: "warn" | "error"): string[] {
  const texts: string[] = [];
  t.mock.method(console, method, (text: string) => texts.push(text));
  return texts;
}

const NOT_A_SERVER = /^<agent-chat> server must be an http or https URL such as ".*", not "ftp:\/\/chat.example"$/;

test("a server that is not an http URL is refused by name, and no message goes to the one before, until there is another", async (t) => {
  const errors = consoleOf(t, "error");
  const [first, second] = [await startScriptedServer(t), await startScriptedServer(t)];
  const { chat } = await mount(t, { server: first.url });
  const sent = chat.send("Hi");
  (await first.turn()).send(done("ok"));
  await sent;
  chat.server = "ftp://chat.example";
  await assert.rejects(chat.send("Secret"), /has no server/);
  assert.equal(errors.length, 1);
  assert.match(errors[0] ?? "", NOT_A_SERVER);
  chat.server = second.url;
  const again = chat.send("Secret");
  const turn = await second.turn();
  assert.deepEqual([turn.body.message, turn.body.state], ["Secret", {}]);
  turn.send(done("ok"));
  await again;
});

test("tools shows data of calls by itself only where the server is on this machine", async (t) => {
  const servers = ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"];
  const others = [
    "https://chat.example",
    "https://localhost.example",
    "http://evil.localhost",
    "https://127.evil.example",
  ];
  for (const server of [...servers, ...others]) {
    const chat = Object.assign(document.createElement("agent-chat"), { server });
    document.body.append(chat);
    t.after(() => chat.remove());
    await chat.updateComplete;
    const part = chat.shadowRoot?.querySelector("agent-chat-composer");
    const mode = () => Object(part).context.modes.tools;
    assert.equal(mode(), servers.includes(server) ? "auto" : "titles", server);
    chat.tools = "closed";
    await chat.updateComplete;
    assert.equal(mode(), "closed");
  }
});

test("an element without a server says once how it gets one, and asks the site itself", async (t) => {
  const warnings = consoleOf(t, "warn");
  const { defaultServer } = AgentChat;
  AgentChat.defaultServer = "";
  t.after(() => {
    AgentChat.defaultServer = defaultServer;
  });
  const chat = document.createElement("agent-chat");
  document.body.append(chat);
  t.after(() => chat.remove());
  await chat.updateComplete;
  assert.equal(chat.server, "https://chat.example/");
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? "", /needs the attribute server="https:\/\/…"/);
});

test("a text of the site may stand where a function is expected", async (t) => {
  const server = await startScriptedServer(t);
  const { chat } = await mount(t, { server: server.url });
  Object.assign(chat, { strings: { placeholder: "Ask us", welcome: () => "Hello!", copied: undefined, unknown: "x" } });
  await chat.updateComplete;
  const { textContent = "" } = chat.renderRoot.querySelector(".greeting") as Element;
  assert.equal(chat.renderRoot.querySelector("textarea")?.placeholder, "Ask us");
  assert.equal(textContent?.trim().replace(/\s+/g, " "), "Hi! What can I do for you?", "the agent's own greeting wins");
});

test("values of properties that do not exist are named once, and the default holds", async (t) => {
  const warnings = consoleOf(t, "warn");
  const server = await startScriptedServer(t);
  const { chat } = await mount(t, { server: server.url });
  chat.setAttribute("tools", "folded");
  chat.setAttribute("actions", "copy,edit");
  chat.removeAttribute("theme");
  // Set like this by frameworks that render before the element is defined.
  chat.setAttribute("toolRenderers", "[object Object]");
  await chat.updateComplete;
  assert.deepEqual([chat.tools, chat.actions, chat.theme, chat.toolRenderers], ["auto", "all", "auto", undefined]);
  // The code that warns is loaded with the first mistake.
  while (warnings.length < 3) await new Promise(setImmediate);
  assert.deepEqual(warnings, [
    '<agent-chat> tools must be one of auto, open, closed, hidden, titles, not "folded"',
    '<agent-chat> actions must be words out of all, none, copy, retry, edit, code, table, not "copy,edit"',
    '<agent-chat> toolRenderers must be set as a property once the element is defined, not "[object Object]"',
  ]);
});

test("a page hears of each message, each piece of an answer's text as it came, and its end, and of no thought", async (t) => {
  const server = await startScriptedServer(t);
  const { chat } = await mount(t, { server: server.url });
  const heard: string[] = [];
  const ids = new Set<string>();
  const listening = new AbortController();
  const { signal } = listening;
  t.after(() => listening.abort());
  const onToken = ({ text, messageId }: AgentChatTokenEvent) => {
    heard.push(text);
    ids.add(messageId);
  };
  document.addEventListener("agent-chat-token", onToken, { signal });
  document.addEventListener("agent-chat-message", ({ text }) => heard.push(`message: ${text}`), { signal });
  const onDone = ({ text, finishReason }: AgentChatDoneEvent) => heard.push(`${finishReason}: ${text}`);
  document.addEventListener("agent-chat-done", onDone, { signal });
  for (const pieces of [["**One", "** and"], ["Two"]]) {
    const sent = chat.send("Go");
    const turn = await server.turn();
    turn.send({ type: "thinking", data: "hm" }, ...pieces.map(token), done(pieces.join("")));
    await sent;
  }
  assert.deepEqual(heard, ["message: Go", "**One", "** and", "stop: **One** and", "message: Go", "Two", "stop: Two"]);
  assert.equal(ids.size, 2, "an id for each answer");
});

test("stop in the same moment as send stops that answer, and nobody is asked", async (t) => {
  const server = await startScriptedServer(t);
  const { chat } = await mount(t, { server: server.url });
  const reasons: string[] = [];
  chat.addEventListener("agent-chat-done", ({ finishReason }) => reasons.push(finishReason));
  const sent = chat.send("Never mind");
  chat.stop();
  await sent;
  assert.deepEqual(reasons, ["stopped"]);
  const next = chat.send("Hello");
  const turn = await server.turn();
  assert.equal(turn.body.message, "Hello");
  turn.send(done("ok"));
  await next;
  assert.deepEqual(reasons, ["stopped", "stop"]);
});

/** A call that waits for approval; `ASKED` is the end of its run. */
const payAsks = (text: string, expires_at = "2099-01-01T00:00:00Z"): StreamEvent =>
  ({
    type: "tool_approval",
    data: { id: "1", tool: "pay", arguments: "{}", text, expires_at },
  }) as unknown as StreamEvent;
const ASKED = { ...done(""), finish_reason: "approval_required" } as unknown as StreamEvent;

test("a page draws a call that needs approval itself, and decides about it", async (t) => {
  const server = await startScriptedServer(t);
  const page = await mount(t, { server: server.url });
  const { chat } = page;
  const buttons: HTMLElement[] = [];
  chat.toolRenderers = {
    pay: ({ callId, status, approval }) => {
      if (status !== "waiting") return undefined;
      const button = document.createElement("button");
      button.textContent = approval?.text ?? "";
      button.addEventListener("click", () => void chat.decide([{ id: callId, approved: true }]));
      buttons.push(button);
      return button;
    },
  };
  await assert.rejects(chat.decide([{ id: "1", approved: true }]), /each call that waits/);
  const asked: (string | undefined)[] = [];
  chat.addEventListener("agent-chat-tool", ({ status, approval }) => asked.push(`${status} ${approval?.expires_at}`));
  const sent = chat.send("Pay");
  (await server.turn()).send(payAsks("Pay 5 €?", "2026-01-01T00:00:00Z"), ASKED);
  await sent;
  const button = await until(chat, () => buttons[0]);
  assert.deepEqual([button.textContent, asked], ["Pay 5 €?", ["waiting 2026-01-01T00:00:00Z"]]);
  button.click();
  const turn = await server.turn();
  assert.deepEqual([turn.body.message, turn.body.approvals], ["", [{ id: "1", approved: true }]]);
  await assert.rejects(chat.decide([{ id: "1", approved: true }]), /running/);
  turn.send(
    { type: "tool_result", data: { id: "1", tool: "pay", output: "ok", status: "completed", duration_ms: 1 } },
    done("Paid."),
  );
  await until(chat, () => /Paid/.test(page.text(".markdown")));
});

test("a page draws a call's pictures itself, and where it does not they stand in its row", async (t) => {
  const server = await startScriptedServer(t);
  const page = await mount(t, { server: server.url });
  const { chat } = page;
  const drawn: unknown[] = [];
  chat.toolRenderers = {
    chart: ({ images }) => {
      drawn.push(images);
      return images && document.createElement("figure");
    },
  };
  const data = "iVBORw0KGgo=";
  const images = [{ mime_type: "image/png" as const, data }];
  const call = (id: string, tool: string): StreamEvent[] => [
    { type: "tool_call", data: { id, tool, arguments: "{}", status: "running" } },
    {
      type: "tool_result",
      data: { id, tool, output: "", images, images_omitted: 2, status: "completed", duration_ms: 1 },
    },
  ];
  const sent = chat.send("Draw");
  (await server.turn()).send(...call("1", "chart"), ...call("2", "map"), done("Drawn."));
  await sent;
  const row = await page.shown('[part="tool"] .pictures');
  assert.deepEqual(drawn.at(-1), images);
  assert.equal(row.querySelector("img")?.src, `data:image/png;base64,${data}`);
  assert.match(row.textContent ?? "", /2 pictures are not shown\./);
  chat.tools = "titles";
  await until(chat, () => page.find(".pictures") === null);
});

test("what a page draws of calls and blocks hears what the answer rests on, and again when there is more", async (t) => {
  const server = await startScriptedServer(t);
  const { chat } = await mount(t, { server: server.url });
  const heard: string[] = [];
  const listener = (drawing: string) => (sources: readonly { title: string; at?: number }[]) => {
    heard.push(`${drawing}: ${sources.map(({ title, at }) => `${title} ${at}`)}`);
    chat.requestUpdate();
  };
  chat.toolRenderers = {
    find(_, { onSources }) {
      onSources(listener("call"));
      return undefined;
    },
  };
  chat.renderers = {
    async csv(_, { onSources }) {
      await new Promise(setImmediate);
      onSources(listener("block"));
      return document.createElement("table");
    },
  };
  const source = (title: string, at?: number): StreamEvent => ({
    type: "source",
    data: { id: 1, title, url: `https://${title}.example`, ...(at === undefined ? {} : { at }) },
  });
  const call = { id: "1", tool: "find" };
  void chat.send("Go");
  const { send } = await server.turn();
  send(token("So:"), { type: "tool_call", data: { ...call, arguments: "{}", status: "running" } });
  send({ type: "tool_result", data: { ...call, output: "", status: "completed", duration_ms: 1 } }, source("a"));
  send(token("```csv\n1\n```\n\nIs\n"));
  await until(chat, () => heard.length === 2);
  send(source("b", 10));
  await until(chat, () => heard.length === 4);
  assert.deepEqual(heard.toSorted(), [
    "block: a undefined",
    "block: a undefined,b 13",
    "call: a undefined",
    "call: a undefined,b 13",
  ]);
  send(done("```csv\n1\n```\n\nIs\n"));
  await until(chat, () => chat.renderRoot.querySelector('[part="sources"]'));
  assert.equal(heard.length, 4, "only of what is new");
});

test("a page's own card may decide before the run that asks has ended", async (t) => {
  const server = await startScriptedServer(t);
  const { chat } = await mount(t, { server: server.url });
  const pressed = gate();
  chat.toolRenderers = {
    pay: ({ status }, { decide }) => {
      if (status === "waiting") decide({ approved: true });
      pressed.open();
      return undefined;
    },
  };
  void chat.send("Pay");
  const { send } = await server.turn();
  send(payAsks("Pay?"));
  await pressed.opened;
  send(ASKED);
  const { body } = await server.turn();
  assert.deepEqual(body.approvals, [{ approved: true, id: "1" }]);
});

test("a page's own card and the event of the call have what the server has refused, and why", async (t) => {
  const server = await startScriptedServer(t);
  const { chat } = await mount(t, { server: server.url });
  const cards: ToolCall[] = [];
  const events: AgentChatToolEvent[] = [];
  chat.addEventListener("agent-chat-tool", (event) => events.push(event));
  const amount = JSON.stringify({ amount: 500 });
  chat.toolRenderers = {
    pay: (call, { decide }) => {
      cards.push(call);
      if (call.status === "waiting" && !call.decision && !call.problems) decide({ approved: true, arguments: amount });
      return undefined;
    },
  };
  void chat.send("Pay");
  (await server.turn()).send(payAsks("Pay?"), ASKED);
  const problems = [{ pointer: "/amount", message: "500 is greater than 100." }];
  const refusal = { code: "invalid_request", retryable: false, param: "/approvals/0/arguments", problems } as const;
  (await server.turn()).send({ type: "error", data: "The arguments do not fit.", ...refusal });
  const { status, refused } = await until(chat, () => cards.find((it) => it.problems));
  assert.deepEqual([status, refused, cards.at(-1)?.problems], ["waiting", amount, problems]);
  assert.deepEqual([events.at(-1)?.status, events.at(-1)?.problems], ["waiting", problems]);
});

test("what a user has decided as another one came is not sent for that one", async (t) => {
  const info = { user: "ada" };
  const server = await startScriptedServer(t, { info });
  const page = await mount(t, { server: server.url });
  const { chat } = page;
  chat.userToken = () => info.user;
  let press: (() => void) | undefined;
  chat.toolRenderers = {
    pay: ({ status }, { decide }) => {
      if (status === "waiting") press = () => decide({ approved: true });
      return undefined;
    },
  };
  const sent = chat.send("Pay");
  (await server.turn()).send(payAsks("Pay?"), ASKED);
  await sent;
  const asAda = await until(chat, () => press);
  // The chat notices the change when it asks whose decision it is.
  info.user = "bob";
  asAda();
  await page.shown(".greeting");
  for (const message of ["Bob here", "Bob again"]) {
    const answered = chat.send(message);
    const turn = await server.turn();
    assert.equal(turn.body.message, message);
    turn.send(done("ok"));
    await answered;
  }
});

test("a page adds messages that the server never sees: behind a running answer, below a failure that can still be tried again", async (t) => {
  const server = await startScriptedServer(t);
  const page = await mount(t, { server: server.url });
  const { chat } = page;
  const articles = () => page.all("article").map((it) => it.getAttribute("part")?.replace("message ", ""));
  const first = await chat.addMessage({ text: "Welcome **back**", name: "Maria" });
  await until(chat, () => page.text(".markdown"));
  assert.deepEqual(
    [page.text('[part="name"]'), page.find(".markdown b, .markdown strong")?.textContent],
    ["Maria", "back"],
  );
  await until(chat, () => page.text("[role=status]") === "MariaWelcome back");
  const sent = chat.send("Hi");
  const turn = await server.turn();
  assert.deepEqual([turn.body.message, turn.body.state], ["Hi", {}]);
  turn.send(token("Hello"));
  await until(chat, () => page.text(".exchange:last-child .markdown"));
  const added = Promise.all([chat.addMessage({ text: "One" }), chat.addMessage({ text: "Two" })]);
  assert.deepEqual(articles(), ["page", "user", "assistant"]);
  turn.send({ ...done("Hello"), state: { previous_response_id: "r" } } as StreamEvent);
  await sent;
  const ids = await added;
  await chat.updateComplete;
  assert.equal(new Set([first, ...ids]).size, 3);
  assert.deepEqual(articles(), ["page", "user", "assistant", "page", "page"]);
  assert.match(page.text(".exchange:last-child agent-chat-message:last-child"), /^Concierge said: Two/);
  // The page may add a message after a failure.
  chat.addEventListener("agent-chat-error", () => void chat.addMessage({ text: "Call us" }), { once: true });
  const failing = chat.send("And now?");
  const second = await server.turn();
  assert.deepEqual(second.body.state, { previous_response_id: "r" });
  second.send({ type: "error", code: "internal", data: "", retryable: true } as StreamEvent);
  await failing;
  await until(chat, () => page.text(".exchange:last-child agent-chat-message:last-child .markdown") === "Call us");
  await page.click('[part="error"] [part="retry"]');
  const third = await server.turn();
  assert.deepEqual([third.body.message, third.body.state], ["And now?", { previous_response_id: "r" }]);
  for (const [given, message] of [
    [{ text: " " }, /^TypeError: addMessage: text must/],
    [{ text: 1 }, /^TypeError: addMessage: text must/],
    [undefined, /^TypeError: addMessage: text must/],
    [{ text: "Hi", name: {} }, /^TypeError: addMessage: name must/],
  ] as const) {
    await assert.rejects(chat.addMessage(given as { text: string }), (error) => message.test(String(error)));
  }
});

test("a server that answers after the element has left it is not reported as ready", async (t) => {
  const [slow, next] = [await startScriptedServer(t), await startScriptedServer(t, { info: { name: "Next" } })];
  const { fetch } = globalThis;
  const asked = gate();
  const answers = gate();
  globalThis.fetch = async (input, init) => {
    if (!String(input).startsWith(slow.url)) return fetch(input, init);
    asked.open();
    await answers.opened;
    return fetch(input, { ...init, signal: null });
  };
  t.after(() => {
    globalThis.fetch = fetch;
  });
  const chat = document.createElement("agent-chat");
  Object.assign(chat, { persist: "none", server: slow.url });
  const ready: string[] = [];
  chat.addEventListener("agent-chat-ready", ({ info }) => ready.push(info.name));
  document.body.append(chat);
  t.after(() => chat.remove());
  await asked.opened;
  chat.server = next.url;
  await until(chat as AgentChat, () => ready.length > 0);
  answers.open();
  const sent = chat.send("Hi");
  (await next.turn()).send(done("ok"));
  await sent;
  await new Promise(setImmediate);
  assert.deepEqual(ready, ["Next"]);
});

test("an element that is removed while it asks for its server connects no more, and warns of nothing", async (t) => {
  const warn = t.mock.method(console, "warn", () => undefined);
  const asked = gate();
  const fetch = t.mock.method(globalThis, "fetch", (_: unknown, init?: RequestInit) => {
    asked.open();
    return new Promise<Response>((_, reject) => {
      init?.signal?.addEventListener("abort", () => reject(init.signal?.reason));
    });
  });
  const chat = Object.assign(document.createElement("agent-chat"), { persist: "none", server: "http://127.0.0.1:1/" });
  document.body.append(chat);
  await asked.opened;
  const sockets = openedSockets.length;
  chat.remove();
  await new Promise(setImmediate);
  assert.deepEqual([openedSockets.length - sockets, fetch.mock.callCount(), warn.mock.callCount()], [0, 1, 0]);
});

test("a server that cannot be reached is said once: the alert in the empty chat says it", async (t) => {
  t.mock.method(Math, "random", () => 0);
  let asked = 0;
  t.mock.method(globalThis, "fetch", async () => {
    asked += 1;
    throw new TypeError("Failed to fetch");
  });
  const chat = Object.assign(new AgentChat(), { persist: "none", server: "http://127.0.0.1:1/" });
  document.body.append(chat);
  t.after(() => chat.remove());
  await until(chat, () => asked > 5);
  const text = (selector: string) => chat.renderRoot.querySelector(selector)?.textContent?.trim();
  assert.deepEqual([text(".failure[role=alert] p"), text("[role=status]")], ["The chat server cannot be reached.", ""]);
});

test("a message is not sent by an element that was removed in the same moment", async (t) => {
  const { chat } = await mount(t, { server: (await startScriptedServer(t)).url });
  const sent = chat.send("Hi");
  chat.remove();
  await assert.rejects(sent, /not in a page/);
});

test("who signs out takes the token from the chat, and from no component of the site around it", async () => {
  const around = Object.assign(document.createElement("div"), { userToken: "of the site" });
  const chat = new AgentChat();
  chat.userToken = "ada";
  around.attachShadow({ mode: "open" }).append(chat);
  await chat.signOut();
  assert.deepEqual([chat.userToken, around.userToken], [undefined, "of the site"]);
});

test("an element that was never in a page takes the calls that it can do nothing with", () => {
  const chat = new AgentChat();
  chat.focusComposer();
  chat.stop();
  chat.suggest(["Hi"]);
  chat.setDraft("Hi");
});

test("values that are no text and no list do not stop the chat", async (t) => {
  const server = await startScriptedServer(t);
  const page = await mount(t, { server: server.url });
  const { chat } = page;
  for (const draft of [undefined, null]) chat.setDraft(draft as unknown as string);
  for (const actions of [{}, "x", null]) {
    chat.composerActions = actions as unknown as [];
    chat.messageActions = actions as unknown as [];
  }
  await chat.updateComplete;
  assert.equal(page.find("textarea")?.textContent, "");
  const sent = chat.send("Hi");
  (await server.turn()).send(done("ok"));
  await sent;
});

test("an element that was removed in mid-answer listens to nothing of the window", async (t) => {
  const server = await startScriptedServer(t);
  const signals: (AbortSignal | undefined)[] = [];
  const { addEventListener } = window;
  t.mock.method(window, "addEventListener", function (this: Window, ...args: Parameters<typeof addEventListener>) {
    const [, , options] = args;
    if (typeof options === "object") signals.push(options.signal);
    addEventListener.apply(this, args);
  });
  const page = await mount(t, { server: server.url });
  const { chat } = page;
  void chat.send("Hi");
  const turn = await server.turn();
  turn.send(token("Half"));
  await until(chat, () => page.text(".markdown"));
  chat.remove();
  await turn.gone;
  await chat.updateComplete;
  assert.ok(signals.length > 0);
  assert.equal(signals.filter((signal) => !signal?.aborted).length, 0);
});
