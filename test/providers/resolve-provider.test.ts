import assert from "node:assert/strict";
import { test } from "node:test";
import { PROVIDER_ROWS, type ProviderId } from "../../server/providers/index.ts";
import type { ModelSettings } from "../../server/providers/provider.ts";
import { setEnvironment } from "../support/at-end.ts";
import { bedrock, stream } from "../support/bedrock.ts";
import { ok, serve, WEATHER } from "../support/chat-servers.ts";
import { refused } from "../support/refused.ts";
import { ask, askOnce, chatProvider, open, responsesProvider } from "../support/upstream-conversation.ts";
import { fixture, jsonReply, startUpstream, type UpstreamReply } from "../support/upstream-server.ts";

const chat = (): UpstreamReply => ({ body: [fixture("chat-completions/text-and-usage")] });
const responses = (): UpstreamReply => ({ body: [fixture("responses/text")] });

test("openai/NAME and a bare NAME are OpenAI's Responses API", async () => {
  for (const model of ["openai/gpt-5.2", "gpt-5.2", " gpt-5.2 "]) {
    const provider = await serve(model, { OPENAI_API_KEY: "sk-1" });
    assert.equal(provider.id, "openai");
    assert.equal(provider.stateKind, "previous_response_id");
  }
});

test("a bare name is OpenAI's only if it looks like one of OpenAI's", async () => {
  for (const name of ["gpt-5.2", "o3", "chatgpt-4o-latest", "codex-mini", "ft:gpt-4o:acme"]) {
    assert.equal((await serve(name, { OPENAI_API_KEY: "sk" })).id, "openai");
  }
});

const KEY = { OPENAI_API_KEY: "sk" };

/** A model with settings of the server, and the error message. */
const WRONG: [model: string, env: Record<string, string>, sentence: RegExp][] = [
  ["acme/x", {}, /"acme\/x".*openai\/NAME, litellm\/NAME,.* compatible\/NAME, demo\./],
  ["constructor/x", {}, /names no known provider/],
  ["openai/", {}, /names no model/],
  ["openai", {}, /names no model. Use openai\/NAME/],
  ["", KEY, /names no known provider/],
  ["llama3", KEY, /"llama3" names no known provider\. Use one of: openai\/NAME/],
  ["claude-sonnet-5", KEY, /Did you mean "anthropic\/claude-sonnet-5"\?/],
  ["google/gemini-2.5-pro", KEY, /Did you mean "gemini\/gemini-2\.5-pro"\?/],
  ["gpt5", KEY, /Did you mean "openai\/gpt-5"\?/],
  ["Demo", KEY, /Did you mean "demo"\?/],
  ["anthropc/claude-sonnet-5", KEY, /Did you mean "anthropic\/claude-sonnet-5"\?/],
  ["gpt-5.2", {}, /OPENAI_API_KEY/],
  ["openai/gpt-5.2", { OPENAI_API_KEY: "  " }, /needs OPENAI_API_KEY: set it/],
  ["anthropic/x", {}, /in the environment or in \.env beside agent\.ts\.$/],
  ["litellm/x", { LITELLM_API_KEY: "sk" }, /LITELLM_BASE_URL/],
  ["compatible/x", {}, /COMPATIBLE_BASE_URL/],
  // An invalid value is not quoted, because it may contain a secret.
  ...["localhost:4000", "ftp://x/v1", "http://u:geheim@x/v1", "http://x/v1?a=geheim"].map(
    (url): (typeof WRONG)[number] => ["litellm/x", { LITELLM_BASE_URL: url }, /^LITELLM_BASE_URL must/],
  ),
  ["openai/x", { ...KEY, OPENAI_BASE_URL: "nonsense" }, /^OPENAI_BASE_URL/],
  ["openai/x", { OPENAI_API_KEY: "sk-1\nsk-2" }, /^OPENAI_API_KEY must/],
  ["openai/x", { OPENAI_API_KEY: "schlüssel" }, /^OPENAI_API_KEY/],
  ["openai/x", { OPENAI_API_KEY: "sk-..." }, /^OPENAI_API_KEY ends with "\.\.\.", as in an example/],
  ["anthropic/x", { ANTHROPIC_API_KEY: "sk-ant-…" }, /^ANTHROPIC_API_KEY ends/],
];

