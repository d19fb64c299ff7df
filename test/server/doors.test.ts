/** The same tests for every door: JSON, Server-Sent Events, WebSocket and other protocols. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { Unauthorized } from "../../server/auth/authenticate.ts";
import { createParley } from "../../server/mount.ts";
import { ApiError } from "../../server/protocol/errors.ts";
import { gate } from "../support/deadline.ts";
import { DOOR_ENV, DOORS, type Heard, type Sender, type Sent, type TestedDoor } from "../support/doors.ts";
import { listen } from "../support/listen.ts";
import { testWithRedis } from "../support/redis-server.ts";
import { call, end, fail, hang, type Step, say, think, wait } from "../support/scripted-provider.ts";
import { type Cleanup, type ServerOptions, startServer, type TestServer } from "../support/start-server.ts";
import { broken, define, echo, lookup } from "../support/test-tools.ts";

const start = (t: Cleanup, { env, ...options }: ServerOptions = {}): Promise<TestServer> =>
  startServer(t, { ...options, env: { ...DOOR_ENV, ...env } });

async function ask(
  t: Cleanup,
  door: TestedDoor,
  server: Parameters<TestedDoor["open"]>[1],
  sent: Sent = HI,
  by?: Sender,
) {
  return (await door.open(t, server, sent, by)).heard;
}

const HI = { message: "Hi" };

/** Compares all that a client received, except `goesOn` and fields that this door never sends. */
function assertHeard(door: TestedDoor, heard: Heard, expected: Partial<Heard>): void {
  const { finish, ...rest } = { ...SILENT, ...expected };
  const known = { ...rest, finish: finish && (door.finishes[finish] ?? finish) };
  for (const name of ["text", "thoughts", "tools", "finish", "usage", "error"] as const) {
    if (!door.deafTo.includes(name)) assert.deepEqual(heard[name], known[name], name);
  }
}

const SILENT = { text: "", thoughts: "", tools: [], finish: "stop", usage: undefined, error: undefined };

interface Case {
  name: string;
  turns: Step[][];
  agent?: ServerOptions["agent"];
  /** Texts of the turns, as clients get them. */
  texts: string[];
  heard?: Partial<Heard>;
}

const ANSWERS: Case[] = [
  { name: "text", turns: [[say("Hel"), say("lo")]], texts: ["Hello"] },
  {
    name: "text with line ends, quotes and astral characters",
    turns: [[say('a\r\nb\n\ndata: "x"\u2028\u0000 👋')]],
    texts: ['a\r\nb\n\ndata: "x"\u2028\u0000 👋'],
  },
  {
    name: "thinking, apart from the answer",
    turns: [[think("Hmm. "), think("Yes."), say("Yes")]],
    texts: ["Yes"],
    heard: { thoughts: "Hmm. Yes." },
  },
  {
    name: "two tools at once, what was said before them, and tokens of both requests",
    turns: [
      [
        say("Let me look."),
        call("a", "lookup", { id: 7 }),
        call("b", "echo", { text: "b" }),
        end("stop", { input_tokens: 10, output_tokens: 1 }),
      ],
      [say("It is 49."), end("stop", { input_tokens: 20, output_tokens: 2 })],
    ],
    agent: { tools: [lookup, echo] },
    texts: ["Let me look.", "It is 49."],
    heard: { tools: ["echo", "lookup"], usage: [30, 3] },
  },
  {
    name: "a tool that fails",
    turns: [[call("a", "broken")], [say("It is out of order.")]],
    agent: { tools: [broken] },
    texts: ["It is out of order."],
    heard: { tools: ["broken"] },
  },
  {
    name: "an answer that the token limit has cut",
    turns: [[say("Half"), end("length")]],
    texts: ["Half"],
    heard: { finish: "length" },
  },
  {
    name: "an answer that a filter withheld",
    turns: [[end("content_filter")]],
    texts: ["The model's provider withheld this answer."],
    heard: { finish: "content_filter" },
  },
  {
    name: "the turn limit",
    turns: [[call("a", "echo", { text: "a" })], [call("b", "echo", { text: "b" })]],
    agent: { tools: [echo], maxTurns: 2 },
    texts: ["I stopped here: this took more steps than I may take for one message."],
    heard: { tools: ["echo"], finish: "max_turns" },
  },
  {
    name: "a message that a hook refuses",
    turns: [],
    agent: { onMessage: () => ({ refuse: "Not here." }) },
    texts: ["Not here."],
    heard: { finish: "refused" },
  },
];

