/** `parley dev`: an agent that is edited while it answers. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { test } from "node:test";
import { post } from "../support/chat-transports.ts";
import { Command, run, start, startDev } from "../support/command.ts";
import { within } from "../support/deadline.ts";
import { connect } from "../support/socket-client.ts";
import { temporaryProject } from "../support/temporary-project.ts";

/** Answers at once, unlike the demo. */
const AGENT = 'export default { name: "Mine", run: () => "Hello." };';

/** Reads the events for the page of `parley dev`, one at a time. */
async function listen(url: string, token: string) {
  const response = await fetch(`${url}/dev/events`, { headers: { authorization: `Bearer ${token}` } });
  assert.ok(response.body);
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  return {
    async next(): Promise<{ type: string; sentence?: string; users?: object[] }> {
      while (!rest.includes("\n\n")) rest += decoder.decode((await within(reader.read(), "the next event")).value);
      const at = rest.indexOf("\n\n");
      const [event, later] = [rest.slice("data: ".length, at), rest.slice(at + 2)];
      rest = later;
      return JSON.parse(event);
    },
    close: () => reader.cancel(),
  };
}

test("authenticate counts from the next message on after it was saved, and conversations go on", async (t) => {
  const folder = temporaryProject(t, { "agent.js": AGENT });
  const { command, url, write } = await startDev(t, folder);
  const ask = async (more = {}) => {
    const answer = await post({ url }, { message: "Hi", stream: false, ...more });
    return JSON.parse(await answer.text());
  };
  const { state } = await ask();
  assert.ok(state.signature);
  const refusing = 'export const authenticate = () => { throw Object.assign(new Error("no"), MARK); };';
  const mark = 'const MARK = { [Symbol.for("parley-agent.Unauthorized")]: true };';
  for (const [index, [text, code]] of [
    [`${mark} ${refusing}`, "login_required"],
    ['export const authenticate = () => ({ id: "ada" });', undefined],
  ].entries()) {
    write("agent.js", `${text}\n${AGENT}`);
    await command.printed("stderr", new RegExp(`(?:reloaded in.*){${index + 1}}`, "s"));
    assert.equal((await ask({ state })).error?.code, code);
  }
});

test("devUsers ask in place of authenticate under parley dev, by the token or the first; parley start does not read them", async (t) => {
  const agent = `
    export const authenticate = () => ({ id: "real" });
    export default { name: "Mine", async *run({ ctx }) { yield String(ctx.user?.id); } };`;
  const withUsers = (users: string) => `export const devUsers = ${users};${agent}`;
  const users =
    '[{ id: "ada", name: "Ada Lovelace", card: "secret" }, undefined, { id: "zoë", name: 5 }, { id: "b@x.example" }]';
  const folder = temporaryProject(t, { "agent.js": withUsers(users) });
  const { command, url, token, write } = await startDev(t, folder);
  assert.match(
    command.stdout,
    /users +devUsers of the agent's module: Ada Lovelace \(ada\), nobody, zoë, b@x\.example\n/,
  );
  const askAs = async (at: string, user?: string) => {
    const headers: Record<string, string> = user === undefined ? {} : { "x-user-token": user };
    return (await (await post({ url: at }, { message: "Hi", stream: false }, { headers })).json()).response;
  };
  const named = [undefined, "ada", "undefined", "zo%C3%AB", "b@x.example", "eve"].map((user) => askAs(url, user));
  assert.deepEqual(await Promise.all(named), ["ada", "ada", "undefined", "zoë", "b@x.example", "ada"]);
  const page = await listen(url, token);
  assert.deepEqual(await page.next(), {
    type: "reloaded",
    users: [
      { token: "ada", label: "Ada Lovelace (ada)" },
      { token: "undefined", label: "nobody" },
      { token: "zo%C3%AB", label: "zoë" },
      { token: "b%40x.example", label: "b@x.example" },
    ],
  });
  for (const [wrong, sentence] of [
    ["{}", /devUsers must be a list of users/],
    ["[]", /devUsers must be a list of users/],
    ["[null]", /devUsers must be a list of users/],
    ['[{ name: "Ada" }]', /devUsers must be a list of users/],
    ['[{ id: "ada" }, { id: "ada" }]', /devUsers has "ada" twice/],
  ] as const) {
    write("agent.js", withUsers(wrong));
    assert.match(String((await page.next()).sentence), sentence);
    const { code, stderr } = wrong === "{}" ? await run(["dev", folder]) : { code: 1, stderr: "parley: devUsers" };
    assert.deepEqual([code, /^parley: .*devUsers/.test(stderr)], [1, true]);
  }
  assert.equal(await askAs(url), "ada");
  const { url: started } = await start(t, [folder]);
  assert.equal(await askAs(started, "ada"), "real");
  write("agent.js", agent);
  assert.deepEqual(await page.next(), { type: "reloaded" });
  assert.equal(await askAs(url, "ada"), "real");
  await page.close();
});

