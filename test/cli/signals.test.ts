/** SIGTERM and SIGINT on the built command, and other ways in which it ends. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { post, readEventStream, terminal } from "../support/chat-transports.ts";
import { DIST, type StartedCommand, start, startInATerminal } from "../support/command.ts";
import { PROCESS_MS, within } from "../support/deadline.ts";
import { connect } from "../support/socket-client.ts";
import type { Cleanup } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";

/** A tool that ends when its address is requested, so that the test controls the duration of a run. */
const PROJECT = {
  "agent.mjs": `
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

async function startHeld(t: Cleanup) {
  const started = await start(t, [temporaryProject(t, PROJECT)]);
  const { name: gate } = JSON.parse(await (await fetch(`${started.url}/api/info`)).text());
  const client = await connect(t, started.socketUrl);
  client.send({ message: "Please hold" });
  await client.until("tool_call");
  return { ...started, client, release: () => fetch(gate) };
}

test("SIGINT with nothing running ends the process at once with 0", async (t) => {
  const { command, socketUrl } = await start(t, []);
  const client = await connect(t, socketUrl);
  command.kill("SIGINT");
  assert.equal((await client.closed).code, 1001);
  const { code, stderr } = await command.end();
  assert.equal(code, 0);
  assert.doesNotMatch(stderr, /running answers/);
});

test("SIGTERM lets a running answer finish while /health/ready says 503, then ends with 0", async (t) => {
  const { command, url, client, release } = await startHeld(t);
  const stream = await post({ url }, { message: "Please hold", stream: true });
  command.kill("SIGTERM");
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

test("SIGTERM to npm, which ends its shell and not what runs in that, ends the server", async (t) => {
  const folder = temporaryProject(t, {});
  // A shell with a further command stays the parent process.
  const script = `${JSON.stringify(process.execPath)} ${JSON.stringify(join(DIST, "cli.js"))} start --port 0; true`;
  const npm = spawn("npm", ["exec", "--offline", "-c", script], {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder },
    stdio: ["ignore", "pipe", "ignore"],
    detached: true,
  });
  let said = "";
  npm.stdout.setEncoding("utf8").on("data", (text) => {
    said += text;
    if (said.includes("http:")) npm.kill("SIGTERM");
  });
  try {
    // All processes with its output have ended.
    await within(once(npm, "close"), "the end of all that npm has started", 2 * PROCESS_MS);
  } catch (error) {
    process.kill(-(npm.pid ?? 0), "SIGKILL");
    throw error;
  }
  assert.match(said, /http:/);
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

test("SIGHUP ends the server when its terminal was closed, where the log was for people", async () => {
  const stdout = await startInATerminal(["--host", "0.0.0.0"]);
  assert.match(stdout, /Other machines can reach this server/);
  assert.doesNotMatch(stdout, /"level":/);
  assert.match(stdout, /ended with 0\n$/);
});

/** Each tool ends the process in another way, or tries to. */
const ENDING = {
  "agent.ts": `
    const tool = (name, execute) => ({ name, description: "Ends.", parameters: { type: "object" }, execute });
    export default {
      name: "Acme", model: "demo",
      tools: [
        tool("quit", () => process.exit(0)),
        tool("throws", () => { setTimeout(() => { throw new Error("Too late"); }); return "Done"; }),
        tool("rejects", () => {
          Promise.reject(new Error("Nobody waits"));
          Promise.reject(Object.create(null));
          Promise.reject(Object.defineProperty(new Error(""), "stack", { get() { throw 1; } }));
          return "Done";
        }),
      ],
    };`,
};

/** The text of the log's last record. */
function lastText(stderr: string): string {
  return JSON.parse(stderr.trimEnd().split("\n").at(-1) ?? "").text;
}

const ENDS: [tool: string, last: RegExp][] = [
  ["quit", /^Parley stops because process\.exit\(\) was called \(agent\.ts:6\)\.$/],
  ["throws", /^Parley stops because of an exception that was not caught: Error: Too late \(agent\.ts:7\)\.$/],
];

for (const [tool, last] of ENDS) {
  test(`the last record says why the process ended, which is not with 0 (${tool})`, async (t) => {
    const { command, url } = await start(t, [temporaryProject(t, ENDING)]);
    await post({ url }, { message: `Please ${tool}`, stream: false }).catch(() => {});
    const { code, stderr } = await command.end();
    assert.equal(code, 1);
    assert.match(lastText(stderr), last);
  });
}

test("rejected promises that a tool leaves behind are records of the log, also those without a text, and end nothing", async (t) => {
  const { command, url } = await start(t, [temporaryProject(t, ENDING)]);
  assert.equal((await post({ url }, { message: "Please rejects", stream: false })).status, 200);
  await command.printed("stderr", /Nobody waits.*"failure".*"failure".*"failure"/s);
  assert.equal((await fetch(`${url}/health`)).status, 200);
  assert.doesNotMatch(command.stderr, /Parley stops/);
});

// SIGHUP: what is reloaded, what the log says, and what happens to clients whose key was removed.

/** The message that gets an endless answer. */
const SLOW = "Answer slowly";

/** Other messages are answered at once, unlike by the demo. */
const AGENT = `
  import { setTimeout } from "node:timers/promises";
  export default { name: "Acme", async *run({ message, signal }) {
    do yield "words "; while (message === "${SLOW}" && await setTimeout(100, true, { signal }));
  } };`;

interface Rotation extends StartedCommand {
  /** Writes the project's `.env`, sends SIGHUP, and returns the line about it in the log. */
  rotate(...lines: string[]): Promise<string>;
  ask(key: string): Promise<number>;
}

async function startWith(t: Cleanup, ...lines: string[]): Promise<Rotation> {
  const folder = temporaryProject(t, { "agent.mjs": AGENT, ".env": lines.join("\n") });
  const started = await start(t, [folder], { env: { PARLEY_LOG: "pretty" } });
  let seen = 0;
  return {
    ...started,
    async rotate(...next) {
      writeFileSync(join(folder, ".env"), next.join("\n"));
      started.command.kill("SIGHUP");
      seen++;
      const printed = new RegExp(`(?:SIGHUP: [^]*?){${seen - 1}}SIGHUP: (.*)\\n`);
      return started.command.printed("stderr", printed);
    },
    async ask(key) {
      const headers = { authorization: `Bearer ${key}` };
      const answer = await post(started, { message: "Hi", stream: false }, { headers });
      await answer.body?.cancel();
      return answer.status;
    },
  };
}

test("SIGHUP takes new keys in and puts old ones out, without a restart and without naming them", async (t) => {
  const server = await startWith(t, "PARLEY_API_KEY=first-key,second-key");
  assert.deepEqual([await server.ask("first-key"), await server.ask("third-key")], [200, 401]);
  const line = await server.rotate("PARLEY_API_KEY=second-key,third-key");
  assert.equal(line, "PARLEY_API_KEY has changed (1 added, 1 removed).");
  assert.deepEqual(
    [await server.ask("first-key"), await server.ask("second-key"), await server.ask("third-key")],
    [401, 200, 200],
  );
  assert.doesNotMatch(server.command.stderr, /(?:first|second|third)-key/);
});

test("the sockets of a key that is gone are closed with 4401, and the others stay", async (t) => {
  const server = await startWith(t, "PARLEY_API_KEY=first-key,second-key");
  const gone = await connect(t, `${server.socketUrl}?key=first-key`);
  const stays = await connect(t, `${server.socketUrl}?key=second-key`);
  gone.send({ message: SLOW });
  await gone.until("token");
  const line = await server.rotate("PARLEY_API_KEY=second-key");
  assert.match(line, /1 removed\); \d connections? and answers? were ended/);
  const event = (await gone.until("error")).at(-1);
  assert.equal(event?.type === "error" && event.code, "unauthorized");
  assert.equal((await gone.closed).code, 4401);
  assert.equal((await stays.run({ message: "Hello" })).at(-1)?.type, "done");
});

test("a stream whose key is gone ends with one error of the code unauthorized", async (t) => {
  const server = await startWith(t, "PARLEY_API_KEY=first-key,second-key");
  const headers = { authorization: "Bearer first-key" };
  const answer = await post(server, { message: SLOW, stream: true }, { headers });
  const pieces: string[] = [];
  let rotated: Promise<string> | undefined;
  for await (const piece of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    pieces.push(piece);
    rotated ??= server.rotate("PARLEY_API_KEY=second-key");
  }
  assert.match((await rotated) ?? "", /1 removed\); 1 connections and answers were ended/);
  const last = terminal(readEventStream(pieces.join("")));
  assert.equal(last.type === "error" && last.code, "unauthorized");
});

test("limits and origins are read anew, and what needs a restart is named", async (t) => {
  const server = await startWith(t, "PARLEY_API_KEY=first-key", "PARLEY_MAX_MESSAGE_CHARS=1");
  assert.equal(await server.ask("first-key"), 413);
  const line = await server.rotate(
    "PARLEY_API_KEY=first-key",
    "PARLEY_ALLOWED_ORIGINS=https://shop.example",
    "PARLEY_MAX_BODY_BYTES=2000",
  );
  assert.equal(
    line,
    "PARLEY_ALLOWED_ORIGINS has changed; PARLEY_MAX_MESSAGE_CHARS has changed; at the next start: PARLEY_MAX_BODY_BYTES.",
  );
  assert.equal(await server.ask("first-key"), 200);
  const page = await fetch(`${server.url}/?embed=1`);
  assert.match(page.headers.get("content-security-policy") ?? "", /shop\.example/);
});

const SLIPS: [name: string, lines: string[], sentence: RegExp][] = [
  ["a variable without a key", ["PARLEY_API_KEY="], /PARLEY_API_KEY is set but empty/],
  ["no key at all", ["# PARLEY_API_KEY=first-key"], /The new settings have no key/],
  [
    "a limit that is no number",
    ["PARLEY_API_KEY=second-key", "PARLEY_MAX_RUNS=many"],
    /PARLEY_MAX_RUNS must be a whole number/,
  ],
  [
    "a key of two kinds",
    ["PARLEY_API_KEY=second-key", "PARLEY_WIDGET_KEY=second-key"],
    /PARLEY_API_KEY and PARLEY_WIDGET_KEY must not share a value/,
  ],
];

test("a mistake in the file changes nothing, and the log says which", async (t) => {
  const server = await startWith(t, "PARLEY_API_KEY=first-key");
  for (const [name, lines, sentence] of SLIPS) {
    const line = await server.rotate(...lines);
    assert.match(line, /^nothing was changed\. /, name);
    assert.match(line, sentence, name);
    assert.deepEqual(
      [await server.ask("first-key"), await server.ask("second-key"), await server.ask("")],
      [200, 401, 401],
      name,
    );
  }
  const same = await server.rotate("PARLEY_API_KEY=first-key");
  assert.equal(same, "nothing has changed (a variable of the process overrides one in a file).");
});

test("PARLEY_ENV_FILE names a file that wins over the project's and is read anew as well", async (t) => {
  const folder = temporaryProject(t, {
    "agent.mjs": AGENT,
    ".env": "PARLEY_API_KEY=of-the-project",
    "more.env": "PARLEY_API_KEY=of-the-file",
  });
  const file = join(folder, "more.env");
  const started = await start(t, [folder], { env: { PARLEY_ENV_FILE: file } });
  const ask = async (key: string) => {
    const headers = { authorization: `Bearer ${key}` };
    return (await post(started, { message: "Hi", stream: false }, { headers })).status;
  };
  assert.deepEqual([await ask("of-the-project"), await ask("of-the-file")], [401, 200]);
  writeFileSync(file, "PARLEY_API_KEY=a-new-one");
  started.command.kill("SIGHUP");
  await started.command.printed("stderr", /1 added, 1 removed/);
  assert.deepEqual([await ask("of-the-file"), await ask("a-new-one")], [401, 200]);
});
