import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import type { StreamEvent } from "../../server/protocol/events.ts";
import { mount, until } from "./mount.ts";
import { done, startScriptedServer, token } from "./scripted-server.ts";

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
});

const failure = (code: "provider_error" | "conversation_expired"): StreamEvent => ({
  type: "error",
  data: "It did not work.",
  code,
  retryable: code === "provider_error",
});

test("an empty conversation greets with the server's words and offers its suggestions", async (t) => {
  const server = await startScriptedServer(t);
  const page = await mount(t, { server: server.url });
  assert.equal(page.text(".welcome"), "Hi! What can I do for you?");
  assert.equal(page.text(".agent"), "Concierge");
  await page.click("[part=suggestion]");
  const turn = await server.turn();
  assert.equal(turn.body.message, "What can you do?");
  turn.send(done("Much."));
  await page.shown(".answer-actions");
  assert.equal(page.find(".welcome"), null);
});

test("each message carries the state of the last answer, and reset forgets it", async (t) => {
  const server = await startScriptedServer(t);
  const { chat, ...page } = await mount(t, { server: server.url });
  const states: unknown[] = [];
  for (const id of ["resp_1", "resp_2"]) {
    const sent = chat.send("Hi");
    const turn = await server.turn();
    states.push(turn.body.state);
    turn.send(done("ok", { previous_response_id: id }));
    await sent;
  }
  await chat.reset();
  void chat.send("Again");
  states.push((await server.turn()).body.state);
  assert.deepEqual(states, [{}, { previous_response_id: "resp_1" }, {}]);
  assert.ok(page);
});

test("a run shows its steps, and events tell the page of message and answer", async (t) => {
  const server = await startScriptedServer(t);
  const page = await mount(t, { server: server.url });
  const heard: string[] = [];
  document.addEventListener("agent-chat-message", ({ text }) => heard.push(`message ${text}`));
  document.addEventListener("agent-chat-done", ({ text, finishReason }) => heard.push(`done ${text} ${finishReason}`));
  const sent = page.chat.send("Weather?");
  const turn = await server.turn();
  turn.send(
    { type: "thinking", data: "hm" },
    {
      type: "tool_call",
      data: { id: "1", tool: "get_weather", arguments: '{"city":"Paris"}', status: "running" },
    },
  );
  const row = await page.shown("[part=tool] button");
  assert.equal(row.getAttribute("aria-expanded"), "false");
  assert.ok(page.find("[part=tool] .spinner"), "a spinner while it runs");
  await page.click("[part=tool] button");
  assert.match(page.text("[part=tool] pre"), /^\{ "city": "Paris" \}$/);
  turn.send(
    {
      type: "tool_result",
      data: {
        id: "1",
        tool: "get_weather",
        output: "<b>sunny</b>",
        status: "completed",
        duration_ms: 1234,
      },
    },
    token("It is **sunny**."),
    done("It is **sunny**."),
  );
  await sent;
  await page.chat.updateComplete;
  assert.equal(page.text(".aside"), "1.2s");
  assert.equal(page.find("[part=tool] .spinner"), null);
  assert.equal(page.all("[part=tool] pre").at(-1)?.textContent, "<b>sunny</b>", "output is text");
  assert.equal(page.text(".markdown strong"), "sunny");
  assert.deepEqual(heard, ["message Weather?", "done It is **sunny**. stop"]);
});

test("thinking is open while it streams and closed afterwards, unless the reader chose", async (t) => {
  const server = await startScriptedServer(t);
  const page = await mount(t, { server: server.url });
  const expanded = () => page.find("[part=thinking] button")?.getAttribute("aria-expanded");
  for (const [clicks, open, after] of [
    [0, "true", "false"],
    [2, "true", "true"],
  ] as const) {
    const sent = page.chat.send("Think");
    const turn = await server.turn();
    turn.send({ type: "thinking", data: "hm" });
    await page.shown("[part=thinking]");
    for (let click = 0; click < clicks; click++) await page.click("[part=thinking] button");
    assert.equal(expanded(), open);
    turn.send(done("ok"));
    await sent;
    assert.equal(expanded(), open, "not at once");
    await until(page.chat, () => expanded() === after);
    await page.chat.reset();
    await page.chat.updateComplete;
  }
});