test("a change of the agent, and of whatever it imports or reads, reaches the next message", async (t) => {
  const base = temporaryProject(t, {
    "outside/shared.ts": 'export const shared: string = "shared-0";',
    "project/agent.ts": `
      import { readFileSync } from "node:fs";
      import typed from "./lib/typed.ts";
      import { module } from "./lib/module.mjs";
      import required from "./lib/required.cjs";
      import data from "./data.json";
      import { shared } from "../outside/shared.ts";
      import { script } from "./esm/script.js";
      const prompt = readFileSync(new URL("./prompt.md", import.meta.url), "utf8");
      const parts = ["agent-0", typed, module, required, data.data, shared, script, prompt];
      export default { name: parts.join(" "), model: "demo" };`,
    "project/lib/typed.ts": 'import { deep } from "./deep"; export default "typed-0" + deep;',
    "project/lib/deep.ts": 'export const deep: string = "deep-0";',
    "project/lib/module.mjs": 'export const module = "module-0";',
    "project/lib/required.cjs": 'module.exports = "required-0" + require("./inner.cjs");',
    "project/lib/inner.cjs": 'module.exports = "inner-0";',
    "project/data.json": '{"data":"data-0"}',
    "project/esm/package.json": '{"type":"module"}',
    "project/esm/script.js": 'export { script } from "./parts.js";',
    "project/esm/parts.js": 'export const script = "script-0";',
    "project/prompt.md": "prompt-0",
  });
  const folder = join(base, "project");
  const { url, token, info } = await startDev(t, folder);
  const page = await listen(url, token);
  await page.next();
  const edits = [
    ["agent", "agent.ts"],
    ["typed", "lib/typed.ts"],
    ["deep", "lib/deep.ts"],
    ["module", "lib/module.mjs"],
    ["required", "lib/required.cjs"],
    ["inner", "lib/inner.cjs"],
    ["data", "data.json"],
    ["shared", "../outside/shared.ts"],
    ["script", "esm/parts.js"],
    ["prompt", "prompt.md"],
  ] as const;
  for (const round of [1, 2]) {
    for (const [word, name] of edits) {
      const path = join(folder, name);
      const text = readFileSync(path, "utf8").replace(`${word}-${round - 1}`, `${word}-${round}`);
      // Editors save in either of these ways.
      writeFileSync(round === 1 ? path : `${path}~`, text);
      if (round === 2) renameSync(`${path}~`, path);
      assert.equal((await page.next()).type, "reloaded", name);
      assert.match((await info()).name, new RegExp(`${word}-${round}`), name);
    }
  }
  await page.close();
});

test("a changed text or logo of the page is served at once, and a broken one keeps the page that was", async (t) => {
  const agent = (welcome: string) =>
    `export default { name: "Mine", run: () => "Hi", chat: { welcome: ${welcome}, logo: "art/logo.svg" } };`;
  const folder = temporaryProject(t, { "agent.js": agent('"One"'), "art/logo.svg": "<svg/>" });
  const { url, token, write } = await startDev(t, folder);
  const page = await listen(url, token);
  await page.next();
  const look = async () => {
    const { welcome, chat } = await (await fetch(`${url}/api/info`)).json();
    return [welcome, await (await fetch(`${url}/${chat.logo.light}`)).text()];
  };
  write("art/logo.svg", "<svg></svg>");
  await page.next();
  assert.deepEqual(await look(), ["One", "<svg></svg>"]);
  write("agent.js", agent('"Two"'));
  await page.next();
  write("agent.js", agent("5"));
  assert.match(String((await page.next()).sentence), /^chat\.welcome must be a text/);
  assert.deepEqual(await look(), ["Two", "<svg></svg>"]);
  await page.close();
});

