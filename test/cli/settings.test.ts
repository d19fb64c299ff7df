/** Names of variables: a typing mistake must not leave a server open, or a limit unset, in silence. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { readEnvironment, secretsOf, unknownNames } from "../../server/config/environment.ts";
import { applyLive, isLive, readSettings, SETTINGS } from "../../server/config/settings.ts";
import { ConfigError } from "../../server/errors.ts";
import { temporaryProject } from "../support/temporary-project.ts";

const refused = (sentence: RegExp) => (error: unknown) => {
  assert.ok(error instanceof ConfigError, String(error));
  assert.match(error.message, sentence);
  assert.doesNotMatch(error.message, /hush-hush|\n/);
  return true;
};

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

test("variables of the project itself may be in .env, and comments", (t) => {
  const own = {
    STRIPE_KEY: "sk",
    DATABASE_URL: "postgres://localhost",
    API_KEY: "k",
    POST: "1",
    HOSTS: "a,b",
    OPENAI_API_KEY: "sk",
    // A second key, beside the one that is known.
    OPENAI_API_KEY_2: "sk",
  };
  const lines = Object.entries(own).map(([name, value]) => `${name}=${value}`);
  const folder = temporaryProject(t, { ".env": lines.join("\n") });
  assert.deepEqual(readEnvironment({}, folder), own);
  const commented = temporaryProject(t, { ".env": "A=1\n# PARLEY_API_KEY=of-before" });
  assert.deepEqual(readEnvironment({}, commented), { A: "1" });
});

for (const name of ["PARLEY_API_KEYS", "PARLEY_APIKEY", "PARLY_API_KEY", "PARLEY_CHAT_KEYS", "PARLEY_WIDGT_KEY"]) {
  test(`${name} in the environment stops the start, which would leave the server open`, () => {
    assert.throws(() => readEnvironment({ [name]: "hush-hush" }, undefined), refused(/Did you mean PARLEY_\w+_KEY\?/));
  });
}

for (const name of ["PARLEY_STATE_SECRETS", "PARLEY_ALLOWED_ORIGIN"]) {
  test(`${name} in the environment stops the start`, () => {
    assert.throws(() => readEnvironment({ [name]: "hush-hush" }, undefined), refused(new RegExp(name)));
  });
}

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
    refused(/names a file that is not there/),
  );
  assert.throws(() => readEnvironment({ PARLEY_ENV_FILE: " " }, folder), refused(/set but empty/));
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

test("secrets are the values of all variables whose names say so, each of a list, but no short words", () => {
  const env = { PARLEY_API_KEY: "first-key, second-key", MY_TOKEN: "a-token-of-mine", A_KEY: "on", KEYBOARD: "qwertz" };
  assert.deepEqual(
    [...new Set(secretsOf(env))],
    ["first-key, second-key", "first-key", "second-key", "a-token-of-mine"],
  );
});

test("a password in a URL of the environment is a secret, as it is written and as it is meant", () => {
  const env = {
    DATABASE_URL: "postgres://app:s3cret%21pass@db.internal:5432/shop?ssl=true",
    HTTPS_PROXY: "http://proxy-user:100%proof@proxy.internal:3128",
    OPENAI_BASE_URL: "https://models.internal:8443/v1?to=a:b@c",
  };
  assert.deepEqual(secretsOf(env), ["s3cret%21pass", "s3cret!pass", "100%proof"]);
});