for (const [model, env, sentence] of WRONG) {
  test(`model "${model}" with ${JSON.stringify(env)} stops the start in one sentence`, async () => {
    await assert.rejects(serve(model, env), refused(sentence));
  });
}

test("where a key is missing, a variable that is called almost so is named", async (t) => {
  setEnvironment(t, { OPENAI_KEY: "sk-1", OPENAI_BASE_URL: "http://127.0.0.1:9" });
  await assert.rejects(
    serve("gpt-5.2", {}),
    refused(/set it to .*\. Parley does not read OPENAI_KEY, which is set\.$/),
  );
});

test("key and base URL are taken without the white space around them; a slash at the end is fine", async () => {
  await using upstream = await startUpstream(chat());
  const provider = await serve("litellm/m", {
    LITELLM_BASE_URL: ` ${upstream.url}/\n`,
    LITELLM_API_KEY: " sk-lite ",
  });
  assert.equal((await ask(open(provider))).error, undefined);
  assert.equal(upstream.calls[0]?.path, "/v1/chat/completions");
  assert.equal(upstream.calls[0]?.headers.authorization, "Bearer sk-lite");
});

/** Variables that the `openai` package would read on its own. */
const AMBIENT = {
  OPENAI_API_KEY: "sk-ambient",
  OPENAI_ADMIN_KEY: "sk-admin",
  OPENAI_ORG_ID: "org-ambient",
  OPENAI_PROJECT_ID: "proj-ambient",
  OPENAI_BASE_URL: "http://127.0.0.1:9/v1",
  OPENAI_CUSTOM_HEADERS: "x-ambient: 1\nauthorization: Bearer sk-custom",
  OPENAI_LOG: "debug",
};

test("without a key no Authorization header is sent, and nothing of OpenAI's goes to another provider", async (t) => {
  setEnvironment(t, AMBIENT);
  await using upstream = await startUpstream(chat(), chat());
  const env = { LITELLM_BASE_URL: upstream.url, COMPATIBLE_BASE_URL: upstream.url };
  for (const model of ["litellm/m", "compatible/m"]) {
    assert.equal((await ask(open(await serve(model, env)))).error, undefined);
  }
  for (const { headers } of upstream.calls) {
    assert.equal(headers.authorization, undefined);
    assert.doesNotMatch(JSON.stringify(headers), /ambient|sk-/);
  }
});

test("OpenAI gets the settings that the project was given, not those of the process", async (t) => {
  setEnvironment(t, AMBIENT);
  await using upstream = await startUpstream(responses());
  const env = {
    OPENAI_API_KEY: "sk-project",
    OPENAI_BASE_URL: upstream.url,
    OPENAI_ORG_ID: "org-1",
    OPENAI_PROJECT_ID: "proj-1",
  };
  await ask(open(await serve("gpt-4o", env)));
  const headers = upstream.calls[0]?.headers;
  assert.equal(headers?.authorization, "Bearer sk-project");
  assert.equal(headers?.["openai-organization"], "org-1");
  assert.equal(headers?.["openai-project"], "proj-1");
  assert.equal(headers?.["x-ambient"], undefined);
});

/** The environment that each provider needs; no test here sends a request. */
const ENV = {
  OPENAI_API_KEY: "sk-test",
  LITELLM_BASE_URL: "http://127.0.0.1:9",
  COMPATIBLE_BASE_URL: "http://127.0.0.1:9/v1",
  ANTHROPIC_API_KEY: "sk-test",
  GEMINI_API_KEY: "test",
  AWS_REGION: "eu-central-1",
  AWS_BEARER_TOKEN_BEDROCK: "test",
  GOOGLE_CLOUD_PROJECT: "project",
  GOOGLE_CLOUD_LOCATION: "europe-west1",
  VERTEX_ACCESS_TOKEN: "test",
};

const MODELS: Record<ProviderId, string> = {
  openai: "openai/gpt-5.2",
  litellm: "litellm/team/model",
  anthropic: "anthropic/claude-sonnet-4-5",
  gemini: "gemini/gemini-2.5-flash",
  vertex: "vertex/gemini-2.5-flash",
  ollama: "ollama/llama3.2-vision",
  bedrock: "bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
  compatible: "compatible/model",
  demo: "demo",
};
const IDS = Object.keys(MODELS) as ProviderId[];