test("a broken file keeps the last good agent; terminal and page say where and why, until it is fine again", async (t) => {
  const folder = temporaryProject(t, {
    "agent.ts": 'import { name } from "./lib/name.ts"; export default { name, model: "demo" };',
    "lib/name.ts": 'export const name = "First";',
  });
  const { command, url, token, write, info } = await startDev(t, folder);
  const page = await listen(url, token);
  assert.deepEqual(await page.next(), { type: "reloaded" });
  const faults: [name: string, text: string, sentence: RegExp][] = [
    ["lib/name.ts", "export const name: = 1;", /^agent\.ts cannot be loaded: name\.ts:1:\d+: Unexpected token/],
    [
      "lib/name.ts",
      '\n\nthrow new Error("no database");\nexport const name = "";',
      /no database\n {4}at lib\/name\.ts:3/,
    ],
    ["agent.ts", 'export default { name: "A", model: "demo", tool: [] };', /^agent\.ts: tool is not a field/],
    ["agent.ts", 'export default { name: "A", model: "compatible/x" };', /COMPATIBLE_BASE_URL/],
  ];
  for (const [name, text, sentence] of faults) {
    write(name, text);
    const event = await page.next();
    assert.equal(event.type, "broken");
    assert.match(String(event.sentence), sentence);
    assert.equal((await info()).name, "First");
    assert.ok(!String(event.sentence).includes(folder));
    await command.printed("stderr", new RegExp(sentence.source.replace(/^\^/, "warning: ").replace("\\n", "\\n *")));
  }
  const late = await listen(url, token);
  assert.equal((await late.next()).type, "broken");
  write("agent.ts", 'export default { name: "Second", model: "demo" };');
  assert.deepEqual(await page.next(), { type: "reloaded" });
  assert.equal((await info()).name, "Second");
  await command.printed("stderr", /agent\.ts: fine again, reloaded in \d+ ms\.\n/);
  write("agent.ts", 'export default { name: "Third", run: () => "Hi." };');
  await command.printed(
    "stderr",
    /reloaded in \d+ ms\. Another provider answers now, which cannot continue earlier conv/,
  );
  await Promise.all([page.close(), late.close()]);
});

test("no secret of the environment is in what page, terminal and chat say of a fault", async (t) => {
  const fault = 'new Error("no database at postgres://ada:" + process.env.SHOP_KEY + "@db")';
  const folder = temporaryProject(t, {
    "agent.ts": `export default { name: "Mine", run: () => { throw ${fault}; } };`,
    ".env": "SHOP_KEY=key-of-the-shop",
  });
  const { command, url, token, write } = await startDev(t, folder);
  const failed = await (await post({ url }, { message: "Hi", stream: false })).text();
  const page = await listen(url, token);
  await page.next();
  write("agent.ts", `throw ${fault};`);
  const { sentence = "" } = await page.next();
  await command.printed("stderr", /The last good agent goes on answering/);
  command.kill("SIGKILL");
  const { stderr } = await command.end();
  const ended = [await run(["dev", folder]), await run(["start", folder])].map((end) => end.stderr);
  for (const said of [failed, sentence, stderr, ...ended]) {
    assert.match(said, /no database at postgres:\/\/ada:\[key\]@db/);
    assert.doesNotMatch(said, /key-of-the-shop/);
  }
  await page.close().catch(() => {});
});

test("a folder that is removed and made again is watched again, and a load that hangs holds up nothing", async (t) => {
  const folder = temporaryProject(t, {
    "agent.ts": 'import { name } from "./lib/name.ts"; export default { name, model: "demo" };',
    "lib/name.ts": 'export const name = "One";',
  });
  const { command, write, info } = await startDev(t, folder);
  rmSync(join(folder, "lib"), { recursive: true });
  await command.printed("stderr", /lib\/name\.ts/);
  write("lib/name.ts", 'export const name = "Two";');
  await command.printed("stderr", /fine again/);
  write("lib/name.ts", 'console.error("hangs"); await new Promise(() => {}); export const name = "";');
  await command.printed("stderr", /hangs/);
  write("lib/name.ts", 'export const name = "Three";');
  await command.printed("stderr", /hangs[\s\S]*reloaded in/);
  assert.equal((await info()).name, "Three");
  command.kill("SIGINT");
  const { code, stderr } = await command.end();
  assert.equal(code, 0);
  assert.doesNotMatch(stderr, /ended the process/);
});

