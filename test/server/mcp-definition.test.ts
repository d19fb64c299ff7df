/** An agent's `mcp` setting: mistakes in it, and a first call of an MCP server's tool. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { checkAgent } from "../../server/agent/define.ts";
import { checkMcp } from "../../server/agent/mcp-definition.ts";
import { Late } from "../../server/config/within.ts";
import { reasonOf } from "../../server/mcp/failures.ts";
import { post, send } from "../support/chat-transports.ts";
import { installed, REPOSITORY, run } from "../support/command.ts";
import { refused } from "../support/refused.ts";
import { call, say } from "../support/scripted-provider.ts";
import { type Cleanup, startServer } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { answersTo, throwing } from "../support/test-tools.ts";

const PROGRAM = { command: "npx" };
const HTTP = { url: "https://tools.example.com/mcp" };
const AUTH = { clientId: "parley", clientSecret: "hush-hush" };
const ADDRESS = /mcp\.s\.url must be an address such as https:\/\/tools\.example\.com\/mcp/;
const NAMES = /must be an array of names of tools, which may have a \* at the end/;

/** An invalid value of `mcp`, and its error message. */
const MISTAKES: [written: unknown, sentence: RegExp][] = [
  ["npx", /^mcp must be an object of servers by name.*\{ files: \{ command: "npx", args: \[…\] \} \}/],
  [[PROGRAM], /^mcp must be an object of servers by name/],
  [{ "": PROGRAM }, /^A name in mcp must have 1 to 64 characters\.$/],
  [{ ["x".repeat(65)]: PROGRAM }, /^A name in mcp must have 1 to 64 characters\.$/],
  [{ s: "https://tools.example.com/mcp" }, /^mcp\.s must be an object with a url or/],
  [{ s: {} }, /^mcp\.s must .*a url or .*a command/],
  [{ s: { ...PROGRAM, ...HTTP } }, /^mcp\.s must .*a url or .*a command/],
  [{ "a b": PROGRAM, a_b: PROGRAM }, /^mcp\.a b and mcp\.a_b .*Set prefix of one of them\.$/],
  [{ a: PROGRAM, b: { ...PROGRAM, prefix: "a" } }, /^mcp\.a and mcp\.b .*Set prefix of one of them\.$/],
];

/** Invalid values of one server, and their error messages. */
const OF_A_SERVER: [written: object, sentence: RegExp][] = [
  [{ ...PROGRAM, arguments: [] }, /^mcp\.s has a field arguments, which does nothing\. /],
  [{ ...PROGRAM, arg: [] }, /^mcp\.s has a field arg, which does nothing\. Did you mean args\?$/],
  [{ ...PROGRAM, headers: {} }, /^mcp\.s has a field headers, which does nothing\. Its fields are command, args, env/],
  [{ ...HTTP, env: {} }, /^mcp\.s has a field env, which does nothing\. Its fields are url, headers, per, auth/],
  [{ command: "" }, /^mcp\.s\.command (?:is missing|must)/],
  [{ command: ["npx", "-y"] }, /^mcp\.s\.command (?:is missing|must)/],
  [{ ...PROGRAM, args: "-y" }, /^mcp\.s\.args must be an array of texts\.$/],
  [{ ...PROGRAM, args: ["-y", 1] }, /^mcp\.s\.args must be an array of texts\.$/],
  [{ ...PROGRAM, env: { PORT: 1 } }, /^mcp\.s\.env must be an object of texts\.$/],
  [{ ...PROGRAM, env: ["PORT=1"] }, /^mcp\.s\.env must be an object of texts\.$/],
  [{ ...PROGRAM, cwd: 1 }, /^mcp\.s\.cwd must be /],
  [{ ...PROGRAM, tools: "read_*" }, NAMES],
  [{ ...PROGRAM, tools: ["*_file"] }, NAMES],
  [{ ...PROGRAM, tools: [""] }, NAMES],
  [
    { ...PROGRAM, needsApproval: "always" },
    /^mcp\.s\.needsApproval must be true, "unless-read-only" or an array of names/,
  ],
  [{ ...PROGRAM, needsApproval: () => true }, /^mcp\.s\.needsApproval must be true, "unless-read-only" or an array/],
  [{ ...PROGRAM, needsApproval: ["a*b"] }, NAMES],
  [{ ...PROGRAM, timeoutMs: "30000" }, /^mcp\.s\.timeoutMs must be a number of milliseconds above 0\.$/],
  [{ ...PROGRAM, timeoutMs: 0 }, /^mcp\.s\.timeoutMs must be a number of milliseconds above 0\.$/],
  [{ ...PROGRAM, timeoutMs: Number.POSITIVE_INFINITY }, /^mcp\.s\.timeoutMs must be a number of milliseconds/],
  [{ ...PROGRAM, required: "yes" }, /^mcp\.s\.required must be true or false\.$/],
  [{ ...PROGRAM, prefix: true }, /^mcp\.s\.prefix must be a text of 1 to 64 characters, or false\.$/],
  [{ ...PROGRAM, prefix: "" }, /^mcp\.s\.prefix must be a text of 1 to 64 characters, or false\.$/],
  [{ url: "" }, /^mcp\.s\.url (?:is missing|must)/],
  [{ url: "tools.example.com/mcp" }, ADDRESS],
  [{ url: "ftp://tools.example.com/mcp" }, ADDRESS],
  [{ url: "https://me:hush-hush@tools.example.com/mcp" }, /^mcp\.s\.url .*name (?:or|and) password in it/],
  [{ ...HTTP, headers: "Bearer" }, /^mcp\.s\.headers must be an object of texts, or a function of ctx/],
  [{ ...HTTP, headers: { accept: 1 } }, /^mcp\.s\.headers must be an object of texts, or a function of ctx/],
  [{ ...HTTP, headers: () => ({}), per: "user" }, /^mcp\.s\.per must be a function/],
  [{ ...HTTP, per: () => "a" }, /^mcp\.s\.per does nothing where headers is no function\. Remove it\.$/],
  [{ ...HTTP, auth: "hush-hush" }, /^mcp\.s\.auth must be an object: \{ clientId: "…", clientSecret: "…" \}\.$/],
  [{ ...HTTP, auth: { clientId: "parley" } }, /^mcp\.s\.auth.*clientSecret/],
  [{ ...HTTP, auth: { ...AUTH, clientID: "a" } }, /^mcp\.s\.auth has a field clientID, .*Did you mean clientId\?$/],
  [{ ...HTTP, auth: { ...AUTH, tokenUrl: "/token" } }, /^mcp\.s\.auth\.tokenUrl must be an address such as/],
];

