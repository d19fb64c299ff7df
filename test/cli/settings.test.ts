/** Names of variables: a typo must not silently leave a server open or a limit unset. */

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readEnvironment, unknownNames } from "../../server/config/environment.ts";
import { loadIfInstalled } from "../../server/config/optional-package.ts";
import { secretsOf } from "../../server/config/secrets.ts";
import { applyLive, isLive, readSettings, SETTINGS } from "../../server/config/settings.ts";
import { ConfigError } from "../../server/errors.ts";
import { post } from "../support/chat-transports.ts";
import { REPOSITORY, start, startDev } from "../support/command.ts";
import { within } from "../support/deadline.ts";
import { refused } from "../support/refused.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { fixture, startUpstream } from "../support/upstream-server.ts";

const MISSPELT: [line: string, meant: string][] = [
  ["PARLEY_API_KEYS=hush-hush", "PARLEY_API_KEY"],
  ["parley_chat_key=hush-hush", "PARLEY_CHAT_KEY"],
  ["PARLY_STATE_SECRET=hush-hush", "PARLEY_STATE_SECRET"],
  ["PARLEY_ALLOWED_ORIGIN=*", "PARLEY_ALLOWED_ORIGINS"],
  ["PARLEY_MAX_RUN=5", "PARLEY_MAX_RUNS"],
  ["PARLEY_DRAIN_SECS=5", "PARLEY_DRAIN_SECONDS"],
  ["OPENAI_APIKEY=hush-hush", "OPENAI_API_KEY"],
  ["LITELM_BASE_URL=http://localhost", "LITELLM_BASE_URL"],
];

for (const [line, meant] of MISSPELT) {
  test(`${line.split("=")[0]} in .env stops the start and suggests ${meant}`, (t) => {
    const folder = temporaryProject(t, { ".env": line, "more.env": line });
    const sentence = new RegExp(`env sets ${line.split("=")[0]}, .* Did you mean ${meant}\\?$`);
    assert.throws(() => readEnvironment({}, folder), refused(sentence));
    const extra = { PARLEY_ENV_FILE: join(folder, "more.env") };
    assert.throws(() => readEnvironment(extra, undefined), refused(sentence));
  });
}

test("a line of .env that sets nothing stops the start, and is named without its words", (t) => {
  const lines: [content: string, line: number][] = [
    ["A=1\nOPENAI_API_KEY sk-secret", 2],
    ["OPENAI_API_KEY: sk-secret\r\nA=1\r\n", 1],
    ['# It\'s "so"\nA="1\n2\n\n3" # end\nB=\'x\'\nsk-secret', 7],
  ];
  for (const [content, line] of lines) {
    const folder = temporaryProject(t, { ".env": content });
    const sentence = new RegExp(`^\\S+\\.env: line ${line} has no "=". Write NAME=value, or # before a comment\\.$`);
    assert.throws(() => readEnvironment({}, folder), refused(sentence));
  }
});

test("a .env in UTF-16, as PowerShell writes it, is named as such", (t) => {
  const folder = temporaryProject(t, {});
  writeFileSync(join(folder, ".env"), Buffer.from("\ufeffOPENAI_API_KEY=sk-secret\r\n", "utf16le"));
  assert.throws(() => readEnvironment({}, folder), refused(/\.env is no text in UTF-8\. Save it as UTF-8/));
});

test("variables of the project itself may be in .env, and comments", (t) => {
  const own = {
    STRIPE_KEY: "sk",
    DATABASE_URL: "postgres://localhost",
    API_KEY: "k",
    POST: "1",
    HOSTS: "a,b",
    OPENAI_API_KEY: "sk",
    // Another key, similar to a known name.
    OPENAI_API_KEY_2: "sk",
  };
  const lines = Object.entries(own).map(([name, value]) => `${name}=${value}`);
  const folder = temporaryProject(t, { ".env": lines.join("\n") });
  assert.deepEqual(readEnvironment({}, folder), own);
  // The comment also counts after a byte order mark.
  const commented = temporaryProject(t, { ".env": "\uFEFFA=1\n# PARLEY_API_KEY=of-before" });
  assert.deepEqual(readEnvironment({}, commented), { A: "1" });
  const quoted = temporaryProject(t, { ".env": "  # don't\nexport A='1\n\n2'\n\nB=it's\nC=" });
  assert.deepEqual(readEnvironment({}, quoted), { A: "1\n\n2", B: "it's", C: "" });
});