test("a conversation goes on when the agent gets another name", async (t) => {
  const folder = temporaryProject(t, { "agent.ts": AGENT });
  const { command, url, write } = await startDev(t, folder);
  const { state } = await (await post({ url }, { message: "Hi", stream: false })).json();
  assert.ok(state.signature);
  write("agent.ts", AGENT.replace("Mine", "Two"));
  await command.printed("stderr", /reloaded in/);
  assert.equal((await post({ url }, { message: "And now?", state, stream: false })).status, 200);
});

test("a running answer keeps its agent and its module until it ends; then the module is closed", async (t) => {
  const agent = (version: string) => `
    import { existsSync, writeFileSync } from "node:fs";
    const at = (name) => new URL("./.state/" + name, import.meta.url);
    export const close = () => writeFileSync(at("closed-${version}"), "");
    async function execute() {
      writeFileSync(at("called"), "");
      while (!existsSync(at("go"))) await new Promise((resolve) => setTimeout(resolve, 10));
      return existsSync(at("closed-${version}")) ? "closed" : "answer of ${version}";
    }
    export default { name: "${version}", model: "demo",
      tools: [{ name: "look", description: "Looks.", parameters: { type: "object" }, execute }] };`;
  const folder = temporaryProject(t, { "agent.ts": agent("one"), ".state/.keep": "" });
  const { command, url, token, write, info, socketUrl } = await startDev(t, folder);
  const page = await listen(url, token);
  await page.next();
  const client = await connect(t, socketUrl);
  client.send({ message: "Please look" });
  await client.until("tool_call");
  write("agent.ts", agent("two"));
  await page.next();
  assert.equal((await info()).name, "two");
  write(".state/go", "");
  assert.match(String((await client.until("done")).at(-1)?.data), /answer of one/);
  const { response } = await (await post({ url }, { message: "Please look", stream: false })).json();
  assert.match(response, /answer of two/);
  assert.ok(statSync(join(folder, ".state/closed-one")).isFile());
  assert.throws(() => statSync(join(folder, ".state/closed-two")));
  await page.close();
  command.kill("SIGTERM");
  assert.equal((await command.end()).code, 0);
  assert.ok(statSync(join(folder, ".state/closed-two")).isFile());
});

test("a change of .env takes the live settings over and names the others", async (t) => {
  const folder = temporaryProject(t, { "agent.ts": AGENT, ".env": "PARLEY_MAX_ATTACHMENTS=3" });
  const { command, write, info } = await startDev(t, folder);
  write(
    ".env",
    "PARLEY_RATE_PER_KEY=7\nWEATHER_KEY=secret-weather\nPARLEY_MAX_ATTACHMENTS=3\nPARLEY_MAX_BODY_BYTES=9000000",
  );
  const line = await command.printed("stderr", /\.env: .*/);
  assert.match(
    line,
    /PARLEY_RATE_PER_KEY has changed; WEATHER_KEY has changed; at the next start: PARLEY_MAX_BODY_BYTES/,
  );
  assert.equal((await info()).attachments.max_count, 3);
  write(".env", "PARLEY_TRUSTED_PROXIES=10.0.0.0/8");
  await command.printed("stderr", /\.env: nothing was changed\. .*Remove PARLEY_TRUSTED_PROXIES/);
  write(".env", "PARLEY_API_KEY=one-of-many-characters");
  await command.printed("stderr", /PARLEY_API_KEY has changed \(1 added, 0 removed\)/);
  write(".env", "");
  await command.printed("stderr", /PARLEY_API_KEY has changed \(0 added, 1 removed\)/);
});

