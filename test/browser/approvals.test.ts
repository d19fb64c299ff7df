/** The approval card and the answers that follow it: what a person sees, presses and hears. */

import assert from "node:assert/strict";
import { after } from "node:test";
import { tool } from "../../server/parley-agent.ts";
import type { ApprovalDecision } from "../../server/protocol/chat.ts";
import type { ErrorCode } from "../../server/protocol/errors.ts";
import type { StreamEvent } from "../../server/protocol/events.ts";
import { approval, asked, startAskingSite } from "../support/asking-agent.ts";
import { axeFindings } from "../support/axe.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { it, test } from "../support/rows.ts";
import { call as callTool, say, type Turn } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { done, token } from "../widget/scripted-server.ts";
import { chatIn, failOnComplaints, holdTime, press, shown, untilSettled } from "./chat-page.ts";
import { untilKept } from "./kept.ts";
import { listen, untilHeard } from "./listening.ts";

const browser = await launchBrowser({ after });

const call = (id: string): StreamEvent => ({
  type: "tool_call",
  data: { id, tool: "cancel_order", arguments: "{}", status: "running" },
});

const result = (id: string, more: object = {}): StreamEvent => ({
  type: "tool_result",
  data: { id, tool: "cancel_order", output: "done", status: "completed", duration_ms: 90, ...more },
});

const failure = (code: ErrorCode): StreamEvent => ({ type: "error", data: "", code, retryable: false });

async function openAskingChat(...[t, ...rest]: Parameters<typeof startAskingSite>) {
  const { agent, url } = await startAskingSite(t, ...rest);
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints);
  await page.goto(url);
  const part = (name: string) => page.locator(`[part~="${name}"]`);
  return { agent, page, part, chat: chatIn(page), turn: agent.turn };
}

