/** What a fault beside the conversations does to the command. */

import assert from "node:assert/strict";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { post } from "../support/chat-transports.ts";
import { Command, run, start } from "../support/command.ts";
import { temporaryProject } from "../support/temporary-project.ts";

const AGENT = `
  const name = await Promise.resolve("Mine");
  export default { name, model: "demo" };`;

test("a project that is reached through a link starts like any other", async (t) => {
  const folder = temporaryProject(t, { "real/agent.ts": AGENT });
  symlinkSync(join(folder, "real"), join(folder, "linked"));
  const { url } = await start(t, [join(folder, "linked")]);
  assert.equal((await fetch(`${url}/health`)).status, 200);
});

test("a .env that begins with a byte order mark gives its first variable, too", async (t) => {
  const folder = temporaryProject(t, {
    "agent.ts": "export default { name: process.env.FIRST, model: 'demo' };",
    ".env": "\uFEFFFIRST=Mine\n",
  });
  const { url } = await start(t, [folder]);
  const info = JSON.parse(await (await fetch(`${url}/api/info`)).text());
  assert.equal(info.name, "Mine");
});

test("a tool that throws where nobody catches ends the server with exit code 1, after it said why", async (t) => {
  const folder = temporaryProject(t, {
    "agent.ts": `
      const execute = () => { setTimeout(() => { throw new Error("late boom"); }, 1); return "ok"; };
      export default { name: "Mine", model: "demo",
        tools: [{ name: "leave", description: "d", parameters: { type: "object" }, execute }] };`,
  });
  const { url, command } = await start(t, [folder]);
  const answer = await post({ url }, { message: "please leave", stream: false });
  assert.equal(answer.status, 200);
  const { code, stderr } = await command.end();
  assert.equal(code, 1);
  assert.match(stderr, /late boom/);
});

test("a rejected promise without a text that a tool leaves ends no server", async (t) => {
  const folder = temporaryProject(t, {
    "agent.ts": `
      const execute = () => {
        Promise.reject(Object.create(null));
        Promise.reject(Object.defineProperty(new Error(""), "stack", { get() { throw 1; } }));
        return "ok";
      };
      export default { name: "Mine", model: "demo",
        tools: [{ name: "leave", description: "d", parameters: { type: "object" }, execute }] };`,
  });
  const { url, command } = await start(t, [folder]);
  assert.equal((await post({ url }, { message: "leave", stream: false })).status, 200);
  await command.printed("stderr", /"failure".*"failure"/s);
  assert.equal((await post({ url }, { message: "leave", stream: false })).status, 200);
});

for (const [name, source, sentence] of [
  [
    "leaves a rejected promise behind while it loads",
    "Promise.reject(new Error('too late')); await new Promise((resolve) => setTimeout(resolve, 1000)); export default {};",
    /too late/,
  ],
  ["throws an error without a message", "throw new Error('');", /an error without a message/],
] as const) {
  test(`a project that ${name} is one sentence, exit code 1, and no stack but of its own files`, async (t) => {
    const folder = temporaryProject(t, { "agent.ts": source });
    const { code, stderr } = await run(["start", folder]);
    assert.equal(code, 1);
    assert.match(stderr, sentence);
    assert.match(
      stderr,
      /^parley: [^\n]+\n(?: {4}at agent\.ts:\d+:\d+\n)*$/,
      "the project's own places, and no others",
    );
  });
}

test("a key that no header can carry stops the start", async () => {
  const { code, stderr } = await run(["start"], { env: { PARLEY_API_KEY: "my secret" } });
  assert.equal(code, 1);
  assert.match(stderr, /PARLEY_API_KEY must hold keys of visible ASCII/);
});

for (const [unread, read, started] of [
  ["stdout", "stderr", /can be reached from other machines/],
  ["stderr", "stdout", /^http:/m],
] as const) {
  test(`a project that writes to a ${unread} which nobody reads is served`, async (t) => {
    const folder = temporaryProject(t, {
      "agent.mjs": `
        const write = () => new Promise((written) => process.${unread}.write("x", () => setImmediate(written)));
        await write();
        setTimeout(() => write().then(() => console.${read === "stdout" ? "log" : "error"}("goes on")), 1);
        export default { name: "Mine", model: "demo" };`,
    });
    const command = new Command(["start", folder], { env: { PORT: "0", HOST: "0.0.0.0" }, unread });
    t.after(() => command.kill("SIGKILL"));
    await command.printed(read, started);
    await command.printed(read, /goes on/);
    command.kill("SIGTERM");
    assert.equal((await command.end()).code, 0);
  });
}

test("a stream that a preload has put in place of standard output is written to", async (t) => {
  const preload = `
    const text = [];
    const write = (chunk) => text.push(chunk) > 0;
    const stdout = Object.assign(new (await import("node:events")).EventEmitter(), { write });
    Object.defineProperty(process, "stdout", { value: stdout });
    process.on("exit", () => {
      stdout.emit("error", new Error("gone"));
      process.stderr.write("got " + text.join(""));
    });`;
  const folder = temporaryProject(t, { "preload.mjs": preload });
  const env = { NODE_OPTIONS: `--import=${join(folder, "preload.mjs")}` };
  const { code, stderr } = await run(["--help"], { env });
  assert.match(stderr, /^got parley - /);
  assert.equal(code, 0);
});

test("help that nobody reads to its end is no failure", async () => {
  assert.deepEqual(await run(["--help"], { unread: "stdout" }), {
    code: 0,
    stdout: "",
    stderr: "",
  });
});