for (const [written, sentence] of [...MISTAKES, ...OF_A_SERVER.map(([s, is]) => [{ s }, is] as const)]) {
  const shown = JSON.stringify(written, (_key, value) => (typeof value === "function" ? "a function" : value));
  test(`mcp: ${shown.slice(0, 90)} is a mistake that is said`, () => {
    assert.throws(() => checkMcp(written), refused(sentence));
  });
}

test("a server that has every field is no mistake", () => {
  const common = { tools: ["read_*", "*"], needsApproval: ["write_*"], timeoutMs: 60_000, required: true };
  const [program, http] = checkMcp({
    files: { ...common, ...PROGRAM, args: ["-y"], env: { A: "b" }, cwd: "/tmp", prefix: false },
    crm: { ...common, ...HTTP, headers: () => ({}), per: () => "a", auth: { ...AUTH, tokenUrl: HTTP.url, scope: "a" } },
  });
  assert.deepEqual([program?.prefix, http?.prefix], ["", "crm__"]);
});

test("mcp beside run is a mistake, and toolTexts needs one of the two", () => {
  const texts = { files__write_file: { title: "Write" } };
  const agent = { name: "A", model: "demo" };
  const both = () => checkAgent({ name: "A", run: () => "Hello", mcp: { files: PROGRAM } });
  assert.throws(both, refused(/^mcp does nothing beside run, which answers by itself\. Remove one of the two\.$/));
  assert.throws(() => checkAgent({ ...agent, toolTexts: texts }), refused(/there is neither run nor mcp/));
  assert.ok(checkAgent({ ...agent, toolTexts: texts, mcp: { files: PROGRAM } }).mcp);
});

test("without its package an agent with mcp does not start, and the sentence has the line that installs it", async (t) => {
  const agent = 'export default { name: "A", model: "demo", mcp: { files: { command: "npx" } } };';
  const { code, stderr } = await run(["start", temporaryProject(t, { "agent.js": agent })], { cli: installed(t) });
  assert.equal(code, 1);
  const line = "npm install @modelcontextprotocol/client@2";
  const sentence = `mcp needs the package @modelcontextprotocol/client, which is not installed. Run this in the project's folder: ${line}`;
  assert.ok(stderr.includes(sentence), stderr);
});

/** An agent with an MCP server that reads files of a folder. */
function fileServer(t: Cleanup, more: object = {}) {
  const folder = temporaryProject(t, { "notes.txt": "Buy milk." });
  const args = [join(REPOSITORY, "test/fixtures/mcp/files.mjs"), folder];
  return { folder, agent: { mcp: { files: { command: process.execPath, args, ...more } } } };
}

