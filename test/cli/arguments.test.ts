/** `parley` as it is typed: help, version, and every mistake told in one sentence. */

import assert from "node:assert/strict";
import { readFileSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { post } from "../support/chat-transports.ts";
import { Command, run, start } from "../support/command.ts";
import { temporaryProject } from "../support/temporary-project.ts";

const AGENT = { "agent.ts": 'export default { name: "Here", model: "demo" };' };

for (const args of [[], ["--help"], ["-h"], ["help"], ["start", "--help"]]) {
  test(`parley ${args.join(" ")} prints the help and ends with 0`, async () => {
    const { code, stdout, stderr } = await run(args);
    assert.deepEqual([code, stderr], [0, ""]);
    for (const word of ["parley start [project]", "--port", "--host", "--workers", "--open", "--help", "--version"]) {
      assert.ok(stdout.includes(word), word);
    }
  });
}

for (const flag of ["--version", "-v"]) {
  test(`parley ${flag} prints the version of package.json alone`, async () => {
    const { version } = JSON.parse(readFileSync("package.json", "utf8"));
    assert.deepEqual(await run([flag]), { code: 0, stdout: `${version}\n`, stderr: "" });
  });
}

const MISTAKES: [args: string[], env: Record<string, string>, sentence: RegExp][] = [
  [["serve"], {}, /^parley: There is no command "serve"\. Use: parley start\. See parley --help\.\n$/],
  [["./my-agent"], {}, /There is no command "\.\/my-agent"\. Did you mean: parley start \.\/my-agent\?\n$/],
  [["start", "a", "b"], {}, /one project/],
  [
    ["start", "3000"],
    { npm_lifecycle_event: "start", npm_config_port: "3000" },
    /npm kept --port for itself\. Write "npm start -- --port 3000"\.\n$/,
  ],
  [
    ["start"],
    { npm_lifecycle_event: "start", npm_config_port: "3000" },
    /npm kept --port for itself\. Write "npm start -- --port 3000"\.\n$/,
  ],
  [["start", "--prot", "80"], {}, /'--prot'.*parley --help/],
  [["start", "--port"], {}, /--port.*parley --help/],
  [["start", "nowhere"], {}, /no folder "nowhere"/],
  [["start", "--port", "http"], {}, /--port must be a whole number from 0 to 65535, but is "http"/],
  [["start", "--port", "65536"], {}, /--port must be/],
  [["start", "--port", "-1"], {}, /--port/],
  [["start", "--port", "80.5"], {}, /--port must be/],
  [["start", "--workers", "2"], {}, /2 workers need Redis .* Set PARLEY_REDIS_URL/],
  [["start"], { PARLEY_WORKERS: "3" }, /3 workers need Redis/],
  [["start", "--workers", "many"], {}, /--workers must be "auto" or a whole number from 1 to 256/],
  [["start"], { PORT: "8e3" }, /PORT must be a whole number from 0 to 65535, but is "8e3"/],
  [["start"], { PARLEY_MAX_RUNS: "0x10" }, /PARLEY_MAX_RUNS must be a whole number from 0, but is "0x10"/],
  [["start"], { PARLEY_RUN_SECONDS: "1e2" }, /PARLEY_RUN_SECONDS must be a number from .*, but is "1e2"/],
  [["start"], { PORT: "many" }, /PORT must be a whole number from 0 to 65535, but is "many"/],
  [["start", "--host", "no.such.host.invalid"], {}, /"no\.such\.host\.invalid" is(?: not an address|\. Try again)/],
  [["start", "--host", "192.0.2.1"], {}, /"192\.0\.2\.1" is not an address of this machine/],
  [["start"], { PARLEY_API_KEY: " , " }, /PARLEY_API_KEY is set but empty/],
  [["start"], { PARLEY_CHAT_KEY: "" }, /PARLEY_CHAT_KEY is set but empty/],
  [["start"], { PARLEY_STATE_SECRET: "" }, /PARLEY_STATE_SECRET is set but empty/],
  [["start"], { PARLEY_ALLOWED_ORIGINS: "shop.example" }, /PARLEY_ALLOWED_ORIGINS .*https:\/\/.*"shop\.example"/],
  [["start"], { PARLEY_ALLOWED_ORIGINS: "https://a.example/path" }, /PARLEY_ALLOWED_ORIGINS/],
  [["start"], { PARLEY_MAX_BODY_BYTES: "64 MB" }, /PARLEY_MAX_BODY_BYTES must be a whole number/],
  [["start"], { PARLEY_MAX_ATTACHMENTS: "-1" }, /PARLEY_MAX_ATTACHMENTS must be/],
  [["start"], { PARLEY_DRAIN_SECONDS: "soon" }, /PARLEY_DRAIN_SECONDS must be a number/],
  [["start"], { PARLEY_KEEP_ALIVE_SECONDS: "0" }, /PARLEY_KEEP_ALIVE_SECONDS must be/],
  [["start"], { PARLEY_RUN_SECONDS: "99999999" }, /PARLEY_RUN_SECONDS must be .* to 2147483/],
  [["start"], { PARLEY_API_KEYS: "hush-hush" }, /PARLEY_API_KEYS, .* Did you mean PARLEY_API_KEY\?/],
];

for (const [args, env, sentence] of MISTAKES) {
  const set = Object.entries(env).map(([name, value]) => `${name}=${JSON.stringify(value)} `);
  test(`${set.join("")}parley ${args.join(" ")} is one sentence and exit code 1`, async () => {
    const { code, stdout, stderr } = await run(args, { env: { PORT: "0", ...env } });
    assert.deepEqual([code, stdout], [1, ""]);
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

test("the start says name, agent, model and which kinds of key are set, never the keys", async (t) => {
  const env = { PARLEY_API_KEY: "hush-hush", PARLEY_WIDGET_KEY: "psst-psst" };
  const folder = temporaryProject(t, { "agent.ts": 'export default { name: "Acme", agent: "Bo", model: "demo" };' });
  const { command } = await start(t, [folder], { env });
  assert.match(command.stdout, /name +Acme\n +agent +Bo\n +model +demo\n +keys +api, widget\n/);
  assert.doesNotMatch(command.stdout + command.stderr, /hush|psst/);
});

test("a project is found by its name in the working directory, and flags win over PORT and HOST", async (t) => {
  const cwd = temporaryProject(t, { "my-agent/agent.ts": AGENT["agent.ts"] });
  const env = { PORT: "1", HOST: "192.0.2.1" };
  const args = ["my-agent", "--port", "0", "--host", "127.0.0.1"];
  const { url } = await start(t, args, { cwd, env });
  assert.equal(JSON.parse(await (await fetch(`${url}/api/info`)).text()).name, "Here");
});

test("HOST is the environment's name of --host", async (t) => {
  const { url } = await start(t, [], { env: { HOST: "localhost" } });
  assert.match(url, /^http:\/\/(?:127\.0\.0\.1|\[::1\]):\d+$/);
});

for (const [args, env] of [
  [["--host", "0.0.0.0"], {}],
  [[], { HOST: "0.0.0.0" }],
] as const) {
  test(`a public address without a key prints a warning (${args.join(" ") || "HOST"})`, async (t) => {
    const { command, url } = await start(t, args, { env });
    await command.printed("stderr", /^\{.*"level":"warn".*Other machines can reach this server .*PARLEY_API_KEY.*\n$/);
    assert.match(url, /^http:\/\/localhost:\d+$/);
    assert.equal((await fetch(`${url}/health`)).status, 200);
  });
}

const SAFE = { PARLEY_CHAT_KEY: "a-key-of-twenty-chars", PARLEY_STATE_SECRET: "a-secret-of-thirty-two-characters" };
const WIDGET = { PARLEY_WIDGET_KEY: "another-key-that-is-long" };

for (const [name, env, sentence] of [
  ["a short key", { ...SAFE, PARLEY_API_KEY: "short-key" }, /A key has fewer than 20 characters.*openssl rand/],
  ["a widget key for any site", { ...SAFE, ...WIDGET }, /Any site can use the widget key\. Set PARLEY_ALLOWED_ORIGINS/],
  ["no state secret", { ...WIDGET, PARLEY_ALLOWED_ORIGINS: "https://a.example" }, /Set PARLEY_STATE_SECRET/],
] as const) {
  test(`a public address with ${name} prints one warning that says what to set, and no key`, async (t) => {
    const { command } = await start(t, ["--host", "0.0.0.0"], { env });
    await command.printed("stderr", /\n/);
    assert.match(command.stderr, /^\{[^\n]*"level":"warn"[^\n]*\n$/);
    assert.match(command.stderr, sentence);
    assert.doesNotMatch(command.stderr, /short-key|another-key/);
  });
}

for (const [name, args, env] of [
  ["with a long key and a secret", ["--host", "0.0.0.0"], SAFE],
  [
    "with a widget key and its sites",
    ["--host", "0.0.0.0"],
    { ...SAFE, ...WIDGET, PARLEY_ALLOWED_ORIGINS: "https://a.example" },
  ],
  ["on a loopback address", ["--host", "127.0.0.2"], {}],
  ["with an empty --host, which is none", ["--host", ""], {}],
] as const) {
  test(`there is no warning ${name}`, async (t) => {
    const { command, url } = await start(t, args, { env });
    assert.equal(command.stderr, "");
    if (args[1] === "") assert.match(url, /127\.0\.0\.1/);
  });
}

test("an unknown PARLEY_ variable of the environment is a warning, and the server is there", async (t) => {
  const { command, url } = await start(t, [], { env: { PARLEY_RATE_PER_KEYS: "5", PARLEY_SERVICE_HOST: "10.0.0.1" } });
  assert.equal((await fetch(`${url}/health`)).status, 200);
  await command.printed("stderr", /"level":"warn".*PARLEY_RATE_PER_KEYS, .*Did you mean PARLEY_RATE_PER_KEY\?/);
  assert.doesNotMatch(command.stderr, /PARLEY_SERVICE_HOST/);
});

// What a fault beside the conversations does to the command.

const SLOW_AGENT = `
  const name = await Promise.resolve("Mine");
  export default { name, model: "demo" };`;

test("a project that is reached through a link starts like any other", async (t) => {
  const folder = temporaryProject(t, { "real/agent.ts": SLOW_AGENT });
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
    assert.match(stderr, /^parley: [^\n]+\n(?: {4}at agent\.ts:\d+\n)*$/, "the project's own places, and no others");
  });
}

test("a key that no header can carry stops the start", async () => {
  const { code, stderr } = await run(["start"], { env: { PARLEY_API_KEY: "my secret" } });
  assert.equal(code, 1);
  assert.match(stderr, /PARLEY_API_KEY must hold keys of visible ASCII/);
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