test("several calls are decided one by one, over a reload, and sent with the last mark", async (t) => {
  const { page, part, chat, turn } = await openAskingChat(t);
  const own = `{ needsDecision: "Please decide", approve: () => "Go ahead" }`;
  await page.evaluate(`document.querySelector("agent-chat").strings = ${own}`);
  await chat.say("Cancel both");
  const heard = await listen(page);
  (await turn()).send(
    approval("1", "Cancel order 4711?", { order_id: "4711", notify: true }, { danger: true }),
    approval("2", "Write to the customer?", { to: "ada@example.org", lines: { first: "Dear", second: "Ada" } }),
    asked("Cancel order 4711?\nWrite to the customer?"),
  );
  await untilHeard(page, heard, "! Cancel order 4711? Write to the customer?");
  const card = part("approval");
  assert.match(await shown(card), /Cancel order 4711\?\s+Order id\s+4711\s+Notify\s+Yes/);
  assert.equal(await card.getAttribute("aria-label"), "Please decide");
  assert.equal(await part("approve").first().innerText(), "Go ahead");
  assert.match(await shown(card), /Lines › First\s+Dear/);
  assert.equal(await chat.input.evaluate((field) => field.matches(":focus")), true, "the focus stays");
  assert.equal(await chat.input.getAttribute("placeholder"), "Decide above or write");
  const warning = page.locator(".declining");
  assert.equal(await warning.count(), 0);
  await chat.input.pressSequentially("N");
  await warning.waitFor();
  await chat.input.press("Control+Enter");
  assert.equal(await card.evaluate((it) => it.matches(":focus")), true);
  await chat.input.fill("");

  const pressed = (name: string) => part(name).evaluateAll((buttons) => buttons.map((it) => it.ariaPressed));
  await press(part("approve").first());
  assert.deepEqual(await pressed("approve"), ["true", "false"]);
  await page.mouse.move(0, 0);
  const fills = await part("approve").evaluateAll((buttons) =>
    buttons.map((it) => getComputedStyle(it).backgroundColor),
  );
  assert.notEqual(fills[0], fills[1], "what is approved does not ask to be pressed");
  await press(part("approve").first());
  assert.deepEqual(await pressed("approve"), ["false", "false"]);
  await press(part("approve").first());
  await untilKept(page, /"approved":true/);
  await page.reload();
  await card.waitFor();
  assert.deepEqual(await pressed("approve"), ["true", "false"]);
  await press(part("decline").nth(1));
  await page.keyboard.type("Too early");
  await page.keyboard.press("Enter");
  const decided = await turn();
  const { approvals, message } = decided.body;
  assert.deepEqual(
    [approvals, message],
    [
      [
        { approved: true, id: "1" },
        { approved: false, reason: "Too early", id: "2" },
      ],
      "",
    ],
  );
  await card.waitFor({ state: "detached" });
  decided.send(
    call("1"),
    result("1"),
    result("2", { status: "failed", declined: true }),
    token("Cancelled."),
    done("Cancelled."),
  );
  await chat.answered();
  assert.match(await shown(chat.replies), /approved by you .*\s+.*declined by you .*Cancelled\./s);
  const [markdown, json] = await page.locator("agent-chat").evaluate((it) => {
    const chat = it as HTMLElementTagNameMap["agent-chat"];
    return Promise.all([chat.exportTranscript("markdown"), chat.exportTranscript("json")]);
  });
  assert.match(markdown, /`Cancel order`\n\nCancel order 4711\?\n\n```/);
  const [, { blocks }] = JSON.parse(json);
  assert.deepEqual(
    [blocks[0].question, blocks[0].decision, blocks[1].decision],
    ["Cancel order 4711?", { approved: true }, { approved: false, reason: "Too early" }],
  );
  await page.reload();
  await chat.answered();
  assert.match(await shown(chat.replies), /approved by you/);
});

test("what is pending declines nothing, and is sent when the answer goes on after the decision and ends", async (t) => {
  const { page, part, chat, turn } = await openAskingChat(t);
  await chat.say("Cancel it");
  const first = await turn();
  first.send(token("Well."));
  await chat.replies.getByText("Well.").waitFor();
  await chat.say("And then?");
  await part("pending").waitFor();
  first.send(approval("1", "Cancel order 4711?"), asked("Cancel order 4711?"));
  await part("pending").getByText("If you send this, what is asked above is declined.").waitFor();
  // In a small viewport, the card's buttons do not cover its question.
  await page.setViewportSize({ width: 320, height: 482 });
  await page.waitForFunction(() => innerHeight === 482);
  await part("messages").evaluate((it) => it.scrollTo(0, 0));
  const [question, decline] = await Promise.all(
    [part("approval").getByText("Cancel order 4711?"), part("decline")].map((it) => it.boundingBox()),
  );
  assert.ok(question && decline && question.y + question.height < decline.y, JSON.stringify([question, decline]));
  await press(part("approve"));
  const decided = await turn();
  assert.deepEqual(decided.body.approvals, [{ id: "1", approved: true }]);
  decided.send(result("1"), token("Cancelled."), done("Cancelled."));
  const next = await turn();
  assert.equal(next.body.message, "And then?");
  next.send(token("Nothing."), done("Nothing."));
  await chat.replies.getByText("Nothing.").waitFor();
  assert.equal(await part("pending").count(), 0);
});

test("one call is sent with one press, also of two, and whatever the connection does then; changed arguments are checked", async (t) => {
  const { agent, part, chat, turn } = await openAskingChat(t);
  await chat.say("Refund it");
  const args = { sum: 89.9, reason: "late", items: [{ id: 1 }] };
  (await turn()).send(approval("1", "Refund?", args, { editable: true }), asked());
  await part("edit-arguments").click();
  const field = (name: string) => part("approval").getByLabel(name);
  await field("Sum").fill("eighty");
  await field("Id").fill("one");
  await press(part("approve"));
  assert.deepEqual(
    [await part("approval").getByRole("alert").count(), await field("Sum").getAttribute("aria-invalid")],
    [2, "true"],
  );
  await field("Sum").fill("80,5");
  await field("Id").fill("2");
  await untilSettled(part("approve"));
  await part("approve").dblclick();
  const first = await turn();
  assert.deepEqual(first.body.approvals, [
    { approved: true, arguments: '{"sum":80.5,"reason":"late","items":[{"id":2}]}', id: "1" },
  ]);
  first.forget();
  await agent.cutSockets();
  const again = await turn();
  assert.deepEqual(again.body, first.body, "under the same name");
  again.send(call("1"), result("1"), done("Refunded."));
  await chat.answered();
  assert.match(await shown(chat.replies), /Refunded\./);
});

it("what nobody meant is not decided: by a key that is held, a value that does not fit, or a button for all", async (t) => {
  const { page, part, chat, turn } = await openAskingChat(t);
  const card = part("approval");
  await chat.say("Pay both");
  const odd = { where: {}, ids: [], userIBANCode: "ad\u200bmin\u0007" };
  (await turn()).send(
    approval("1", "Refund?", { sum: 89.9, ...odd }, { editable: true }),
    approval("2", "Write?", { to: "ada" }, { editable: true }),
    approval("3", "Ask?"),
    asked(),
  );
  assert.match(await shown(card), /Where\s+–\s+Ids\s+–\s+User IBAN code\s+ad\\u200bmin\\u0007/);
  await card.getByRole("button", { name: "Decline… Write?", exact: true }).focus();
  await page.keyboard.down("Enter");
  await page.keyboard.down("Enter");
  await page.keyboard.up("Enter");
  const reason = card.getByLabel("Why?");
  await reason.fill("No");
  await page.keyboard.press("Enter");
  assert.equal(await part("decline").nth(1).getAttribute("aria-pressed"), "true");
  await part("edit-arguments").click();
  for (const sum of ["1,500", "1.500", "0x10", "1e3", ""]) {
    await card.getByLabel("Sum").fill(sum);
    await press(part("approve-all"));
    assert.equal(await card.getByRole("alert").count(), 1, sum);
  }
  await card.getByLabel("Sum").fill("٨٠٫٥");
  await press(part("approve-all"));
  const { body, send } = await turn();
  assert.deepEqual(
    (body.approvals as ApprovalDecision[]).map(({ approved, arguments: args = "{}", reason }) => [
      approved,
      JSON.parse(args).sum,
      reason,
    ]),
    [
      [true, 80.5, undefined],
      [false, undefined, "No"],
      [true, undefined, undefined],
    ],
  );
  send(approval("4", "Delete?", {}, { danger: true }), approval("5", "Write?"), asked());
  await card.getByText("Delete?").waitFor();
  assert.equal(await part("approve-all").count(), 0, "what cannot be undone has its own button only");
});

test("what is asked is what is seen: long values and names, many lines and values are opened before they are approved, and what shows nothing is written out", async (t) => {
  const { part, chat, turn } = await openAskingChat(t);
  const card = part("approval");
  const many = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`n${index}`, index]));
  for (const [args, end] of [
    [{ command: `${"ls\n".repeat(20)}; rm -rf /` }, "; rm -rf /"],
    [{ command: `${Array.from({ length: 200 }, (_, index) => index).join(" ")}; rm -rf /` }, "; rm -rf /"],
    [{ [`${"a".repeat(90)} too`]: 1 }, "aa too"],
    [{ ...many, sum: 4711 }, "4711"],
  ] as const) {
    await chat.say("Do it");
    (await turn()).send(approval("1", "Do it?", args), asked());
    const last = card.locator("dl").getByText(end);
    await press(part("approve"));
    assert.equal(await shown(card.getByRole("alert")), "Please check this value.");
    assert.equal(await last.count(), 1, end);
    await press(part("approve"));
    const decided = await turn();
    assert.deepEqual(decided.body.approvals, [{ approved: true, id: "1" }]);
    decided.send(result("1"), done("Done."));
    await chat.answered();
  }
  await chat.say("Pay");
  const hidden = "1\u034f2\u{e0041}\u17b4👩\u200d💻";
  const odd = {
    tool: "pay\u202eyap",
    editable: true,
    arguments: `{"sum": 1, "to": "${hidden}${"\u0301".repeat(60_000)}"}`,
  };
  (await turn()).send(approval("2", "", {}, odd), asked());
  assert.match(
    await shown(card),
    /^pay\\u202eyap\s+Sum\s+1\s+To\s+1\\u034f2\\u\{e0041\}\\u17b4👩\u200d💻\[◌\u0301 × 60,000\]/,
  );
  await card.getByRole("button", { name: "Details" }).click();
  await press(part("edit-arguments"));
  const field = card.getByLabel("To");
  await field.fill((await field.inputValue()).replace(/\u0301+/, "!"));
  await press(part("approve"));
  const { body, send } = await turn();
  assert.deepEqual(body.approvals, [
    { approved: true, arguments: JSON.stringify({ sum: 1, to: `${hidden}!` }), id: "2" },
  ]);
  send(result("2"), done("Paid."));
});

test("what would push the end of a value out of view is counted in words, whether it is read or changed", async (t) => {
  const { page, part, chat, turn } = await openAskingChat(t);
  await page.setViewportSize({ width: 390, height: 844 });
  await chat.say("Do it");
  const command = `ls${"\n".repeat(250)}${" ".repeat(5000)}; rm -rf /`;
  const args = {
    command,
    said: "ls\n[249 empty lines]",
    [`a${"\u3000".repeat(500)}b`]: "WWWWWWWWWW WWWWWWWWWW WWWWWWW!",
    lines: `${"x\n".repeat(40)}end`,
    dots: `${".\t".repeat(140)}; rm -rf /`,
  };
  (await turn()).send(approval("1", `Do${"\u00a0".repeat(900)}it?`, args, { editable: true }), asked());
  const card = part("approval");
  assert.match(
    await shown(card),
    /^Do\[900 spaces\]it\?\s+Command\s+ls\n\[249 empty lines\]\n\[5000 spaces\]; rm -rf \/\n/,
  );
  const folds = card.locator("dd .fold");
  assert.deepEqual(await folds.allTextContents(), ["[249 empty lines]", "[5000 spaces]", "[.\t × 140]"]);
  await card.getByRole("button", { name: "Details" }).click();
  assert.match(await shown(card.locator("pre")), /\[\\n × 250\]\[5000 spaces\]; rm -rf/);
  await press(part("edit-arguments"));
  const read = card.locator(".argument", { hasText: "Command" }).locator(".as-read");
  assert.match(await shown(read), /^ls\n\[249 empty lines\]\n\[5000 spaces\]; rm -rf \/$/);
  const field = card.getByLabel("Command");
  await field.fill(`cd${"\n".repeat(9)}ls`);
  assert.match(await shown(read), /^cd\n\[8 empty lines\]\nls$/);
  await field.fill("ls");
  await read.waitFor({ state: "detached" });
  for (const it of await card.locator(".fields :is(input, textarea)").all()) {
    const hidden = await it.evaluate((box) => [box.scrollWidth - box.clientWidth, box.scrollHeight - box.clientHeight]);
    assert.deepEqual(hidden, [0, 0], "a phone shows the end of each value");
  }
  await press(part("approve"));
  const { body } = await turn();
  assert.deepEqual(body.approvals, [
    { approved: true, arguments: JSON.stringify({ ...args, command: "ls" }), id: "1" },
  ]);
});

test("a question that wants words is answered in its card, or by a message, and only declined by its button", async (t) => {
  const { page, part, chat, turn } = await openAskingChat(t);
  await chat.say("Book a table");
  const ask = (id: string) => approval(id, "What is your name?", {}, { question: true });
  (await turn()).send(ask("1"), asked());
  const answer = part("approve");
  assert.equal(await shown(answer), "Answer");
  await press(answer);
  const field = part("approval").getByRole("textbox", { name: "Your answer" });
  assert.equal(await field.evaluate((it) => it.matches(":focus")), true, "without words, its field is where to write");
  await field.fill("  Ada ");
  await field.press("Enter");
  const answered = await turn();
  assert.deepEqual(answered.body.approvals, [{ id: "1", approved: true, reason: "Ada" }]);
  answered.send(result("1"), ask("2"), asked());
  await page.locator("#asked-2").waitFor();
  await part("approval").getByRole("textbox", { name: "Your answer" }).fill("Ada");
  await press(part("decline"));
  const declined = await turn();
  assert.deepEqual(declined.body.approvals, [{ id: "2", approved: false }]);
  declined.send(ask("3"), asked());
  await page.locator("#asked-3").waitFor();
  await chat.input.fill("Bob");
  assert.equal(await page.getByText("what is asked above is declined").count(), 0);
  await chat.input.press("Enter");
  const { body } = await turn();
  assert.equal(body.message, "Bob");
  assert.equal(body.approvals, undefined);
});

it("where reading the arguments would lose something, the card shows their text", async (t) => {
  const { part, chat, turn } = await openAskingChat(t);
  for (const [json, text] of [
    ['{"sum": 1, "sum": 2}', /Arguments\s+\{"sum": 1, "sum": 2\}/],
    ['{"sum": [12345678901234567890]}', /Arguments\s+\{"sum": \[12345678901234567890\]\}/],
    ['{"sum": [1.50, 1e3, -0.0, "1e999:"]}', /Sum\s+1.5, 1000, 0, 1e999:/],
  ] as const) {
    await chat.say("Pay");
    (await turn()).send(approval("1", "Pay?", {}, { arguments: json }), asked());
    assert.match(await shown(part("approval")), text);
    await chat.say("No");
    (await turn()).send(done("As you like."));
    await part("approval").waitFor({ state: "detached" });
  }
});

test("a pointer's press counts when the card has stood still for half a second, a key's at once", async (t) => {
  const { page, part, chat, turn } = await openAskingChat(t);
  const pass = await holdTime(page);
  const settling = page.locator('[part="approval"][data-settling]');
  const settled = page.locator('[part="approval"]:not([data-settling])');
  await chat.say("Cancel both");
  (await turn()).send(approval("1", "Cancel?"), approval("2", "Write?"), asked());
  const pressed = () => part("approve").first().getAttribute("aria-pressed");
  await settling.waitFor();
  await part("approve").first().click();
  assert.equal(await pressed(), "false", "it has just come");
  await part("approve").first().press("Enter");
  assert.equal(await pressed(), "true");
  await pass(600);
  await settled.waitFor();
  await part("approve").first().click();
  assert.equal(await pressed(), "false");
  // Any move of the card counts; here the page moves it, without an event.
  await page.evaluate(() =>
    document.querySelector("agent-chat")?.setAttribute("style", "position: fixed; inset: 40px"),
  );
  await part("approve").first().click();
  assert.equal(await pressed(), "false", "it has moved");
  await settling.waitFor();
  await pass(600);
  await settled.waitFor();
  await part("approve").first().click();
  assert.equal(await pressed(), "true");
});

test("what a person has changed while the page was asked for their token is what is sent", async (t) => {
  const ran: unknown[] = [];
  const erase = tool({
    name: "erase",
    description: "Deletes all.",
    parameters: { type: "object" },
    needsApproval: true,
    danger: true,
    execute: (args) => void ran.push(args),
  });
  const server = await startServer(t, {
    turns: [[callTool("a", "erase", {})], [say("As you like.")]],
    agent: { tools: [erase] },
    authenticate: ({ token }) => (token ? { id: token } : undefined),
  });
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints);
  await page.goto(server.url);
  const chat = chatIn(page);
  const part = (name: string) => page.locator(`[part~="${name}"]`);
  const setToken = (token: string) => `document.querySelector("agent-chat").userToken = ${token}`;
  await page.evaluate(setToken('"ada"'));
  await chat.say("Erase it");
  await part("approve").waitFor();
  await page.evaluate(setToken("() => new Promise((give) => Object.assign(window, { give }))"));
  await press(part("approve"));
  await page.waitForFunction("window.give");
  await press(part("approve"));
  await press(part("decline"));
  await page.keyboard.type("I did not mean that");
  await page.keyboard.press("Enter");
  await page.evaluate('give("ada")');
  await chat.answer.getByText("As you like.").waitFor();
  assert.deepEqual(ran, []);
  assert.match(await shown(chat.replies), /declined by you/);
});

it("a person whose clock is some hours ahead can decide, and the server says when it is too late", async (t) => {
  const { page, part, chat, turn } = await openAskingChat(t);
  await page.clock.setSystemTime(Date.now() + 3 * 3_600_000);
  await chat.say("Cancel it");
  (await turn()).send(approval("1", "Cancel?"), asked());
  await part("approve").waitFor();
  // The clock is corrected in the meantime.
  await page.clock.setSystemTime(Date.now());
  await press(part("approve"));
  const decided = await turn();
  assert.deepEqual(decided.body.approvals, [{ id: "1", approved: true }]);
  decided.send(failure("approval_expired"));
  await part("ask-me-again").waitFor();
  assert.equal(await part("approve").count(), 0);
});

it("what was asked too long ago is asked again, and what was decided elsewhere is said", async (t) => {
  const { page, part, chat, turn } = await openAskingChat(t);
  await chat.say("Cancel it");
  await page.clock.install();
  (await turn()).send(approval("1", "Cancel?"), asked());
  await part("approve").waitFor();
  await page.clock.fastForward(2 * 3_600_000);
  await press(part("ask-me-again"));
  const again = await turn();
  assert.equal(again.body.message, "Please ask me again.");
  const inTime = { expires_at: new Date(Date.now() + 4 * 3_600_000).toISOString() };
  again.send(approval("2", "Cancel now?", {}, inTime), asked());
  await press(part("approve"));
  (await turn()).send(failure("approval_expired"));
  await part("ask-me-again").waitFor();
  assert.deepEqual([await part("approve").count(), await chat.error.count()], [0, 0]);
  await press(part("ask-me-again"));
  (await turn()).send(approval("3", "Cancel at last?", {}, inTime), asked());
  await press(part("decline"));
  await page.keyboard.press("Escape");
  await press(part("approve"));
  (await turn()).send(failure("approval_used"));
  assert.match(await shown(chat.error), /decided already/);
  assert.equal(await chat.retry.count(), 0);
});

test("an answer goes on where it was cut, over a reload, and a failed one with what its tools did", async (t) => {
  const { page, part, chat, turn } = await openAskingChat(t);
  await chat.say("Write a program");
  const cut = {
    ...done("Here:\n\n```js\nlet a =", { previous_response_id: "cut" }),
    finish_reason: "length",
  } as StreamEvent;
  (await turn()).send(cut);
  await part("continue").click();
  const more = await turn();
  assert.deepEqual([more.body.continue, more.body.message], [true, ""]);
  more.send(token("```js\n 1;"));
  await chat.replies.getByText("let a = 1;").waitFor();
  await page.reload();
  const broken = {
    ...failure("provider_error"),
    continue: true,
    state: { previous_response_id: "open" },
  } as StreamEvent;
  more.send(token("\n```\n"), call("1"), result("1"), token("It ru"), broken);
  await chat.retry.click();
  const last = await turn();
  assert.deepEqual([last.body.continue, last.body.state], [true, { previous_response_id: "open" }]);
  last.send(token("It runs."), done("It runs."));
  await chat.answered();
  assert.match(await shown(chat.replies), /let a = 1;\s+Cancel order.*It runs\.(?:\s+\d+:\d+.*)?$/s);
  assert.doesNotMatch(await shown(chat.replies), /It ruIt/);
  const text = await page
    .locator("agent-chat")
    .evaluate((it) => (it as HTMLElementTagNameMap["agent-chat"]).exportTranscript("markdown"));
  assert.match(text, /let a = 1;\n```\n\n`Cancel order`/);

  const heard = await listen(page);
  await chat.say("And then?");
  (await turn()).send({ ...done("One. Two", { previous_response_id: "cut" }), finish_reason: "length" } as StreamEvent);
  await untilHeard(page, heard, "Two");
  heard.length = 0;
  await part("continue").click();
  (await turn()).send(token(" three. Four."), done(" three. Four."));
  await untilHeard(page, heard, "Four.");
  assert.deepEqual(
    heard.filter((said) => /One|Two|Four/.test(said)),
    ["Two three.", "Four."],
    "what was said before is not said again",
  );
});

test("a closed launcher says that a decision is needed, and what is asked", async (t) => {
  const { page, part, chat, turn } = await openAskingChat(t, { launcher: true });
  await part("launcher").click();
  await chat.say("Cancel it");
  const asking = await turn();
  await part("launcher").click();
  asking.send(approval("1", "Cancel order 4711?"), asked());
  await part("preview").filter({ hasText: "Cancel order 4711?" }).waitFor();
  const mark = part("unread");
  assert.equal(await shown(mark), "!");
  await page.reload();
  await mark.filter({ hasText: "!" }).waitFor();
  await part("launcher").click();
  await press(part("approve"));
  (await turn()).send(call("1"), result("1"), done("Cancelled."));
  await chat.answered();
  assert.equal(await mark.count(), 0);
});

test("a tool of a real agent asks, runs once it is approved, also after its message was changed, and not when it was declined or something else was written", async (t) => {
  const ran: unknown[] = [];
  const refund = tool({
    name: "refund",
    description: "Pays back.",
    parameters: { type: "object", properties: { sum: { type: "number", minimum: 1, multipleOf: 0.5 } } },
    needsApproval: true,
    editable: true,
    approvalText: ({ sum }) => `Refund ${sum} €?`,
    execute: (args) => {
      ran.push(args);
      return "paid";
    },
  });
  const asks = (id: string): Turn => [callTool(id, "refund", { sum: 5 })];
  const turns = [asks("a"), [say("Paid back.")], asks("b"), [say("As you like.")], asks("c"), [say("Hello.")]];
  turns.push(asks("d"), [say("Very well.")], [say("Paid again.")]);
  const server = await startServer(t, { turns, agent: { tools: [refund] } });
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints);
  await page.goto(server.url);
  const chat = chatIn(page);
  const part = (name: string) => page.locator(`[part~="${name}"]`);
  await chat.say("Refund it");
  assert.match(await shown(part("approval")), /^Refund 5 €\?\s+Sum\s+5\s/);
  await part("edit-arguments").click();
  await part("approval").getByLabel("Sum").fill("4");
  await page.reload();
  await part("edit-arguments").click();
  const sum = part("approval").getByLabel("Sum");
  await sum.fill("0");
  await press(part("approve"));
  assert.equal(await shown(part("approval").getByRole("alert")), "At least 1.");
  await sum.fill("1.3");
  await press(part("approve"));
  // A problem found by the server is shown at its field, which gets the focus.
  assert.match(await shown(part("approval").getByRole("alert")), /^Please check this value\. .*1\.3/);
  assert.equal(await chat.error.isVisible(), false);
  // The field keeps its value.
  assert.equal(await sum.inputValue(), "1.3");
  await page.waitForFunction(() => {
    const focused = document.querySelector("agent-chat")?.shadowRoot?.activeElement;
    return focused?.getAttribute("aria-invalid") === "true";
  });
  await sum.fill("3");
  await press(part("approve"));
  await chat.answer.getByText("Paid back.").waitFor();
  assert.deepEqual(ran, [{ sum: 3 }]);
  await chat.say("Once more");
  await press(part("decline"));
  await page.keyboard.press("Enter");
  await chat.answer.getByText("As you like.").waitFor();
  await chat.say("And again");
  await part("approval").waitFor();
  await chat.ask("Hello", "Hello.");
  assert.deepEqual([ran.length, await part("approval").count(), await chat.error.count()], [1, 0, 0]);
  await chat.say("And now");
  await part("approval").waitFor();
  await chat.questions.last().getByRole("button", { name: "Change this message" }).click();
  await chat.edited.fill("Never mind");
  await chat.edited.press("Enter");
  await chat.answer.getByText("Very well.").waitFor();
  // Nothing was declined: the question still waits in its own branch.
  await page.getByRole("group", { name: "Message 2 of 2" }).getByRole("button", { name: "Previous" }).click();
  await press(part("approve"));
  await chat.answer.getByText("Paid again.").waitFor();
  assert.deepEqual(ran, [{ sum: 3 }, { sum: 5 }]);
});

const order = {
  amount: 49.9,
  method: "card",
  notify: true,
  tags: ["vip", "late"],
  address: { street: "Main St 1" },
  items: [
    { sku: "A1", count: 1 },
    { sku: "B2", count: 3 },
  ],
};

const schema = {
  type: "object",
  required: ["amount", "method"],
  properties: {
    amount: { type: "number", minimum: 1, maximum: 100 },
    method: { enum: ["card", "voucher"] },
    notify: { type: "boolean" },
    tags: { type: "array", items: { type: "string" }, minItems: 1 },
    address: { type: "object", properties: { street: { type: "string" } } },
    items: { type: "array", minItems: 1, items: { type: "object", properties: { count: { type: "integer" } } } },
    note: { type: "string", maxLength: 9 },
  },
};

test("by keyboard, each value is changed in a field of its own, and the server's problems stand at theirs", async (t) => {
  const { page, part, chat, turn } = await openAskingChat(t);
  await chat.say("Pay it back");
  (await turn()).send(approval("1", "Pay it back?", order, { editable: true, schema }), asked());
  await part("edit-arguments").focus();
  await page.keyboard.press("Enter");
  const card = part("approval");
  await card.locator(":focus").and(card.getByLabel("Amount")).waitFor();
  assert.deepEqual(await axeFindings(page), []);
  assert.equal(await card.getByText(/[{}[\]]/).count(), 0, "no JSON");
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.type("500");
  await page.keyboard.press("Tab");
  await page.keyboard.type("v");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Space");
  await page.keyboard.press("Tab");
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.type(" ");
  await card.getByLabel("Note").fill("far too long");
  await card.getByRole("button", { name: "Remove Items 1" }).press("Enter");
  assert.equal(await card.getByRole("button", { name: "Remove Items 1" }).isDisabled(), true, "one has to stay");
  await part("approve").press("Enter");
  assert.deepEqual(await card.getByRole("alert").allInnerTexts(), [
    "At most 100.",
    "At least 1.",
    "At most 9 characters.",
  ]);
  const amount = card.locator(":focus").and(card.getByLabel("Amount"));
  await amount.waitFor();
  assert.equal(await amount.evaluate((it) => it.ariaInvalid), "true");
  assert.deepEqual(await axeFindings(page), []);
  await page.emulateMedia({ forcedColors: "active" });
  const borders = await card.locator(".field").evaluateAll((all) => all.map((it) => getComputedStyle(it).borderWidth));
  assert.equal(borders.filter((it) => it === "2px").length, 3, "also without colours, one sees which do not fit");
  assert.deepEqual(await axeFindings(page), []);
  await page.emulateMedia({ forcedColors: "none" });
  await amount.fill("50");
  await card.getByLabel("Tags").fill("vip\n\nnew");
  await card.getByLabel("Note").fill("now");
  await part("approve").press("Enter");
  const decided = await turn();
  const [{ arguments: sent = "" } = {}] = decided.body.approvals as ApprovalDecision[];
  assert.deepEqual(JSON.parse(sent), {
    ...{ amount: 50, method: "voucher", notify: false, tags: ["vip", "new"], address: { street: "Main St 1" } },
    ...{ items: [{ sku: "B2", count: 3 }], note: "now" },
  });
  const problems = [
    { pointer: "/items/0/sku", message: "B2 was not bought." },
    { pointer: "/address/street", message: "Unknown." },
    { pointer: "/address", message: "Not ours." },
  ];
  const refused = { code: "invalid_request", retryable: false, param: "/approvals/0/arguments", problems } as const;
  decided.send({ type: "error", data: "The arguments do not fit.", ...refused });
  await card.getByText("B2 was not bought.").waitFor();
  assert.equal(await card.locator('p.wrong[tabindex="-1"]:focus').count(), 1, "the first has the focus");
  assert.deepEqual(
    await card.locator("[aria-invalid=true]").evaluateAll((all) => all.map((it) => (it as HTMLInputElement).value)),
    ["Main St 1", "B2"],
  );
  assert.equal(await chat.error.isVisible(), false);
  await page.reload();
  await card.getByText("B2 was not bought.").waitFor();
  assert.equal(await card.locator(":focus").count(), 0, "after a reload, the focus is not taken");
  await press(part("approve"));
  const again = await turn();
  assert.deepEqual(again.body.approvals, decided.body.approvals);
  again.send(result("1"), done("Paid."));
  await chat.answered();
});

test("a decline says that a reason may follow, has a way back, and is no failure", async (t) => {
  const { page, part, chat, turn } = await openAskingChat(t);
  await chat.say("Cancel it");
  const danger = { danger: true, title: "Cancel the order" };
  (await turn()).send(token("Well."), approval("1", "Cancel order 4711?", { order: 4711 }, danger), asked("Well."));
  const card = part("approval");
  assert.match(await shown(card), /^Cannot be undone\s+Cancel order 4711\?/);
  assert.equal(await part("approve").getAttribute("aria-description"), "Cannot be undone");
  assert.equal(
    (await part("copy").count()) - (await chat.questions.locator('[part~="copy"]').count()),
    0,
    "no lone button",
  );
  assert.equal(await shown(part("decline")), "Decline…");
  await press(part("decline"));
  assert.deepEqual([await shown(part("decline")), await part("approve").count()], ["Decline", 0]);
  await part("cancel-decline").click();
  assert.equal(await part("decline").evaluate((it) => it.matches(":focus")), true);
  assert.equal(await shown(part("approve")), "Cancel the order");
  await press(part("decline"));
  await untilSettled(part("decline"));
  assert.deepEqual(await axeFindings(page), []);
  await page.keyboard.type("Too late");
  await press(part("decline"));
  const decided = await turn();
  assert.deepEqual(decided.body.approvals, [{ id: "1", approved: false, reason: "Too late" }]);
  const heard = await listen(page);
  decided.send(result("1", { status: "failed", declined: true }), token("As you like."), done("As you like."));
  await chat.answered();
  assert.match(await shown(chat.tools), /declined by you at/);
  assert.equal(await chat.tools.getAttribute("data-status"), "stopped");
  await untilHeard(page, heard, "As you like.");
  assert.doesNotMatch(heard.join(), /failed/);
});

for (const lang of ["en", "ar"]) {
  test(`on a phone, the buttons of a card stand in one row, and the page does not scroll sideways (${lang})`, async (t) => {
    const { page, part, turn } = await openAskingChat(t, { lang });
    await page.setViewportSize({ width: 390, height: 844 });
    await page.locator("agent-chat textarea").fill("Pay");
    await page.keyboard.press("Enter");
    (await turn()).send(approval("1", "Pay it back?", order, { editable: true, schema }), asked());
    const names = ["edit-arguments", "show-arguments", "decline", "approve"];
    await part("approve").waitFor();
    const boxes = await Promise.all(names.map((name) => part(name).boundingBox()));
    const middles = boxes.map((box) => Math.round((box?.y ?? 0) + (box?.height ?? 0) / 2));
    assert.ok(Math.max(...middles) - Math.min(...middles) <= 1, JSON.stringify(boxes));
    const starts = boxes.map((box) => box?.x ?? 0);
    assert.deepEqual(starts, lang === "ar" ? starts.toSorted((a, b) => b - a) : starts.toSorted((a, b) => a - b));
    await part("edit-arguments").click();
    await part("approval").locator(".fields").waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
    assert.deepEqual(await axeFindings(page), []);
  });
}
