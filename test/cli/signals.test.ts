/** SIGTERM and SIGINT on the built command. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { post, readEventStream } from "../support/chat-transports.ts";
import { REPOSITORY, start } from "../support/command.ts";
import { connect } from "../support/socket-client.ts";
import { temporaryProject } from "../support/temporary-project.ts";

/** A tool that ends when somebody asks for its address, so that the test says how long a run takes. */
const PROJECT = {
  "agent.ts": `
    import { createServer } from "node:http";
    let finish;
    const finished = new Promise((resolve) => { finish = resolve; });
    const gate = createServer((_req, res) => { finish("the tool ended"); res.end(); });
    await new Promise((resolve) => gate.listen(0, "127.0.0.1", resolve));
    export default {
      name: "http://127.0.0.1:" + gate.address().port, model: "demo",
      tools: [{ name: "hold", description: "Waits.", parameters: { type: "object" }, execute: () => finished }],
    };`,
};

async function startHeld(t: Parameters<typeof start>[0], env: Record<string, string> = {}) {
  const started = await start(t, [temporaryProject(t, PROJECT)], { env });
  const { name: gate } = JSON.parse(await (await fetch(`${started.url}/api/info`)).text());
  const client = await connect(t, started.socketUrl);
  client.send({ message: "Please hold" });
  await client.until("tool_call");
  return { ...started, client, release: () => fetch(gate) };
}

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  test(`${signal} with nothing running ends the process at once with 0`, async (t) => {
    const { command, socketUrl } = await start(t, []);
    const client = await connect(t, socketUrl);
    command.kill(signal);
    assert.equal((await client.closed).code, 1001);
    const { code, stderr } = await command.end();
    assert.equal(code, 0);
    assert.doesNotMatch(stderr, /running answers/);
  });

  test(`${signal} lets a running answer finish while /health/ready says 503, then ends with 0`, async (t) => {
    const { command, url, client, release } = await startHeld(t);
    const stream = await post({ url }, { message: "Please hold", stream: true });
    command.kill(signal);
    await command.printed("stderr", /Finishing running answers/);
    assert.equal((await fetch(`${url}/health/ready`)).status, 503);
    assert.equal((await fetch(`${url}/health`)).status, 200);
    assert.equal((await post({ url }, { message: "Hi", stream: false })).status, 503);
    await release();
    const last = (await client.until("done")).at(-1);
    assert.match(String(last?.data), /the tool ended/);
    assert.match(String(readEventStream(await stream.text()).at(-1)?.data), /the tool ended/);
    assert.equal((await client.closed).code, 1001);
    assert.equal((await command.end()).code, 0);
  });
}

test("what still runs after PARLEY_DRAIN_SECONDS gets error shutting_down, and the exit code is 0", async (t) => {
  const { command, client } = await startHeld(t, { PARLEY_DRAIN_SECONDS: "0.2" });
  command.kill("SIGTERM");
  const last = (await client.until("error")).at(-1);
  assert.equal(last?.type === "error" && last.code, "shutting_down");
  assert.equal((await client.closed).code, 1001);
  assert.equal((await command.end()).code, 0);
});

test("a second signal ends the process at once, and not with 0", async (t) => {
  const { command, client } = await startHeld(t);
  command.kill("SIGTERM");
  await command.printed("stderr", /Finishing running answers/);
  command.kill("SIGINT");
  const { code } = await command.end();
  assert.ok(code !== 0);
  assert.equal((await client.closed).code, 1006);
});

/** Starts a command in a terminal of its own, closes the terminal when it listens, and prints its output and its end. */
const IN_A_TERMINAL = `
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
output = b""
while b"http://localhost:" not in output:
    output += os.read(terminal, 4096)
os.close(terminal)
_, status = os.waitpid(pid, 0)
print(output.decode(), "ended with", os.waitstatus_to_exitcode(status))
`;

test("SIGHUP ends the server when its terminal was closed, where the log was for people", async () => {
  const command = [process.execPath, join(REPOSITORY, "dist/cli.js"), "start", "--host", "0.0.0.0", "--port", "0"];
  const options = { env: { PATH: process.env.PATH ?? "" }, timeout: 15_000 };
  const { stdout } = await promisify(execFile)("python3", ["-c", IN_A_TERMINAL, ...command], options);
  assert.match(stdout, /can be reached from other machines/);
  assert.doesNotMatch(stdout, /"level":/);
  // Node 20 crashes when it exits and its terminal is gone, whatever it runs.
  assert.match(stdout, process.version.startsWith("v20.") ? /ended with (?:0|-6|-11)\n$/ : /ended with 0\n$/);
});