const resolveFor = (id: ProviderId, modelSettings: ModelSettings = {}) => serve(MODELS[id], ENV, modelSettings);

for (const id of IDS) {
  test(`${id} takes the media types of the table, and keeps a history unless it is OpenAI`, async () => {
    const provider = await resolveFor(id);
    assert.equal(provider.id, id);
    assert.equal(provider.stateKind, id === "openai" ? "previous_response_id" : "conversation_history");
    assert.deepEqual(provider.mediaTypes, PROVIDER_ROWS[id].mediaTypes);
  });
}

test("PDFs are taken by all providers but Ollama, and GIFs by all but Ollama and Google's", () => {
  const without = (type: "application/pdf" | "image/gif") =>
    IDS.filter((id) => !PROVIDER_ROWS[id].mediaTypes.includes(type));
  assert.deepEqual(without("application/pdf"), ["ollama"]);
  assert.deepEqual(without("image/gif"), ["gemini", "vertex", "ollama"]);
});

/** One value of each setting, and the providers that accept it. */
const CHOICES: { settings: ModelSettings; takenBy: readonly ProviderId[] }[] = [
  { settings: { reasoningEffort: "low" }, takenBy: IDS.filter((id) => id !== "demo") },
  { settings: { temperature: 1 }, takenBy: IDS.filter((id) => id !== "demo") },
  { settings: { maxOutputTokens: 20_000 }, takenBy: IDS.filter((id) => id !== "demo") },
  { settings: { extraBody: { user: "u" } }, takenBy: IDS.filter((id) => id !== "demo") },
  { settings: { store: false }, takenBy: ["openai"] },
  { settings: { store: true }, takenBy: ["openai"] },
  { settings: { hostedTools: [{ type: "web_search" }] }, takenBy: ["openai"] },
];

for (const { settings, takenBy } of CHOICES) {
  const [name = ""] = Object.keys(settings);
  test(`${JSON.stringify(settings)} starts only where it does something`, async () => {
    for (const id of IDS) {
      if (takenBy.includes(id)) {
        await resolveFor(id, settings);
        continue;
      }
      await assert.rejects(resolveFor(id, settings), {
        name: "ConfigError",
        message: `${name} has no effect on ${id} models. Remove it, or use a model of ${takenBy.join(" or ")}.`,
      });
    }
  });
}

test("extraBody cannot set store behind the back of the state", async () => {
  await assert.rejects(resolveFor("openai", { extraBody: { store: false } }), refused(/^extraBody\.store/));
});

const ALL = {
  reasoningEffort: "low",
  temperature: 0.5,
  maxOutputTokens: 300,
  extraBody: { service_tier: "flex" },
} as const;

test("an agent's model settings go to the Responses API under its own names", async () => {
  await using upstream = await startUpstream({ body: [fixture("responses/text")] });
  const model = "gpt-5.2";
  await ask(open(responsesProvider(upstream, { model, settings: ALL })));
  const { reasoning, temperature, max_output_tokens, service_tier, stream } = upstream.calls[0]?.json ?? {};
  assert.deepEqual(
    { reasoning, temperature, max_output_tokens, service_tier, stream },
    {
      reasoning: { summary: "auto", effort: "low" },
      temperature: 0.5,
      max_output_tokens: 300,
      service_tier: "flex",
      stream: true,
    },
  );
});

test("a model that refuses reasoning summaries is still told the effort that the agent asks for", async () => {
  const refusal = { error: { message: "Unsupported parameter", param: "reasoning.summary" } };
  await using upstream = await startUpstream(jsonReply(400, refusal), { body: [fixture("responses/text")] });
  const settings = { reasoningEffort: "high" } as const;
  const { error } = await ask(open(responsesProvider(upstream, { model: "gpt-5.2", settings })));
  assert.equal(error, undefined);
  assert.deepEqual(upstream.calls[1]?.json.reasoning, { effort: "high" });
});

test("an agent's model settings go to Chat Completions under its own names", async () => {
  const { calls } = await askOnce((upstream) => chatProvider(upstream, { settings: ALL }), {
    body: [fixture("chat-completions/text-and-usage")],
  });
  const { reasoning_effort, temperature, max_tokens, service_tier, stream } = calls[0]?.json ?? {};
  assert.deepEqual(
    { reasoning_effort, temperature, max_tokens, service_tier, stream },
    { reasoning_effort: "low", temperature: 0.5, max_tokens: 300, service_tier: "flex", stream: true },
  );
});