test("a near miss of what protects the server stops the start in the environment, too, which would leave it open", () => {
  for (const [name, meant] of [
    ["PARLEY_API_KEYS", "PARLEY_API_KEY"],
    ["PARLEY_APIKEY", "PARLEY_API_KEY"],
    ["PARLY_API_KEY", "PARLEY_API_KEY"],
    ["PARLEY_CHAT_KEYS", "PARLEY_CHAT_KEY"],
    ["PARLEY_WIDGT_KEY", "PARLEY_WIDGET_KEY"],
    ["PARLEY_STATE_SECRETS", "PARLEY_STATE_SECRET"],
    ["PARLEY_ALLOWED_ORIGIN", "PARLEY_ALLOWED_ORIGINS"],
  ] as const) {
    assert.throws(
      () => readEnvironment({ [name]: "hush-hush" }, undefined),
      refused(new RegExp(`Did you mean ${meant}`)),
    );
  }
});

const BAD_PATHS = "support|/|/support/|//support|/a//b|/a b|/a%20b|/a/../b|/.|/a?b|https://a.example/b";
const BAD_ORIGINS =
  "https://a.example/path|https://me@a.example|app://a/b|app:a|http:a.example|https://a;b|wss://a.example";

/** Values of a setting or flag, separated by `|`, and the error message of each. */
const WRONG: [name: string, values: string, sentence: RegExp][] = [
  ["--port", "http|65536|80.5", /^--port must be a whole number from 0 to 65535, but is "/],
  ["--workers", "many", /^--workers must be "auto" or a whole number from 1 to 256/],
  ["PORT", "8e3|many", /^PORT must be a whole number from 0 to 65535, but is "/],
  ["PARLEY_MAX_RUNS", "0x10", /^PARLEY_MAX_RUNS must be a whole number from 0, but is "0x10"/],
  ["PARLEY_RUN_SECONDS", "1e2", /^PARLEY_RUN_SECONDS must be a number from .*, but is "1e2"/],
  ["PARLEY_RUN_SECONDS", "99999999", /^PARLEY_RUN_SECONDS must be .* to 2147483/],
  ["PARLEY_MAX_BODY_BYTES", "64 MB", /^PARLEY_MAX_BODY_BYTES must be a whole number/],
  ["PARLEY_MAX_ATTACHMENTS", "-1", /^PARLEY_MAX_ATTACHMENTS must be/],
  ["PARLEY_DRAIN_SECONDS", "soon", /^PARLEY_DRAIN_SECONDS must be a number/],
  ["PARLEY_KEEP_ALIVE_SECONDS", "0", /^PARLEY_KEEP_ALIVE_SECONDS must be/],
  ["PARLEY_BASE_PATH", "/metrics", /^PARLEY_BASE_PATH must not be \/metrics, which is answered at the root/],
  ["PARLEY_BASE_PATH", BAD_PATHS, /^PARLEY_BASE_PATH must be a path such as \/support, which begins with a slash/],
  ["PARLEY_API_KEY", " , ", /^PARLEY_API_KEY is set but empty/],
  ["PARLEY_API_KEY", "hush-hush now", /^PARLEY_API_KEY must hold keys of visible ASCII/],
  ["PARLEY_CHAT_KEY", "", /^PARLEY_CHAT_KEY is set but empty/],
  ["PARLEY_CHAT_KEY", "hush-hush, ...", /^PARLEY_CHAT_KEY ends with "\.\.\.", as in an example/],
  ["PARLEY_STATE_SECRET", "", /^PARLEY_STATE_SECRET is set but empty/],
  ["PARLEY_STATE_SECRET", "hush-hush…", /^PARLEY_STATE_SECRET ends with/],
  ["PARLEY_ALLOWED_ORIGINS", "shop.example", /^PARLEY_ALLOWED_ORIGINS .*https:\/\/.*"shop\.example"/],
  ["PARLEY_ALLOWED_ORIGINS", BAD_ORIGINS, /^PARLEY_ALLOWED_ORIGINS must list/],
  [
    "PARLEY_ALLOWED_ORIGINS",
    "https://a.example, null|https://a.example, file://|https://a.example, file:///srv/page.html",
    /^PARLEY_ALLOWED_ORIGINS cannot allow ".*: serve the page from a web server/,
  ],
];

for (const [name, values, sentence] of WRONG) {
  test(`${name} is refused in one sentence where it is ${values}`, () => {
    for (const value of values.split("|")) {
      const [env, flags] = name.startsWith("--") ? [{}, { [name.slice(2)]: value }] : [{ [name]: value }, {}];
      assert.throws(() => readSettings(env, flags), refused(sentence));
    }
  });
}

test("keys of different kinds, and a key and the secret, must not share a value", () => {
  for (const [first, second] of [
    ["PARLEY_API_KEY", "PARLEY_WIDGET_KEY"],
    ["PARLEY_CHAT_KEY", "PARLEY_WIDGET_KEY"],
    ["PARLEY_API_KEY", "PARLEY_CHAT_KEY"],
    ["PARLEY_WIDGET_KEY", "PARLEY_STATE_SECRET"],
  ] as const) {
    const env = { [first]: "hush-hush", [second]: "new-key, hush-hush" };
    assert.throws(() => readSettings(env), refused(new RegExp(`^${first} and ${second} must not share a value`)));
  }
});

test("a base path may have several segments, with dots in them", () => {
  for (const path of ["/support", "/a/b-c_d~e", "/.well-known/chat", "/v1.2", "/..."]) {
    assert.equal(readSettings({ PARLEY_BASE_PATH: path }).basePath, path);
  }
  assert.equal(readSettings({ PARLEY_BASE_PATH: "" }).basePath, "");
});

test("flags win over the environment, which names them, too; an empty --host is none", () => {
  const { port, host, workers } = readSettings(
    { PORT: "1", HOST: "::1", PARLEY_WORKERS: "3" },
    { port: "2", host: "" },
  );
  assert.deepEqual([port, host, workers], [2, "::1", 3]);
  assert.equal(readSettings({}, { host: "" }).host, "127.0.0.1");
});

test("another unknown PARLEY_ variable of the environment is a sentence, and those of Kubernetes are none", () => {
  const kubernetes = {
    PARLEY_SERVICE_HOST: "10.0.0.1",
    PARLEY_SERVICE_PORT: "80",
    PARLEY_SERVICE_PORT_HTTP: "80",
    PARLEY_PORT: "tcp://10.0.0.1:80",
    PARLEY_PORT_8080_TCP: "tcp://10.0.0.1:8080",
    PARLEY_PORT_8080_TCP_PROTO: "tcp",
    PARLEY_PORT_8080_TCP_ADDR: "10.0.0.1",
    PARLEY_STAGING_SERVICE_HOST: "10.0.0.2",
  };
  const env = { ...kubernetes, PARLEY_MAX_RUN: "hush-hush", PARLEY_MAX_RUNS: "5", STRIPE_KEY: "hush-hush" };
  assert.deepEqual(readEnvironment(env, undefined), env);
  assert.deepEqual(unknownNames(env), [
    "The environment sets PARLEY_MAX_RUN, which is not a setting of Parley. Did you mean PARLEY_MAX_RUNS?",
  ]);
});

test("a variable of the process wins over PARLEY_ENV_FILE, and that file over the project's .env", (t) => {
  const folder = temporaryProject(t, { ".env": "A=1\nB=1\nC=1", "more.env": "A=2\nB=2" });
  const env = { PARLEY_ENV_FILE: join(folder, "more.env"), A: "3" };
  assert.deepEqual(readEnvironment(env, folder), { ...env, B: "2", C: "1" });
  assert.throws(
    () => readEnvironment({ PARLEY_ENV_FILE: "nowhere" }, folder),
    refused(/names a file that does not exist: nowhere$/),
  );
  assert.throws(() => readEnvironment({ PARLEY_ENV_FILE: " " }, folder), refused(/set but empty/));
});

test("a key that is written into .env under parley dev, and one that is removed, count at once", async (t) => {
  const folder = temporaryProject(t, {
    "agent.js": 'export default { name: process.env.OWN ?? "None", run: () => "Hello." };',
    ".env": "OWN=First",
  });
  const { command, write, info } = await startDev(t, folder);
  assert.equal((await info()).name, "First");
  write("agent.js", 'export default { name: process.env.OWN ?? "None", model: "openai/gpt-5.2" };');
  await command.printed("stderr", /needs OPENAI_API_KEY/);
  write(".env", "OPENAI_API_KEY=sk-of-the-file");
  await command.printed("stderr", /\.env: OPENAI_API_KEY has changed; OWN has changed\./);
  await command.printed("stderr", /\.env: fine again, reloaded in/);
  assert.equal((await info()).name, "None");
});

test("SIGHUP changes the live settings in the one object, and no other", () => {
  const settings = readSettings({ PARLEY_API_KEY: "old", PARLEY_MAX_BODY_BYTES: "1000" });
  applyLive(settings, readSettings({ PARLEY_API_KEY: "new", PARLEY_MAX_BODY_BYTES: "2000", PARLEY_MAX_RUNS: "1" }));
  assert.deepEqual([settings.apiKeys, settings.maxRuns, settings.maxBodyBytes], [["new"], 1, 1000]);
  assert.deepEqual([isLive("PARLEY_MAX_RUNS"), isLive("PORT"), isLive("STRIPE_KEY")], [true, false, false]);
});

test("the settings of a provider that no model needs stop no start", () => {
  const { openaiUrl } = readSettings({ OPENAI_BASE_URL: " not a URL " });
  assert.equal(openaiUrl, "not a URL");
});

test("every setting has a name of its own and a sentence", () => {
  const rows = Object.values(SETTINGS);
  assert.equal(new Set(rows.map(({ name }) => name)).size, rows.length);
  for (const { name, text } of rows) assert.match(text, /^[A-Z`].*\.$/, name);
});

test("secrets are the values of all variables whose names say so, each of a list, also as JSON escapes them, but no short words", () => {
  const env = {
    PARLEY_API_KEY: "first-key, second-key",
    MY_TOKEN: "a-token-of-mine",
    A_KEY: "on",
    KEYBOARD: "qwertz",
    THE_SECRET: 'with "quotes"',
    SHOP_API_KEYS: "plural-1,plural-2",
    PGPASSWORD: "no-underscore",
    TOKEN: "a-word-alone",
    openai_api_key: "small-letters",
    stripeKey: "camel-case",
    AWS_ACCESS_KEY_ID: "word-within",
    TOKEN_URL: "https://app:password-in-it@sso.internal",
  };
  assert.deepEqual(secretsOf(env), [
    "first-key, second-key",
    "first-key",
    "second-key",
    "a-token-of-mine",
    'with "quotes"',
    'with \\"quotes\\"',
    "plural-1,plural-2",
    "plural-1",
    "plural-2",
    "no-underscore",
    "a-word-alone",
    "small-letters",
    "camel-case",
    "word-within",
    "https://app:password-in-it@sso.internal",
    "password-in-it",
  ]);
});

test("a password in a URL of the environment is a secret, as it is written and as it is meant", () => {
  const env = {
    DATABASE_URL: "postgres://app:s3cret%21pass@db.internal:5432/shop?ssl=true",
    HTTPS_PROXY: "http://proxy-user:100%proof@proxy.internal:3128",
    OPENAI_BASE_URL: "https://models.internal:8443/v1?to=a:b@c",
  };
  assert.deepEqual(secretsOf(env), ["s3cret%21pass", "s3cret!pass", "100%proof"]);
});

// The command's log: its format, and that it is complete however the process ends.

test("a record is there as soon as what it is of is over, also if the process is killed then", async (t) => {
  // Standard error is not a terminal, so the log is JSON.
  const { command, url } = await start(t, []);
  const answer = await fetch(`${url}/nowhere`);
  assert.equal(answer.status, 404);
  await answer.text();
  // The server reads the second request of a connection only after the first has ended.
  assert.equal((await fetch(`${url}/health`)).status, 200);
  command.kill("SIGKILL");
  const { stderr } = await command.end();
  assert.match(stderr, /^\{.*"route":"unmatched","status":404,.*"msg":"request"\}$/m);
  for (const line of stderr.trim().split("\n")) assert.equal(typeof JSON.parse(line).msg, "string", line);
});

test("a reader of the log that stands still holds up no answer", async (t) => {
  const { url } = await start(t, [], { env: { PARLEY_LOG: "json" }, stalled: "stderr" });
  // More records than a pipe can buffer.
  for (let request = 0; request < 1000; request++) {
    await within(
      fetch(`${url}/health`).then((res) => res.text()),
      `answer ${request}`,
    );
  }
});

const hasTerminal = spawnSync("script", ["--version"]).status === 0;

test("the log is short lines on a terminal", { skip: !hasTerminal && "there is no `script`" }, async (t) => {
  // `script` runs the command in a terminal and copies its output to standard output.
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

// Tracing with the built command: OpenTelemetry is loaded from its installation, and no span is lost at the end.

/** Prints names of spans. Exports on its own only after an hour. */
const SDK = `
  import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
  const exporter = {
    export(spans, done) {
      process.stderr.write("spans: " + spans.map(({ name }) => name).sort().join(", ") + "\\n");
      done({ code: 0 });
    },
    async shutdown() {},
  };
  const processor = new BatchSpanProcessor(exporter, { scheduledDelayMillis: 3_600_000 });
  new NodeTracerProvider({ spanProcessors: [processor] }).register();
`;

test("spans of a project that brings OpenTelemetry are sent, those of the last runs too", async (t) => {
  const project = temporaryProject(t, {
    "agent.ts": 'export default { name: "Mine", model: "demo" };',
    "tracing.mjs": SDK,
  });
  mkdirSync(join(project, "node_modules"));
  symlinkSync(join(REPOSITORY, "node_modules/@opentelemetry"), join(project, "node_modules/@opentelemetry"));
  const env = { NODE_OPTIONS: `--import=${join(project, "tracing.mjs")}` };
  const { command, url } = await start(t, [project], { env });
  assert.equal((await post({ url }, { message: "Hi", stream: false })).status, 200);
  command.kill("SIGTERM");
  const { code, stderr } = await command.end();
  assert.match(stderr, /^spans: chat demo, invoke_agent Mine$/m);
  assert.equal(code, 0);
});

test("a package that is not installed is none, and a broken one is told", (t) => {
  assert.equal(loadIfInstalled("@acme/none", temporaryProject(t, {})), undefined);
  assert.equal(loadIfInstalled("@acme/none", undefined), undefined);
  const broken = temporaryProject(t, {
    "node_modules/@acme/none/package.json": '{"main":"index.js"}',
    "node_modules/@acme/none/index.js": 'throw new Error("out of order");',
  });
  assert.throws(
    () => loadIfInstalled("@acme/none", broken),
    new ConfigError("The package @acme/none cannot be loaded: out of order."),
  );
});

// Requests to models use the proxy named in the environment or in the project's `.env`.

const AGENT = "export default { name: 'Mine', model: 'compatible/m' };";

const answer = () => ({ body: [fixture("chat-completions/text-and-usage")] });

test("a model is asked through the proxy of the project's .env, as it would be through one of the environment", async (t) => {
  await using proxy = await startUpstream(answer());
  const dotEnv = `HTTP_PROXY=${new URL(proxy.url).origin}\n`;
  const env = { COMPATIBLE_BASE_URL: "http://model.invalid/v1" };
  const { url } = await start(t, [temporaryProject(t, { "agent.mjs": AGENT, ".env": dotEnv })], { env });
  assert.equal((await post({ url }, { message: "Hi", stream: false })).status, 200);
  assert.equal(proxy.calls[0]?.path, "http://model.invalid/v1/chat/completions");
});

for (const [what, exception] of [
  ["a model on this machine", {}],
  ["every host where NO_PROXY says so", { NO_PROXY: "*" }],
] as const) {
  test(`${what} is asked directly`, async (t) => {
    await using proxy = await startUpstream(answer());
    await using upstream = await startUpstream(answer());
    const { url } = await start(t, [temporaryProject(t, { "agent.mjs": AGENT })], {
      env: { HTTP_PROXY: new URL(proxy.url).origin, COMPATIBLE_BASE_URL: upstream.url, ...exception },
    });
    const { status } = await post({ url }, { message: "Hi", stream: false });
    assert.equal(status, 200);
    assert.equal(proxy.calls.length, 0);
    assert.equal(upstream.calls.length, 1);
  });
}
