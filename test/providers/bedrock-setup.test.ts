import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { join } from "node:path";
import { before, mock, test } from "node:test";
import type { ModelSettings } from "../../server/providers/provider.ts";
import { bedrock, CLAUDE, stream } from "../support/bedrock.ts";
import { serve } from "../support/chat-servers.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { ask, askOnce, open } from "../support/upstream-conversation.ts";
import { startUpstream, type UpstreamCall } from "../support/upstream-server.ts";

/** All output since the start of this file: the package warns once per process, with its first client. */
const printed: unknown[] = [];

before(() => {
  process.on("warning", (warning) => printed.push(warning));
  for (const name of ["debug", "error", "info", "log", "warn"] as const) {
    mock.method(console, name, (...words: unknown[]) => printed.push(...words));
  }
  // Excludes the machine's own AWS settings.
  for (const name of Object.keys(process.env)) if (name.startsWith("AWS_")) delete process.env[name];
  process.env.AWS_CONFIG_FILE = "/dev/null";
  process.env.AWS_SHARED_CREDENTIALS_FILE = "/dev/null";
  process.env.AWS_EC2_METADATA_DISABLED = "true";
});

interface Given {
  env?: Record<string, string>;
  model?: string;
  settings?: ModelSettings;
}

async function refuses(sentence: RegExp, { env = {}, model = CLAUDE, settings = {} }: Given) {
  await assert.rejects(serve(`bedrock/${model}`, env, settings), { name: "ConfigError", message: sentence });
}

const TOKEN = { AWS_REGION: "us-east-1", AWS_BEARER_TOKEN_BEDROCK: "key" };

test("a missing region, missing credentials and a wrong base URL each name their variable", async () => {
  await refuses(/AWS_REGION/, { env: { AWS_BEARER_TOKEN_BEDROCK: "key" } });
  await refuses(/AWS_BEARER_TOKEN_BEDROCK.*AWS_ACCESS_KEY_ID.*AWS_PROFILE/, { env: { AWS_REGION: "us-east-1" } });
  await refuses(/AWS_BEARER_TOKEN_BEDROCK must be one line/, {
    env: { AWS_REGION: "us-east-1", AWS_BEARER_TOKEN_BEDROCK: "a b" },
  });
  await refuses(/BEDROCK_BASE_URL must be/, { env: { ...TOKEN, BEDROCK_BASE_URL: "x" } });
});

test("without a base URL the region's own address is asked", async () => {
  const provider = await serve("bedrock/amazon.nova-pro-v1:0", { ...TOKEN, AWS_REGION: "eu-central-1" });
  // Records the first request and aborts it before it is sent.
  const abort = new AbortController();
  const asked: string[] = [];
  const onRequest = (message: unknown) => {
    const { request } = message as { request: { origin: string; path: string } };
    asked.push(`${request.origin}${request.path}`);
    abort.abort();
  };
  subscribe("undici:request:create", onRequest);
  await ask(open(provider), abort.signal);
  unsubscribe("undici:request:create", onRequest);
  const path = "/model/amazon.nova-pro-v1%3A0/converse-stream";
  assert.deepEqual(asked, [`https://bedrock-runtime.eu-central-1.amazonaws.com${path}`]);
});

test("with access keys a request is signed for exactly what goes over the line", async () => {
  await using upstream = await startUpstream(stream("text"));
  const env = {
    AWS_BEARER_TOKEN_BEDROCK: "",
    AWS_ACCESS_KEY_ID: "AKIDEXAMPLE",
    AWS_SECRET_ACCESS_KEY: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    AWS_SESSION_TOKEN: "session",
  };
  const { error } = await ask(open(await bedrock(upstream, { env })));
  assert.equal(error, undefined);
  const [call] = upstream.calls;
  assert.ok(call);
  assert.equal(call.headers["x-amz-security-token"], "session");
  assert.equal(call.headers.authorization, signature(call, env.AWS_SECRET_ACCESS_KEY));
});

