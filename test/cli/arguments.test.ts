/** The `parley` command: help, version, and a one-sentence message for each mistake. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { Command, run, start } from "../support/command.ts";
import { serveProject } from "../support/serve-project.ts";
import { temporaryProject } from "../support/temporary-project.ts";

const AGENT = { "agent.ts": 'export default { name: "Here", model: "demo" };' };

const OVERVIEW = ["parley start [project]", "--help", "--version"];
const HELP_OF_START = ["parley start [project]", "--port", "--host", "--workers", "--open", "Examples"];

for (const [args, words] of [
  [[], OVERVIEW],
  [["help"], OVERVIEW],
  [["-h"], OVERVIEW],
  [["start", "-h"], HELP_OF_START],
  [["start", "nowhere", "--help"], HELP_OF_START],
] as const) {
  test(`parley ${args.join(" ")} prints the help and ends with 0`, async () => {
    const { code, stdout, stderr } = await run(args);
    assert.deepEqual([code, stderr], [0, ""]);
    for (const word of words) assert.ok(stdout.includes(word), word);
  });
}

test("parley -v prints the version of package.json alone", async () => {
  const { version } = JSON.parse(readFileSync("package.json", "utf8"));
  assert.deepEqual(await run(["-v"]), { code: 0, stdout: `${version}\n`, stderr: "" });
});

type Mistake = [args: string[], env: Record<string, string>, sentence: RegExp];

const WRONG_USAGE: Mistake[] = [
  [["constructor"], {}, /^parley: There is no command "constructor"\. See parley --help\.\n$/],
  [["./my-agent"], {}, /There is no command "\.\/my-agent"\. Did you mean: parley start \.\/my-agent\?\n$/],
  [["start", "a", "b"], {}, /one project/],
  [["start", "--prot", "80"], {}, /'--prot'.*parley start --help/],
  [["start", "--trace"], {}, /'--trace'.*parley start --help/],
  [["start", "--port", "-1"], {}, /--port.*parley start --help/],
];

const MISTAKES: Mistake[] = [
  [["start", "nowhere"], {}, /no folder "nowhere"/],
  [["start", "--workers", "2"], {}, /2 workers need Redis .* Set PARLEY_REDIS_URL/],
  [["start", "--host", "no.such.host.invalid"], {}, /"no\.such\.host\.invalid" is(?: not an address|\. Try again)/],
  [["start", "--host", "192.0.2.1"], {}, /"192\.0\.2\.1" is not an address of this machine/],
  [["start"], { PARLEY_API_KEYS: "hush-hush" }, /PARLEY_API_KEYS, .* Did you mean PARLEY_API_KEY\?/],
];

const withCode = (expected: number) => (mistake: Mistake) => [expected, ...mistake] as const;

for (const [expected, args, env, sentence] of [...WRONG_USAGE.map(withCode(2)), ...MISTAKES.map(withCode(1))]) {
  const set = Object.entries(env).map(([name, value]) => `${name}=${JSON.stringify(value)} `);
  test(`${set.join("")}parley ${args.join(" ")} is one sentence and exit code ${expected}`, async () => {
    const { code, stdout, stderr } = await run(args, { env: { PORT: "0", ...env } });
    assert.deepEqual([code, stdout], [expected, ""]);
    assert.match(stderr, sentence);
    assert.match(stderr, /^parley: [^\n]+[.?]\n$/, "one sentence on one line");
    assert.doesNotMatch(stderr, /hush/);
    assert.doesNotMatch(stderr, /^\s+at /m);
  });
}

test("a busy port is one sentence that says what to do", async (t) => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  t.after(() => other.close());
  const address = other.address();
  assert.ok(typeof address === "object" && address !== null);
  const { code, stderr } = await run(["start", "--port", String(address.port)]);
  assert.equal(code, 1);
  assert.match(stderr, new RegExp(`^parley: Port ${address.port} is in use\\. [^\\n]+\\n$`));
});

test("the last line on standard output is the page's URL, and standard error is silent", async (t) => {
  const { command, url } = await start(t, []);
  assert.match(command.stdout, /\nhttp:\/\/127\.0\.0\.1:\d+\/\n$/);
  assert.equal(command.stderr, "");
  assert.match(await (await fetch(`${url}/`)).text(), /<!doctype html>/i);
});

test("the start says name, agent, model and kinds of key, never the keys, and warns of an unknown PARLEY_ variable", async (t) => {
  const unknown = { PARLEY_RATE_PER_KEYS: "5", PARLEY_SERVICE_HOST: "10.0.0.1" };
  const env = { PARLEY_API_KEY: "hush-hush", PARLEY_WIDGET_KEY: "psst-psst", ...unknown };
  const folder = temporaryProject(t, { "agent.ts": 'export default { name: "Acme", agent: "Bo", model: "demo" };' });
  const { command } = await start(t, [folder], { env });
  assert.match(command.stdout, /name +Acme\n +agent +Bo\n +model +demo\n +keys +api, widget\n/);
  await command.printed("stderr", /"level":"warn".*PARLEY_RATE_PER_KEYS, .*Did you mean PARLEY_RATE_PER_KEY\?/);
  assert.doesNotMatch(command.stdout + command.stderr, /hush|psst|PARLEY_SERVICE_HOST/);
});

test("a project is found by its name in the working directory, and flags win over PORT and HOST", async (t) => {
  const cwd = temporaryProject(t, { "my-agent/agent.ts": AGENT["agent.ts"] });
  const env = { PORT: "1", HOST: "192.0.2.1" };
  const args = ["my-agent", "--port", "0", "--host", "127.0.0.1"];
  const { url } = await start(t, args, { cwd, env });
  assert.equal(JSON.parse(await (await fetch(`${url}/api/info`)).text()).name, "Here");
});

test("without a project, the start serves the agent of the working directory, else the demo, and says so", async (t) => {
  const { command } = await start(t, [], { cwd: temporaryProject(t, { "readme.md": "" }) });
  assert.match(command.stdout, /\n\nThere is no agent\.ts in this folder, so the demo agent is served\.\nhttp:\S+\n$/);
  const own = await start(t, [], { cwd: temporaryProject(t, AGENT) });
  assert.doesNotMatch(own.command.stdout, /demo agent/);
  const misnamed = { cwd: temporaryProject(t, { "agent.tsx": AGENT["agent.ts"] }) };
  assert.deepEqual(await run(["start"], misnamed), {
    code: 1,
    stdout: "",
    stderr: "parley: agent.tsx is not served under this name. Rename it to agent.ts.\n",
  });
});

test("HOST is the environment's name of --host, another loopback address needs no warning, and the URL has the base path", async (t) => {
  const { command, url } = await start(t, [], { env: { HOST: "127.0.0.2", PARLEY_BASE_PATH: "/support" } });
  assert.match(url, /^http:\/\/127\.0\.0\.2:\d+\/support$/);
  assert.equal(command.stderr, "");
  assert.match(await (await fetch(`${url}/`)).text(), /<agent-chat/);
});

const SECRET = { PARLEY_STATE_SECRET: "a-secret-of-thirty-two-characters" };

test("a public address without a key prints a warning", async (t) => {
  const { command, url } = await start(t, ["--host", "0.0.0.0"], { env: SECRET });
  await command.printed("stderr", /^\{.*"level":"warn".*Other machines can reach this server .*PARLEY_API_KEY.*\n$/);
  assert.match(url, /^http:\/\/localhost:\d+$/);
  assert.equal((await fetch(`${url}/health`)).status, 200);
});

const SAFE = { HOST: "0.0.0.0", PARLEY_CHAT_KEY: "a-key-of-twenty-chars", ...SECRET };
const WIDGET = { ...SAFE, PARLEY_WIDGET_KEY: "another-key-that-is-long" };
const SITE = { PARLEY_ALLOWED_ORIGINS: "https://a.example" };

/** Settings of a public server, and the warning; `undefined`: there is none. */
const PUBLIC: [env: Record<string, string>, warning: RegExp | undefined][] = [
  [
    { ...SAFE, PARLEY_API_KEY: "short-key" },
    /^A key of fewer than 20 characters can be guessed: PARLEY_API_KEY\. .*openssl rand/,
  ],
  [WIDGET, /^Any site can use the widget key\. Set PARLEY_ALLOWED_ORIGINS/],
  [
    { ...WIDGET, ...SITE, PARLEY_STATE_SECRET: `short-secret,${SECRET.PARLEY_STATE_SECRET}` },
    /^A PARLEY_STATE_SECRET has/,
  ],
  [{ ...SITE, HOST: "0.0.0.0", PARLEY_WIDGET_KEY: WIDGET.PARLEY_WIDGET_KEY }, /Set PARLEY_STATE_SECRET to sign them/],
  [{ ...SECRET, HOST: "0.0.0.0" }, /^Other machines can reach this server \(HOST is 0/],
  [{ ...SECRET, PARLEY_TRUSTED_PROXIES: "127.0.0.1" }, /^Other machines can .* \(PARLEY_TRUSTED_PROXIES is set\)/],
  [{ ...WIDGET, ...SITE }, undefined],
];

test("of what is unsafe at a public address, each is one warning that says what to set, and no key", async (t) => {
  for (const [env, warning] of PUBLIC) {
    const { warnings } = await serveProject(t, undefined, env);
    assert.equal(warnings.length, warning === undefined ? 0 : 1, String(warnings));
    if (warning !== undefined) assert.match(String(warnings), warning);
    assert.doesNotMatch(String(warnings), /short-key|short-secret|another-key/);
  }
});

// Effects of a project's errors outside of conversations on the command.

test("a project that leaves a rejected promise behind while it loads is one sentence and exit code 1", async (t) => {
  const wait = "await new Promise((resolve) => setTimeout(resolve, 1000));";
  const source = `Promise.reject(new Error("too late")); ${wait} export default {};`;
  const { code, stderr } = await run(["start", temporaryProject(t, { "agent.ts": source })]);
  assert.equal(code, 1);
  assert.match(
    stderr,
    /^parley: [^\n]+too late\n(?: {4}at agent\.ts:\d+\n)*$/,
    "the project's own places, and no others",
  );
});

for (const [unread, read, started] of [
  ["stdout", "stderr", /Other machines can reach this server/],
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
  assert.deepEqual(await run(["--help"], { unread: "stdout" }), { code: 0, stdout: "", stderr: "" });
});