test("it listens on this machine alone, whatever HOST says, and refuses proxies", async (t) => {
  const folder = temporaryProject(t, { "agent.ts": AGENT });
  const { command, url } = await startDev(t, folder, { env: { HOST: "0.0.0.0" } });
  assert.equal(new URL(url).hostname, "127.0.0.1");
  await command.printed("stderr", /HOST is 0\.0\.0\.0, but parley dev listens on 127\.0\.0\.1 only/);
  const refused = await run(["dev", folder], { env: { PARLEY_TRUSTED_PROXIES: "10.0.0.1" } });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /^parley: .*Remove PARLEY_TRUSTED_PROXIES, or use parley start\.\n$/);
});

test("a mistake at the start ends it with a sentence, and wrong usage with exit code 2", async (t) => {
  const broken = temporaryProject(t, { "agent.ts": "export default {" });
  const blocked = temporaryProject(t, { "agent.ts": AGENT, ".parley": "" });
  const rows: [args: string[], code: number, sentence: RegExp][] = [
    [["dev", broken], 1, /agent\.ts cannot be loaded/],
    [["dev"], 1, /holds no agent\. Write an agent\.ts there/],
    [["dev", broken, "--inspect=x"], 1, /--inspect must be a port/],
    [
      ["dev", blocked, "--trace"],
      1,
      /^parley: --trace cannot write \.parley\/trace\.jsonl .*\(EEXIST\)\. Make \.parley a folder/,
    ],
    [["dev", broken, "--host", "0.0.0.0"], 2, /See parley dev --help/],
  ];
  for (const [args, code, sentence] of rows) {
    const end = await run(args, { cwd: temporaryProject(t, {}) });
    assert.equal(end.code, code, args.join(" "));
    assert.match(end.stderr, sentence);
  }
});

test("its secret is in the project's ignored folder for the owner alone, so a conversation outlives a restart and another secret", async (t) => {
  const folder = temporaryProject(t, { "agent.ts": AGENT });
  const first = await startDev(t, folder);
  const { state } = await (await post({ url: first.url }, { message: "Hello", stream: false })).json();
  assert.ok(state.signature);
  for (const name of ["secret", ".gitignore"]) {
    assert.equal(statSync(join(folder, ".parley", name)).mode & 0o777, 0o600, name);
  }
  assert.equal(readFileSync(join(folder, ".parley/.gitignore"), "utf8"), "*\n");
  assert.equal(readdirSync(join(folder, ".parley")).length, 2, "nothing else is written unasked");
  first.command.kill("SIGINT");
  assert.equal((await first.command.end()).code, 0);
  const second = await startDev(t, folder);
  const again = { message: "And now?", state, stream: false };
  assert.equal((await post({ url: second.url }, again)).status, 200);
  const [mine = {}] = state.conversation_history;
  const altered = { ...again, state: { ...state, conversation_history: [{ ...mine, content: "Bye" }] } };
  assert.equal((await post({ url: second.url }, altered)).status, 400);
  second.write(".env", "PARLEY_STATE_SECRET=a secret of many characters");
  await second.command.printed("stderr", /\.env: PARLEY_STATE_SECRET has changed/);
  assert.equal((await post({ url: second.url }, again)).status, 200);
});

test("a folder that cannot be written gets a secret of this start", async (t) => {
  const folder = temporaryProject(t, { "agent.ts": AGENT, ".parley": "in the way" });
  const { url } = await startDev(t, folder);
  assert.ok((await (await post({ url }, { message: "Hello", stream: false })).json()).state.signature);
});

test("/dev/ is open to its own page with this start's token, and is not there for anybody else", async (t) => {
  const { url, token } = await startDev(t, temporaryProject(t, { "agent.ts": AGENT }));
  const { host, port } = new URL(url);
  const authorization = `Bearer ${token}`;
  const refused: [method: string, path: string, headers: Record<string, string>][] = [
    ["GET", "/dev/events", {}],
    ["GET", "/dev/events", { authorization: `${authorization}x` }],
    ["GET", `/dev/events?token=${token}`, {}],
    ["GET", "/dev/events", { authorization, origin: "https://evil.example" }],
    ["GET", "/dev/events", { authorization, origin: "http://localhost:1" }],
    ["GET", "/dev/events", { authorization, origin: `http://localhost:${port}` }],
    ["GET", "/dev/events", { authorization, host: `rebound.example:${port}` }],
    ["OPTIONS", "/dev/events", { origin: "https://evil.example", "access-control-request-method": "GET" }],
    ["POST", "/dev/events", {}],
    ["GET", "/dev/other", { authorization }],
    ["GET", "/dev/", { authorization }],
  ];
  for (const [method, path, headers] of refused) {
    const asked = request(`${url}${path}`, { method, headers }).end();
    const [response] = (await once(asked, "response")) as [IncomingMessage];
    response.resume();
    assert.equal(response.statusCode, 404, `${method} ${path} ${JSON.stringify(headers)}`);
  }
  const own = await fetch(`${url}/dev/events`, { headers: { authorization, origin: `http://${host}` } });
  assert.equal(own.status, 200);
  await own.body?.cancel();
});