/** Signature Version 4, by https://docs.aws.amazon.com/IAM/latest/UserGuide/create-signed-request.html */
function signature({ method, path, headers, body }: UpstreamCall, secret: string): string {
  const given = headers.authorization ?? "";
  const names = /SignedHeaders=([^,]+)/.exec(given)?.[1] ?? "";
  assert.match(names, /(?:^|;)host(?:;|$)/);
  const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
  const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();
  const canonicalPath = path.split("/").map(encodeURIComponent).join("/");
  const lines = names.split(";").map((name) => `${name}:${headers[name]}\n`);
  const request = [method, canonicalPath, "", lines.join(""), names, sha256(body)].join("\n");
  const time = String(headers["x-amz-date"]);
  const scope = `${time.slice(0, 8)}/us-east-1/bedrock/aws4_request`;
  const key = scope.split("/").reduce<string | Buffer>(hmac, `AWS4${secret}`);
  const toSign = ["AWS4-HMAC-SHA256", time, scope, sha256(request)].join("\n");
  const signed = hmac(key, toSign).toString("hex");
  return `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/${scope}, SignedHeaders=${names}, Signature=${signed}`;
}

test("AWS_PROFILE may name a role: its credentials come from AWS's own service, and sign the request", async (t) => {
  const xml = `<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIAROLE</AccessKeyId>
    <SecretAccessKey>secret of the role</SecretAccessKey><SessionToken>of the role</SessionToken>
    <Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`;
  await using upstream = await startUpstream({ headers: { "content-type": "text/xml" }, body: [xml] }, stream("text"));
  const folder = temporaryProject(t, {
    config: [
      "[profile team]",
      "role_arn = arn:aws:iam::1:role/team",
      "source_profile = base",
      "region = eu-west-1",
      "[profile base]",
      "aws_access_key_id = AKIABASE",
      "aws_secret_access_key = base",
    ].join("\n"),
  });
  Object.assign(process.env, { AWS_CONFIG_FILE: join(folder, "config"), AWS_ENDPOINT_URL_STS: upstream.url });
  t.after(() => {
    process.env.AWS_CONFIG_FILE = "/dev/null";
    delete process.env.AWS_ENDPOINT_URL_STS;
  });
  const env = { AWS_BEARER_TOKEN_BEDROCK: "", AWS_REGION: "", AWS_PROFILE: "team" };
  assert.equal((await ask(open(await bedrock(upstream, { env })))).error, undefined);
  const [assumed, asked] = upstream.calls;
  assert.match(assumed?.body ?? "", /Action=AssumeRole/);
  assert.match(assumed?.headers.authorization ?? "", /AKIABASE/);
  assert.match(asked?.headers.authorization ?? "", /Credential=ASIAROLE\/\d+\/eu-west-1\/bedrock/);
  assert.equal(asked?.headers["x-amz-security-token"], "of the role");
});

/** The part of the request that depends on settings. */
async function sent(model: string, settings: ModelSettings) {
  const { error, calls } = await askOnce((upstream) => bedrock(upstream, { model, settings }), stream("text"), {
    instructions: "",
  });
  assert.equal(error, undefined);
  const { messages: _messages, ...rest } = calls[0]?.json ?? {};
  return rest;
}

test("temperature and maxOutputTokens are the API's own", async () => {
  assert.deepEqual(await sent(CLAUDE, { temperature: 0.5, maxOutputTokens: 300 }), {
    inferenceConfig: { maxTokens: 300, temperature: 0.5 },
  });
});

test("extraBody sets fields of Converse where it has them, and the model's own otherwise", async () => {
  const guardrailConfig = { guardrailIdentifier: "g", guardrailVersion: "1" };
  const extraBody = {
    guardrailConfig,
    inferenceConfig: { topP: 0.9 },
    anthropic_beta: ["x"],
    thinking: { type: "enabled", budget_tokens: 9000 },
    additionalModelRequestFields: { top_k: 5 },
  };
  assert.deepEqual(await sent(CLAUDE, { reasoningEffort: "low", maxOutputTokens: 4096, extraBody }), {
    guardrailConfig,
    inferenceConfig: { maxTokens: 4096, topP: 0.9 },
    additionalModelRequestFields: {
      thinking: { type: "enabled", budget_tokens: 9000 },
      anthropic_beta: ["x"],
      top_k: 5,
    },
  });
});

