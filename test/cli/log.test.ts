/** The log of the command: its form, and that it is whole however the process ends. */

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { post } from "../support/chat-transports.ts";
import { REPOSITORY, start } from "../support/command.ts";
import { within } from "../support/deadline.ts";

test("a record is there as soon as what it is of is over, also if the process is killed then", async (t) => {
  const { command, url } = await start(t, [], { env: { PARLEY_LOG: "json" } });
  assert.equal((await fetch(`${url}/nowhere`)).status, 404);
  // The server reads the second request of a connection only when the first is over.
  assert.equal((await fetch(`${url}/health`)).status, 200);
  command.kill("SIGKILL");
  const { stderr } = await command.end();
  assert.match(stderr, /^\{.*"route":"unmatched","status":404,.*"msg":"request"\}$/m);
});

test("the log is JSON where standard error is no terminal", async (t) => {
  const { command, url } = await start(t, []);
  await post({ url }, { message: "Hi", stream: false });
  command.kill("SIGTERM");
  const { stderr } = await command.end();
  for (const line of stderr.trim().split("\n")) assert.equal(typeof JSON.parse(line).msg, "string", line);
});

test("a reader of the log that stands still holds up no answer", async (t) => {
  const { url } = await start(t, [], { env: { PARLEY_LOG: "json" }, stalled: "stderr" });
  // More records than any pipe takes.
  for (let request = 0; request < 1000; request++) {
    await within(
      fetch(`${url}/health`).then((res) => res.text()),
      `answer ${request}`,
    );
  }
});

const hasTerminal = spawnSync("script", ["--version"]).status === 0;

test("the log is short lines on a terminal", { skip: !hasTerminal && "there is no `script`" }, async (t) => {
  // It gives the command a terminal, whose text it writes to its own standard output.
  const terminal = spawn("script", ["-qefc", `'${process.execPath}' dist/cli.js start --port 0`, "/dev/null"], {
    cwd: REPOSITORY,
    stdio: ["ignore", "pipe", "ignore"],
  });
  t.after(async () => {
    terminal.kill("SIGTERM");
    await once(terminal, "exit");
  });
  let shown = "";
  terminal.stdout.on("data", (text) => {
    shown += text;
  });
  const printed = async (pattern: RegExp): Promise<RegExpExecArray> => {
    const match = pattern.exec(shown);
    if (match !== null) return match;
    await within(once(terminal.stdout, "data"), `${pattern} after ${shown}`);
    return printed(pattern);
  };
  const [, url = ""] = await printed(/^(http:\S+)\/\r$/m);
  await post({ url }, { message: "How are you today?", stream: false });
  await printed(/^\d\d:\d\d:\d\d "How are you today\?" .* demo .*\d s\r$/m);
});
