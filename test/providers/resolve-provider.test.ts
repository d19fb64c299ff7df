import assert from "node:assert/strict";
import { test } from "node:test";
import { readSettings } from "../../server/config/settings.ts";
import { ConfigError } from "../../server/errors.ts";
import { resolveProvider } from "../../server/providers/index.ts";
import { ask, open } from "../support/upstream-conversation.ts";
import { fixture, startUpstream, type UpstreamReply } from "../support/upstream-server.ts";

const resolve = (model: string, env: Record<string, string | undefined> = {}) =>
  resolveProvider(model, { settings: readSettings(env), modelSettings: {}, loadPackage: (name) => import(name) });

const chat = (): UpstreamReply => ({ body: [fixture("chat-completions/text-and-usage")] });
const responses = (): UpstreamReply => ({ body: [fixture("responses/text")] });

async function refuses(model: string, env: Record<string, string | undefined>, sentence: RegExp) {
  await assert.rejects(
    () => resolve(model, env),
    (error: unknown) => error instanceof ConfigError && sentence.test(error.message),
  );
}

test("openai/NAME and a bare NAME are OpenAI's Responses API", async () => {
  for (const model of ["openai/gpt-5.2", "gpt-5.2", " gpt-5.2 "]) {
    const provider = await resolve(model, { OPENAI_API_KEY: "sk-1" });
    assert.equal(provider.id, "openai");
    assert.equal(provider.stateKind, "previous_response_id");
  }
});

test("litellm, compatible and demo keep a history; demo needs no setting", async () => {
  const env = {
    LITELLM_BASE_URL: "http://127.0.0.1:4000",
    COMPATIBLE_BASE_URL: "http://[::1]:8000/v1",
  };
  for (const model of ["litellm/a/b", "compatible/m", "demo"]) {
    assert.equal((await resolve(model, env)).stateKind, "conversation_history");
  }
});

test("an unknown provider is refused with the list of the known ones", async () => {
  await refuses("acme/x", {}, /"acme\/x".*openai\/NAME, litellm\/NAME,.* compatible\/NAME, demo\./);
  await refuses("constructor/x", {}, /names no known provider/);
  await refuses("openai/", {}, /names no model/);
  await refuses("openai", {}, /names no model. Use openai\/NAME/);
  await refuses("", { OPENAI_API_KEY: "sk" }, /names no known provider/);
});

test("a bare name is OpenAI's only if it looks like one of OpenAI's, and names of elsewhere are led to their provider", async () => {
  const env = { OPENAI_API_KEY: "sk" };
  for (const name of ["gpt-5.2", "o3", "chatgpt-4o-latest", "codex-mini", "ft:gpt-4o:acme"]) {
    assert.equal((await resolve(name, env)).id, "openai");
  }
  await refuses("llama3", env, /"llama3" names no known provider\. Use one of: openai\/NAME/);
  await refuses("claude-sonnet-5", env, /Did you mean "anthropic\/claude-sonnet-5"\?/);
  await refuses("google/gemini-2.5-pro", env, /Did you mean "gemini\/gemini-2\.5-pro"\?/);
});

test("a missing key or base URL names its variable; an empty one is missing", async () => {
  await refuses("gpt-5.2", {}, /OPENAI_API_KEY/);
  await refuses("openai/gpt-5.2", { OPENAI_API_KEY: "  " }, /OPENAI_API_KEY/);
  await refuses("litellm/x", { LITELLM_API_KEY: "sk" }, /LITELLM_BASE_URL/);
  await refuses("compatible/x", {}, /COMPATIBLE_BASE_URL/);
});

test("a base URL that cannot work is refused without being repeated", async () => {
  for (const url of ["localhost:4000", "ftp://x/v1", "http://u:geheim@x/v1", "http://x/v1?a=geheim"]) {
    await refuses("litellm/x", { LITELLM_BASE_URL: url }, /^LITELLM_BASE_URL must(?!.*geheim)/);
  }
  await refuses("openai/x", { OPENAI_API_KEY: "sk", OPENAI_BASE_URL: "nonsense" }, /^OPENAI_BASE_URL/);
});

test("a key that cannot travel in a header is refused without being repeated", async () => {
  await refuses("openai/x", { OPENAI_API_KEY: "sk-1\nsk-2" }, /^OPENAI_API_KEY must(?!.*sk-)/);
  await refuses("openai/x", { OPENAI_API_KEY: "schlüssel" }, /^OPENAI_API_KEY/);
});

test("key and base URL are taken without the white space around them; a slash at the end is fine", async () => {
  await using upstream = await startUpstream(chat());
  const provider = await resolve("litellm/m", {
    LITELLM_BASE_URL: ` ${upstream.url}/\n`,
    LITELLM_API_KEY: " sk-lite ",
  });
  assert.equal((await ask(open(provider))).error, undefined);
  assert.equal(upstream.calls[0]?.path, "/v1/chat/completions");
  assert.equal(upstream.calls[0]?.headers.authorization, "Bearer sk-lite");
});

/** What the `openai` package would read by itself. */
const AMBIENT = {
  OPENAI_API_KEY: "sk-ambient",
  OPENAI_ADMIN_KEY: "sk-admin",
  OPENAI_ORG_ID: "org-ambient",
  OPENAI_PROJECT_ID: "proj-ambient",
  OPENAI_BASE_URL: "http://127.0.0.1:9/v1",
  OPENAI_CUSTOM_HEADERS: "x-ambient: 1\nauthorization: Bearer sk-custom",
  OPENAI_LOG: "debug",
};

async function withAmbient<T>(act: () => Promise<T>): Promise<T> {
  const before = Object.keys(AMBIENT).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, AMBIENT);
  try {
    return await act();
  } finally {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
}

test("without a key no Authorization header is sent, and nothing of OpenAI's goes to another provider", async () => {
  await using upstream = await startUpstream(chat(), chat());
  const env = { LITELLM_BASE_URL: upstream.url, COMPATIBLE_BASE_URL: upstream.url };
  await withAmbient(async () => {
    for (const model of ["litellm/m", "compatible/m"]) {
      assert.equal((await ask(open(await resolve(model, env)))).error, undefined);
    }
  });
  for (const { headers } of upstream.calls) {
    assert.equal(headers.authorization, undefined);
    assert.doesNotMatch(JSON.stringify(headers), /ambient|sk-/);
  }
});

test("OpenAI gets the settings that the project was given, not those of the process", async () => {
  await using upstream = await startUpstream(responses());
  const env = {
    OPENAI_API_KEY: "sk-project",
    OPENAI_BASE_URL: upstream.url,
    OPENAI_ORG_ID: "org-1",
    OPENAI_PROJECT_ID: "proj-1",
  };
  await withAmbient(async () => ask(open(await resolve("gpt-4o", env))));
  const headers = upstream.calls[0]?.headers;
  assert.equal(headers?.authorization, "Bearer sk-project");
  assert.equal(headers?.["openai-organization"], "org-1");
  assert.equal(headers?.["openai-project"], "proj-1");
  assert.equal(headers?.["x-ambient"], undefined);
});