test("the finished answer is spoken without Markdown's marks, and failures at once", async (t) => {
  const server = await startScriptedServer(t);
  const page = await mount(t, { server: server.url });
  const sent = page.chat.send("Hi");
  const turn = await server.turn();
  const said = () => page.all("[role=status] p").map((it) => it.textContent);
  await until(page.chat, () => said().join() === "Answering…");
  turn.send(done("# Title\n\n- *one*\n- two"));
  await sent;
  // What was heard long enough is taken away.
  await until(page.chat, () => /^(Answering…\|)?Title\|one\|two$/.test(said().join("|")));
  const failed = page.chat.send("Hi");
  (await server.turn()).send(failure("provider_error"));
  await failed;
  await until(page.chat, () => page.text("[role=alert]") === "It did not work.");
  // A panel that is opened again would have it said again.
  await until(page.chat, () => page.text("[role=alert]") === "");
});

test("stop keeps the partial answer and says so", async (t) => {
  const server = await startScriptedServer(t);
  const page = await mount(t, { server: server.url });
  const sent = page.chat.send("Hi");
  const turn = await server.turn();
  turn.send(token("Half"));
  await until(page.chat, () => page.text(".markdown") === "Half");
  const escapeKey = await page.press({ key: "Escape" });
  assert.ok(escapeKey.defaultPrevented, "a launcher must not close on it");
  assert.equal(await server.control(), "stop");
  turn.send({ type: "done", data: "Half", state: {}, finish_reason: "stopped" });
  await sent;
  assert.equal(await page.shown(".note").then((note) => note.textContent), "You stopped this answer.");
  assert.equal(page.text(".markdown"), "Half");
});

test("a run that the server forgot keeps the partial answer, and Retry sends the message again in its place", async (t) => {
  const server = await startScriptedServer(t);
  const page = await mount(t, { server: server.url });
  void page.chat.send("Hi");
  const turn = await server.turn();
  turn.send(token("Half"));
  await until(page.chat, () => page.text(".markdown") === "Half");
  turn.forget();
  turn.cut();
  await page.shown("[part=error]");
  assert.equal(page.text(".markdown"), "Half");
  await page.click("[part=retry]");
  const again = await server.turn();
  assert.equal(again.body.message, "Hi");
  again.send(done("Whole"));
  await until(page.chat, () => page.text(".markdown") === "Whole");
  assert.equal(page.all(".message").length, 2);
});

test("an expired conversation is continued only by a click that says what it costs", async (t) => {
  const server = await startScriptedServer(t);
  const page = await mount(t, { server: server.url });
  const first = page.chat.send("Hi");
  (await server.turn()).send(done("ok", { previous_response_id: "resp_1" }));
  await first;
  void page.chat.send("More");
  (await server.turn()).send(failure("conversation_expired"));
  await page.shown("[part=retry]");
  assert.equal(page.text("[part=retry]"), "Send without the earlier messages");
  await page.click("[part=retry]");
  assert.deepEqual((await server.turn()).body.state, {});
});

test("the theme follows the attribute until the person chooses, and the choice is remembered", async (t) => {
  const server = await startScriptedServer(t);
  const page = await mount(t, { server: server.url });
  assert.equal(page.chat.theme, "auto");
  await page.click("[part=theme-toggle]");
  assert.equal(page.chat.getAttribute("theme"), "dark");
  assert.equal(localStorage.getItem("agent-chat-theme"), "dark");
  const later = await mount(t, { server: server.url });
  assert.equal(later.chat.theme, "dark");
  const light = await mount(t, { server: server.url, theme: "light" });
  assert.equal(light.chat.theme, "light", "of this one the site asks something else");
});

test("nothing in the shadow root carries an inline style or handler", async (t) => {
  const server = await startScriptedServer(t);
  const page = await mount(t, { server: server.url });
  const sent = page.chat.send("Hi");
  (await server.turn()).send({ type: "thinking", data: "hm" }, done("**ok**"));
  await sent;
  await page.chat.updateComplete;
  for (const element of page.all("*")) {
    const forbidden = element.getAttributeNames().filter((name) => /^(style$|on)/.test(name));
    assert.deepEqual(forbidden, [], element.outerHTML);
  }
});

test("a server that is not an http URL is refused by name", async () => {
  const chat = document.createElement("agent-chat");
  chat.server = "ftp://chat.example";
  document.body.append(chat);
  await assert.rejects(chat.updateComplete, /<agent-chat> server must be an http or https URL/);
  chat.remove();
});