const BROKEN = new ApiError("provider_error", "The model broke. Please try again.");
const PROVIDER_ERROR = { code: "provider_error", message: BROKEN.message };

const FAILURES: { name: string; sent?: Sent; options: ServerOptions; code: string }[] = [
  { name: "JSON that is none", sent: "{", options: {}, code: "invalid_json" },
  { name: "a message that is no text", sent: { message: 5 }, options: {}, code: "invalid_request" },
  { name: "an empty message", sent: { message: " " }, options: {}, code: "invalid_request" },
  { name: "the model before its first word", options: { turns: [[fail(BROKEN)]] }, code: "provider_error" },
  { name: "the model behind its first word", options: { turns: [[say("A"), fail(BROKEN)]] }, code: "provider_error" },
  {
    name: "a hook",
    options: { turns: [], agent: { onMessage: () => Promise.reject(new Error("no")) } },
    code: "internal",
  },
  { name: "a bug", options: { turns: [[fail(new TypeError("x is not a function"))]] }, code: "internal" },
  {
    name: "a message of too many characters",
    options: { env: { PARLEY_MAX_MESSAGE_CHARS: "1" } },
    code: "request_too_large",
  },
  {
    name: "a message of too many bytes",
    sent: { message: "x".repeat(2000) },
    options: { env: { PARLEY_MAX_BODY_BYTES: "1000" } },
    code: "request_too_large",
  },
];