const VISIBLE = { type: "adaptive", display: "summarized" };
for (const [model, reasoningEffort, fields] of [
  [CLAUDE, undefined, undefined],
  [CLAUDE, "none", undefined],
  [CLAUDE, "minimal", { thinking: { type: "enabled", budget_tokens: 1024 } }],
  [CLAUDE, "high", { thinking: { type: "enabled", budget_tokens: 8192 } }],
  ["anthropic.claude-3-7-sonnet-20250219-v1:0", "low", { thinking: { type: "enabled", budget_tokens: 2048 } }],
  ["anthropic.claude-opus-4-20250514-v1:0", "xhigh", { thinking: { type: "enabled", budget_tokens: 16_384 } }],
  [
    "us.anthropic.claude-opus-4-6-v1",
    "medium",
    { thinking: { type: "adaptive" }, output_config: { effort: "medium" } },
  ],
  // Versions are two numbers: 4.10 is newer than 4.9.
  ["anthropic.claude-opus-4-10-v1", "high", { thinking: VISIBLE, output_config: { effort: "high" } }],
  ["anthropic.claude-opus-4-7", "xhigh", { thinking: VISIBLE, output_config: { effort: "xhigh" } }],
  [
    "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-sonnet-5",
    "minimal",
    { thinking: VISIBLE, output_config: { effort: "low" } },
  ],
  ["anthropic.claude-opus-5", undefined, { thinking: VISIBLE }],
  ["anthropic.claude-opus-5", "none", { thinking: { type: "disabled" } }],
  ["anthropic.claude-sonnet-5-5", "none", { thinking: { type: "between_tools" } }],
  ["us.amazon.nova-2-lite-v1:0", "low", { reasoningConfig: { type: "enabled", maxReasoningEffort: "low" } }],
  ["us.amazon.nova-2-lite-v1:0", "none", { reasoningConfig: { type: "disabled" } }],
  ["openai.gpt-oss-120b-1:0", "xhigh", { reasoning_effort: "high" }],
] as const) {
  test(`${model} is told the effort ${reasoningEffort ?? "of its own"}`, async () => {
    const settings = reasoningEffort === undefined ? {} : { reasoningEffort };
    const { additionalModelRequestFields } = await sent(model, settings);
    assert.deepEqual(additionalModelRequestFields, fields);
  });
}

test("a budget leaves room for the answer within maxOutputTokens, and sets it where nobody did", async () => {
  const narrow = await sent(CLAUDE, { reasoningEffort: "high", maxOutputTokens: 2000 });
  assert.equal(narrow.additionalModelRequestFields.thinking.budget_tokens, 1500);
  const wide = await sent(CLAUDE, { reasoningEffort: "high" });
  assert.deepEqual(wide.inferenceConfig, { maxTokens: 32_000 });
});

for (const [model, settings, sentence] of [
  ["anthropic.claude-3-haiku-20240307-v1:0", { reasoningEffort: "low" }, /cannot think/],
  ["amazon.nova-pro-v1:0", { reasoningEffort: "low" }, /cannot think/],
  ["meta.llama3-3-70b-instruct-v1:0", { reasoningEffort: "low" }, /no known form.*extraBody/],
  ["us.anthropic.claude-opus-4-6-v1", { reasoningEffort: "xhigh" }, /takes no reasoningEffort "xhigh"/],
  ["anthropic.claude-fable-5", { reasoningEffort: "none" }, /always thinks.*"low"/],
  ["openai.gpt-oss-20b-1:0", { reasoningEffort: "none" }, /always thinks.*"low"/],
  [CLAUDE, { reasoningEffort: "low", temperature: 0.2 }, /takes no temperature while it thinks/],
  [CLAUDE, { reasoningEffort: "low", maxOutputTokens: 1024 }, /maxOutputTokens must be above 1024/],
  [CLAUDE, { temperature: 1.5 }, /temperature must be a number from 0 to 1/],
  ["anthropic.claude-opus-5", { temperature: 0.2 }, /takes no temperature/],
  [CLAUDE, { extraBody: { inferenceConfig: 1 } }, /extraBody.inferenceConfig must be an object/],
  ["us.amazon.nova-2-lite-v1:0", { reasoningEffort: "high", maxOutputTokens: 9 }, /takes no maxOutputTokens/],
] as const) {
  test(`${model} with ${JSON.stringify(settings)} stops the start with a sentence`, () =>
    refuses(sentence, { env: TOKEN, model, settings }));
}

test("nothing was printed while models of Bedrock were set up and asked, and no variable was left behind", async () => {
  const { error } = await askOnce(bedrock, stream("text"));
  assert.equal(error, undefined);
  assert.deepEqual(printed, []);
  assert.ok(!("AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED" in process.env));
});