test("the terminal tells each run as a story: question, tools with their arguments, what threw and where", async (t) => {
  const folder = temporaryProject(t, {
    "agent.ts": `
      import { ToolError } from "parley-agent";
      import { lookup } from "./lib/lookup.ts";
      const parameters = { type: "object", properties: { order: { type: "string" } }, required: ["order"] };
      const tool = (name, execute) => ({ name, description: "Finds the order.", parameters, execute });
      const prices = { demo: { input: 1000, output: 1000 } };
      export default { name: "Acme", model: "demo", prices, tools: [
        tool("track", ({ order }) => order), tool("lookup", lookup), tool("refuse", () => { throw new ToolError("no such order"); }),
      ] };`,
    "lib/lookup.ts": `\nexport function lookup(): never {\n  throw new TypeError("no database for key-of-the-shop");\n}`,
    ".env": "SHOP_KEY=key-of-the-shop",
  });
  const { command, url } = await startDev(t, folder);
  await post({ url }, { message: 'Please track, lookup and refuse the order "4711"', stream: false });
  await command.printed("stderr", /tokens {2}\$[\d.]+ {2}[\d.]+ s\n/);
  const story = command.stderr;
  assert.match(story, /^\d\d:\d\d:\d\d "Please track, lookup and refuse the order "4711""\n/m);
  assert.match(story, /^ {9}✓ track \{"order":"4711"\} {2}\d+ ms\n/m);
  assert.match(story, /^ {9}✗ lookup .* ms\n {11}no database for \[key\] \(lib\/lookup\.ts:3\)\n/m);
  assert.match(story, /^ {9}✗ refuse .* ms\n {11}no such order \(agent\.ts:8\)\n/m);
  assert.match(story, /^ {9}demo {2}\d+ tokens {2}\$0\.\d+ {2}\d+\.\d s\n/m);
  assert.ok(!story.includes("\u001b") && !story.includes("key-of-the-shop") && !story.includes("failure:"));
});

test("the story has the calls that wait, what was decided on them, and where the agent's own code threw", async (t) => {
  const folder = temporaryProject(t, {
    "agent.ts": `
      const waiting = { id: "c1", tool: "cancel", arguments: { order: "4711" } };
      export default {
        name: "Acme",
        async *run({ message, ctx }) {
          if (message === "Hi") throw new Error("no rules");
          if (ctx.approvals.length === 0) return yield { type: "tool_approval", data: waiting };
          for (const { id, approved } of ctx.approvals) if (approved) yield { type: "tool_result", data: { id } };
          yield "Fine.";
        },
      };`,
  });
  const { command, url } = await startDev(t, folder);
  const ask = async (body: object) => (await post({ url }, { ...body, stream: false })).json();
  const decide = async (approved: boolean) => {
    const { approvals, state } = await ask({ message: "Please cancel 4711" });
    await ask({ approvals: approvals.map(({ id }: { id: string }) => ({ id, approved })), state });
  };
  await decide(true);
  await decide(false);
  await ask({ message: "Hi" });
  await command.printed("stderr", /✗ provider_error/);
  const story = command.stderr.replace(/^\d\d:\d\d:\d\d/gm, "TIME");
  assert.match(story, /^ {9}\? cancel \{"order":"4711"\} {2}waits for a decision\n {9}run .* approval_required\n/m);
  assert.match(story, /^TIME goes on\n {9}approved cancel\n {9}✓ cancel \{"order":"4711"\} {2}\d+ ms\n/m);
  assert.match(story, /^TIME goes on\n {9}declined cancel\n {9}run /m);
  assert.match(
    story,
    /^TIME failure: provider_error: The agent's run failed: no rules\n +cause: Error at \S+agent\.ts:6:\d+ /m,
  );
});