test("the model calls a tool of a program, and gets what it has returned", async (t) => {
  const { agent } = fileServer(t);
  const turns = [[call("c1", "files__read_text_file", { path: "notes.txt" })], [say("Milk.")]];
  const server = await startServer(t, { agent, turns });
  const { last } = await send.sse(t, server, { message: "What do I need?" });
  assert.equal(last.type, "done");
  assert.deepEqual(answersTo(server.model), ["Buy milk."]);
  assert.deepEqual(
    server.model.asked[0]?.start.setup.tools.map(({ name }) => name),
    ["files__list_directory", "files__read_text_file", "files__write_file"],
  );
});

test("a call of a program's tool that changes something waits for a yes, in the words of toolTexts", async (t) => {
  const { folder, agent } = fileServer(t, { needsApproval: "unless-read-only" });
  const approvalText = ({ path }: { path: string }) => `Write ${path}?`;
  const done = (_args: object, text: string) => `Found ${text}`;
  const toolTexts = { files__write_file: { approvalText }, files__list_directory: { done } };
  const write = call("c1", "files__write_file", { path: "notes.txt", content: "Buy tea." });
  const turns = [[call("c0", "files__list_directory", { path: "." }), write], [say("Written.")]];
  const server = await startServer(t, { agent: { ...agent, toolTexts }, turns });
  const { last, toolCalls } = await send.json(t, server, { message: "Tea instead of milk." });
  assert.deepEqual(
    toolCalls?.map((it) => (it as { title: string }).title),
    ["Found notes.txt"],
  );
  assert.ok(last.type === "done" && last.finish_reason === "approval_required");
  assert.equal(last.approvals?.[0]?.text, "Write notes.txt?");
  assert.equal(readFileSync(join(folder, "notes.txt"), "utf8"), "Buy milk.");
  await send.json(t, server, { approvals: [{ id: "c1", approved: true }], state: last.state });
  assert.equal(readFileSync(join(folder, "notes.txt"), "utf8"), "Buy tea.");
});

test("a tool that its server refuses is a failed call, and the agent answers", async (t) => {
  const { agent } = fileServer(t);
  const turns = [[call("c1", "files__read_text_file", { path: "gone.txt" })], [say("It is gone.")]];
  const server = await startServer(t, { agent, turns });
  const { last } = await send.sse(t, server, { message: "Read it." });
  assert.equal(last.type, "done");
  assert.match(answersTo(server.model)[0] ?? "", /The tool server files refused the call: ENOENT/);
});

test("while a required server is away, messages and readiness are 503, and an agent that can do without it answers", async (t) => {
  const states = [true, false].map(async (required) => {
    const mcp = { gone: { command: "no-such-program", required } };
    const server = await startServer(t, { agent: { mcp } });
    const ready = await fetch(`${server.url}/health/ready`);
    const answer = await post(server, { message: "Hi", stream: false });
    return [ready.status, answer.status, (await answer.json()).error?.code, answer.headers.has("retry-after")];
  });
  assert.deepEqual(await Promise.all(states), [
    [503, 503, "overloaded", true],
    [200, 200, undefined, false],
  ]);
});

test("the log says why a server gives no tools, in sentences", async (t) => {
  const script = "console.error('No key is set.'); process.exit(1)";
  const url = "http://127.0.0.1:1/mcp";
  const mcp = {
    ends: { command: process.execPath, args: ["-e", script] },
    late: { url, headers: () => new Promise<never>(() => {}) },
    throws: { url, headers: throwing(new Error("The vault is shut")) },
    wrong: { url, headers: () => ({}), per: () => 1 as unknown as string },
  };
  const authenticate = () => ({ id: "ada" });
  const server = await startServer(t, { agent: { mcp }, turns: [[say("Hello")]], authenticate, hookMs: 50 });
  await send.json(t, server, { message: "Hi" });
  const left = (name: string, why: string) =>
    `One of the agent's tools is left out. The tool server ${name} gives none: mcp.${name}.${why}`;
  const expected = [
    "The tool server ends cannot be reached. Connection closed. It said last: No key is set. It is tried again.",
    left("late", "headers(ctx) took longer than 0.05 seconds."),
    left("throws", "headers(ctx) failed. The vault is shut."),
    left("wrong", "per(ctx) must return a text."),
  ];
  const said = server.log.map((record) => JSON.parse(record).text);
  for (const sentence of expected) assert.ok(said.includes(sentence), `${sentence}\n${said.join("\n")}`);
  assert.equal(reasonOf(new Late(10_000)), "It took longer than 10 seconds.");
});