for (const [name, door] of Object.entries<TestedDoor>(DOORS)) {
  for (const { name: what, turns, agent = {}, texts, heard } of ANSWERS) {
    test(`${name}: ${what}`, async (t) => {
      const server = await start(t, { turns, agent });
      assertHeard(door, await ask(t, door, server), { text: door.textOf(texts), ...heard });
    });
  }

  for (const { name: what, sent = HI, options, code } of FAILURES) {
    test(`${name}: a failure has its code: ${what}`, async (t) => {
      const server = await start(t, { turns: [], ...options });
      const { error } = await ask(t, door, server, sent);
      assert.equal(error?.code, code);
      if (code === "provider_error") assert.deepEqual(error, PROVIDER_ERROR);
    });
  }

  test(`${name}: a failure behind a tool names itself, and invites to nothing that would run it again`, async (t) => {
    let runs = 0;
    const agent = { tools: [define("pay", () => ++runs)] };
    const server = await start(t, { agent, turns: [[call("a", "pay")], [fail(BROKEN)]] });
    const { error } = await ask(t, door, server);
    assert.deepEqual([error?.code, runs], ["provider_error", 1]);
  });

  test(`${name}: the next message goes on with the conversation`, async (t) => {
    const server = await start(t, { turns: [[say("Noted.")], [say("Your dog.")]] });
    const { goesOn } = await ask(t, door, server, { message: "My dog is Rex." });
    assertHeard(door, await ask(t, door, server, { message: "Who is Rex?", goesOn }), { text: "Your dog." });
    assert.deepEqual(server.model.asked[1]?.sent, [
      { role: "user", content: "My dog is Rex." },
      { role: "assistant", content: "Noted." },
      { role: "user", content: "Who is Rex?" },
    ]);
  });

  test(`${name}: what waits for approval is not done, and the next message begins without it`, async (t) => {
    let runs = 0;
    const pay = define("pay", () => ++runs, { needsApproval: true, approvalText: () => "Pay 5 €?" });
    const server = await start(t, { agent: { tools: [pay] }, turns: [[call("a", "pay")], [say("Very well.")]] });
    const first = await ask(t, door, server);
    assert.equal(first.finish, door.finishes.approval_required ?? "approval_required");
    assert.match(first.text, /^Pay 5 €\?/);
    const next = await ask(t, door, server, { message: "Rather not.", goesOn: first.goesOn });
    assert.deepEqual([next.text, runs], ["Very well.", 0]);
  });

  test(`${name}: a client that leaves ends the request to the model`, async (t) => {
    const server = await start(t, { turns: [[say("Half"), hang]] });
    const asked = server.model.nextAsked();
    const answer = await door.open(t, server, HI);
    const { aborted } = await asked;
    answer.leave();
    await aborted;
  });

  test(`${name}: 50 answers at once are each whole`, async (t) => {
    const { opened, open } = gate();
    const texts = Array.from({ length: 50 }, (_, index) => `Answer ${index}`);
    const turns = texts.map((text) => [say("An"), wait(opened), say(text.slice(2))]);
    const server = await start(t, { turns, env: { PARLEY_MAX_RUNS_PER_ADDRESS: "50" } });
    const asked = texts.map(() => server.model.nextAsked());
    const answers = await Promise.all(texts.map(() => door.open(t, server, HI)));
    await Promise.all(asked);
    open();
    const heard = await Promise.all(answers.map((answer) => answer.heard));
    assert.deepEqual(heard.map(({ text }) => text).sort(), texts.sort());
  });

  test(`${name}: a wrong key and a wrong origin are refused, and the rate of messages holds`, async (t) => {
    const env = { PARLEY_ALLOWED_ORIGINS: "https://shop.example", PARLEY_RATE_PER_KEY: "1" };
    const server = await start(t, { turns: [[say("Welcome")]], env });
    const codeFor = async (sender: Sender) => (await ask(t, door, server, HI, sender)).error?.code;
    assert.equal(await codeFor({ key: "another-key" }), "unauthorized");
    assert.equal(await codeFor({ origin: "https://evil.example" }), "forbidden");
    assert.equal((await ask(t, door, server, HI, { origin: "https://shop.example" })).text, "Welcome");
    assert.equal(await codeFor({}), "rate_limited");
  });

  test(`${name}: a user whom the agent does not let in is asked to log in`, async (t) => {
    const server = await start(t, { turns: [], authenticate: () => Promise.reject(new Unauthorized()) });
    assert.equal((await ask(t, door, server)).error?.code, "login_required");
  });

  test(`${name}: it is there below a path`, async (t) => {
    const server = await start(t, { turns: [[say("Below")]], env: { PARLEY_BASE_PATH: "/support" } });
    const socketUrl = server.socketUrl.replace("/ws/", "/support/ws/");
    assert.equal((await ask(t, door, { url: `${server.url}/support`, socketUrl })).text, "Below");
  });

  test(`${name}: it is there on a server of one's own`, async (t) => {
    const settings = { ...DOOR_ENV, PARLEY_LOG: "off", PARLEY_DRAIN_SECONDS: "0" };
    const agent = { name: "Acme Support", run: ({ message }: { message: string }) => `You said: ${message}` };
    const parley = await createParley({ agent, settings });
    t.after(() => parley.close());
    const host = createServer(parley.handle).on("upgrade", parley.upgrade);
    const url = await listen(t, host);
    const socketUrl = `${url.replace("http", "ws")}/ws/chat`;
    assert.equal((await ask(t, door, { url, socketUrl })).text, "You said: Hi");
  });

  if (!door.isStreamed) continue;

  test(`${name}: an answer that is stopped ends with what was said`, async (t) => {
    const server = await start(t, { turns: [[say("Half"), hang]] });
    const asked = server.model.nextAsked();
    const answer = await door.open(t, server, HI);
    await asked;
    await answer.stop();
    assertHeard(door, await answer.heard, { text: "Half", finish: "stopped" });
  });

  test(`${name}: a message that is sent again under its name gets the answer that was begun`, async (t) => {
    const { opened, open } = gate();
    const server = await start(t, { turns: [[say("On"), wait(opened), say("ce")]] });
    const named = { ...HI, name: "a-name-of-the-message" };
    const asked = server.model.nextAsked();
    const lost = await door.open(t, server, named);
    await asked;
    lost.leave();
    const again = await door.open(t, server, named);
    open();
    assertHeard(door, await again.heard, { text: "Once" });
    assert.equal(server.model.asked.length, 1);
    const { error } = await ask(t, door, server, { ...named, message: "Another" });
    assert.equal(error?.code, "invalid_request");
  });
}

testWithRedis(
  "over Redis every door answers, and a named message is answered once by all processes",
  async (t, redis) => {
    const env = { PARLEY_REDIS_URL: redis.url };
    const count = Object.keys(DOORS).length;
    const turnsOf = (text: string) => Array.from({ length: count }, () => [say(text)]);
    const one = await start(t, { turns: turnsOf("Once"), env });
    const other = await start(t, { turns: turnsOf("Twice"), env });
    for (const [index, door] of Object.values<TestedDoor>(DOORS).entries()) {
      const named = { ...HI, name: `a-name-of-message-${index}` };
      assert.equal((await ask(t, door, one, named)).text, "Once");
      // A JSON answer cannot be repeated: it ends with its connection.
      if (door.isStreamed) assert.equal((await ask(t, door, other, named)).text, "Once");
    }
  },
);