/** Ends its process in every way in which an agent's code can, or blocks it for ever. */
const ENDING = `
// As some programs tell the one that has started them.
for (const word of ["ready", { type: "ready" }, null]) process.send?.(word);
const ways = {
  exit: () => process.exit(0),
  throw: () => setTimeout(() => { throw new Error("late"); }),
  loop: () => { for (;;); },
};
export default { name: "Mine", run({ message }) { ways[message]?.(); return "Hello."; } };`;

/** Sends a request on a new connection: a kept-alive one could end with the process. */
async function askAnew(url: string, message: object) {
  const headers = { "content-type": "application/json" };
  const asking = request(`${url}/api/chat`, { method: "POST", agent: false, headers }).end(JSON.stringify(message));
  const [response] = (await once(asking, "response")) as [IncomingMessage];
  return JSON.parse(await textOf(response));
}

test("after the agent's code has ended or blocked its process, the next save starts it anew for the pages that are open", async (t) => {
  const folder = temporaryProject(t, { "agent.js": ENDING });
  const { command, url, token, write } = await startDev(t, folder);
  const ask = (more: object) => askAnew(url, { stream: false, ...more });
  const { state } = await ask({ message: "Hello" });
  const starts = () => command.stdout.split("#dev=").length - 1;
  /** Performs an action, and waits until the command prints a text. */
  const printsAfter = async (act: () => void, name: "stdout" | "stderr", text: string) => {
    const from = command[name].length;
    act();
    await command.printed(name, new RegExp(`^[^]{${from}}[^]*?${text}`));
  };
  const ANEW = "The next change of a file starts the agent again";
  for (const [index, way] of ["exit", "throw", "loop"].entries()) {
    let lost: Promise<unknown> | undefined;
    const end = () => {
      // The connection ends with the process.
      lost = ask({ message: way }).catch(() => {});
    };
    if (way === "loop") end();
    else {
      await printsAfter(end, "stderr", ANEW);
      // After a mistake in the saved file, the supervisor also waits for the next save.
      await printsAfter(() => write("agent.js", "export default {"), "stderr", `cannot be loaded[^]*${ANEW}`);
    }
    await printsAfter(() => write("agent.js", ENDING.replace("Hello.", `Again ${way}.`)), "stdout", "#dev=.*\n");
    await lost;
    assert.equal((await ask({ message: "Hello", state })).response, `Again ${way}.`);
    const page = await listen(url, token);
    assert.equal((await page.next()).type, "reloaded");
    await page.close();
    assert.equal(starts(), index + 2);
  }
  await printsAfter(() => write("agent.js", `for (;;); ${ENDING}`), "stderr", "blocked its process");
  await printsAfter(() => write("agent.js", ENDING), "stdout", "#dev=.*\n");
  assert.equal((await ask({ message: "Hello", state })).response, "Hello.");
});

test("Ctrl-C ends it while its process is blocked or has ended, and killed outright it leaves no server behind", async (t) => {
  for (const way of ["exit", "loop", "kill"]) {
    const { command, url } = await startDev(t, temporaryProject(t, { "agent.js": ENDING }));
    const lost = post({ url }, { message: way, stream: false }).catch(() => {});
    if (way === "exit") await command.printed("stderr", /The next change of a file starts the agent again/);
    command.kill(way === "kill" ? "SIGKILL" : "SIGINT");
    // Both processes write to the same pipes, so this waits for both.
    await command.end();
    await lost;
    await assert.rejects(fetch(url), way);
  }
});

test("--inspect lets a debugger in, on this machine", async (t) => {
  const folder = temporaryProject(t, { "agent.ts": AGENT });
  const command = new Command(["dev", folder, "--inspect=0", "--no-open"], { env: { PORT: "0" } });
  t.after(() => command.end());
  await command.printed("stderr", /Debugger listening on ws:\/\/127\.0\.0\.1:\d+\//);
  await command.printed("stdout", /#dev=/);
  command.kill("SIGTERM");
});