// `extraBody`: fields that an author may add to requests, and those that prevent the start.

const SEARCH = { type: "provider_search" };
const names = (tools: { name?: string; function?: { name: string }; type?: string }[]) =>
  tools.map(({ name, function: fn, type }) => name ?? fn?.name ?? type);

for (const [model, env, reply] of [
  ["openai/gpt-5.2", "OPENAI", { body: [fixture("responses/text")] }],
  ["litellm/m", "LITELLM", ok()],
  ["gemini/gemini-3-flash", "GEMINI", ok()],
  ["anthropic/claude-sonnet-5", "ANTHROPIC", { body: [fixture("anthropic/text")] }],
] as const) {
  const served = (url: string, settings: ModelSettings) =>
    serve(model, { [`${env}_BASE_URL`]: url, [`${env}_API_KEY`]: "k" }, settings);

  test(`${model}: tools of extraBody stand beside the agent's`, async () => {
    await using upstream = await startUpstream(reply);
    const provider = await served(upstream.url, { extraBody: { tools: [SEARCH] } });
    await ask(open(provider, { tools: [WEATHER] }));
    assert.deepEqual(names(upstream.calls[0]?.json.tools), ["get_weather", "provider_search"]);
  });

  test(`${model}: tools of extraBody are the only ones of an agent without tools`, async () => {
    await using upstream = await startUpstream(reply);
    await ask(open(await served(upstream.url, { extraBody: { tools: [SEARCH] } })));
    assert.deepEqual(upstream.calls[0]?.json.tools, [SEARCH]);
  });
}

async function sentTo(model: string, env: string, body: string, settings: ModelSettings) {
  await using upstream = await startUpstream({ body: [body] });
  const address = { [`${env}_BASE_URL`]: upstream.url, [`${env}_API_KEY`]: "k" };
  await ask(open(await serve(model, address, settings)));
  return upstream.calls[0]?.json;
}

test("OpenAI: what extraBody wants included is added, and its reasoning keeps the effort and the summary", async () => {
  const sent = await sentTo("openai/gpt-5.2", "OPENAI", fixture("responses/text"), {
    reasoningEffort: "high",
    store: false,
    hostedTools: [{ type: "web_search" }],
    extraBody: { include: ["message.output_text.logprobs"], reasoning: { summary: "detailed" } },
  });
  assert.deepEqual(sent.include, [
    "web_search_call.action.sources",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
  ]);
  assert.deepEqual(sent.reasoning, { summary: "detailed", effort: "high" });
});

test("Claude: a format in extraBody stands beside the effort, at Anthropic and on Bedrock", async () => {
  const format = { type: "json_schema", schema: {} };
  const settings = { reasoningEffort: "low", extraBody: { output_config: { format } } } as const;
  const body = fixture("anthropic/text");
  const sent = await sentTo("anthropic/claude-sonnet-5", "ANTHROPIC", body, settings);
  assert.deepEqual(sent.output_config, { effort: "low", format });
  await using upstream = await startUpstream(stream("text"));
  const model = "anthropic.claude-sonnet-5-v1:0";
  await ask(open(await bedrock(upstream, { model, settings })));
  const fields = upstream.calls[0]?.json.additionalModelRequestFields;
  assert.deepEqual(fields.output_config, { effort: "low", format });
});

for (const [field, sentence] of [
  ["model", "set model of the agent instead"],
  ["system", "set instructions of the agent instead"],
  ["instructions", "set instructions of the agent instead"],
  ["messages", "the messages are those of the conversation"],
  ["input", "the input is that of the conversation"],
  ["previous_response_id", "it is the state of the conversation"],
  ["conversation", "it would keep a state beside that of the conversation"],
  ["stream", "answers are always streamed"],
  ["n", "a message has one answer"],
] as const) {
  test(`extraBody.${field} stops the start`, async () => {
    const env = { COMPATIBLE_BASE_URL: "http://127.0.0.1:9/v1" };
    await assert.rejects(serve("compatible/m", env, { extraBody: { [field]: true } }), {
      name: "ConfigError",
      message: `extraBody.${field} cannot be set: ${sentence}.`,
    });
  });
}
