/** Google's OpenAI-compatible API: requests, and events from its streams. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { z } from "zod";
import { readSettings } from "../../server/config/settings.ts";
import type { HistoryMessage } from "../../server/protocol/chat.ts";
import { geminiSchema } from "../../server/providers/gemini/schema.ts";
import { vertexEndpoint } from "../../server/providers/gemini/vertex.ts";
import { FOREIGN_HISTORY, historyOf, ok, runTools, serve, stream, WEATHER } from "../support/chat-servers.ts";
import { fieldOf } from "../support/chat-transports.ts";
import { IMAGE_AND_PDF } from "../support/files.ts";
import { listen } from "../support/listen.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { ask, askOnce, failureOf, open, said } from "../support/upstream-conversation.ts";
import { jsonReply, startUpstream, type UpstreamServer } from "../support/upstream-server.ts";

const gemini = (upstream: UpstreamServer, settings = {}, model = "gemini-3-flash-preview") =>
  serve(`gemini/${model}`, { GEMINI_API_KEY: "AIza-test", GEMINI_BASE_URL: upstream.url }, settings);

const SIGNED = { extra_content: { google: { thought_signature: "CsQBsig" } } };
const THOUGHTS = { google: { thinking_config: { include_thoughts: true } } };

test("gemini: the request asks for thoughts, carries the key, and names the model as it is", async () => {
  const { calls } = await askOnce(
    (upstream) => gemini(upstream, { temperature: 0.5, maxOutputTokens: 300 }),
    stream("gemini/text"),
    { tools: [WEATHER] },
  );
  const [call] = calls;
  assert.equal(call?.path, "/v1/chat/completions");
  assert.equal(call?.headers.authorization, "Bearer AIza-test");
  assert.deepEqual(call?.json, {
    model: "gemini-3-flash-preview",
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi" },
    ],
    tools: [{ type: "function", function: WEATHER }],
    temperature: 0.5,
    max_tokens: 300,
    extra_body: THOUGHTS,
    stream: true,
    stream_options: { include_usage: true },
  });
});

test("gemini: thoughts in tags are thinking, the tags go, and a tag that the answer is about stays", async () => {
  await using upstream = await startUpstream(stream("gemini/thoughts-in-tags"), ok());
  const conversation = open(await gemini(upstream));
  const turn = await ask(conversation);
  assert.equal(said(turn, "thinking"), "**Comparing numbers**\n9.8 < 9.11? No.");
  assert.equal(said(turn), "9.8 is larger. <thought> is a tag.");
  const state = conversation.state();
  await ask(open(await gemini(upstream), { state }));
  // The signature is sent back; the flag would turn the answer into thinking.
  assert.deepEqual(upstream.calls[1]?.json.messages[2], {
    extra_content: { google: { thought_signature: "CtYBtextsig" } },
    role: "assistant",
    content: "9.8 is larger. <thought> is a tag.",
  });
});

test("gemini: thoughts that are only flagged are thinking, too", async () => {
  const turn = await askOnce(gemini, stream("gemini/thoughts-flagged"));
  assert.equal(said(turn, "thinking"), "Let me compare.");
  assert.equal(said(turn), "9.8");
});

test("gemini: one tool with a thought: the signature goes back with the call, the thought does not", async () => {
  await using upstream = await startUpstream(stream("gemini/thought-and-call"), ok());
  const [first, second] = await runTools(open(await gemini(upstream), { tools: [WEATHER] }));
  assert.deepEqual(first.events, [
    { type: "thinking", delta: "I need the weather." },
    { type: "call", call: { id: "jm4owj31", name: "get_weather", arguments: '{"city":"Lima"}' } },
    { type: "end", finish: "stop", usage: { input_tokens: 50, output_tokens: 20 } },
  ]);
  assert.equal(said(second), "ok");
  assert.deepEqual(upstream.calls[1]?.json.messages.slice(2), [
    {
      role: "assistant",
      content: null,
      tool_calls: [
        {
          ...SIGNED,
          id: "jm4owj31",
          type: "function",
          function: { name: "get_weather", arguments: '{"city":"Lima"}' },
        },
      ],
    },
    { role: "tool", tool_call_id: "jm4owj31", content: "mild" },
  ]);
});

test("gemini: parallel calls come one per chunk without an index; only the first is signed, and stays so", async () => {
  await using upstream = await startUpstream(stream("gemini/parallel-calls"), ok());
  const [first] = await runTools(open(await gemini(upstream), { tools: [WEATHER] }));
  const calls = first.events.flatMap((event) => (event.type === "call" ? [event.call] : []));
  assert.deepEqual(fieldOf(calls, "arguments"), ['{"city":"Lima"}', '{"city":"Oslo"}']);
  const [one, two] = upstream.calls[1]?.json.messages[2].tool_calls ?? [];
  assert.deepEqual(one.extra_content, SIGNED.extra_content);
  assert.equal("extra_content" in two, false);
});

test("gemini: an image and a PDF both travel as image_url with a data URL", async () => {
  const { calls } = await askOnce(gemini, ok(), { attachments: IMAGE_AND_PDF });
  assert.deepEqual(calls[0]?.json.messages[1].content, [
    { type: "text", text: "Hi" },
    { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0=" } },
    { type: "image_url", image_url: { url: "data:application/pdf;base64,JVBERi0=" } },
  ]);
});

for (const [model, effort, config] of [
  ["gemini-3-flash-preview", "minimal", { thinking_level: "minimal" }],
  ["gemini-3.1-pro-preview", "xhigh", { thinking_level: "high" }],
  ["gemini-flash-latest", "low", { thinking_level: "low" }],
  ["gemini-2.5-pro", "low", { thinking_budget: 1024 }],
  ["gemini-2.5-flash", "medium", { thinking_budget: 8192 }],
  ["gemini-2.5-flash", "high", { thinking_budget: 24_576 }],
] as const) {
  test(`gemini: effort ${effort} of ${model} is told inside thinking_config, never beside it`, async () => {
    const { calls } = await askOnce((upstream) => gemini(upstream, { reasoningEffort: effort }, model), ok());
    const { extra_body, reasoning_effort } = calls[0]?.json ?? {};
    const thinking_config = { ...config, include_thoughts: true };
    assert.deepEqual(extra_body, { google: { thinking_config } });
    assert.equal(reasoning_effort, undefined);
  });
}

test("gemini: effort none and an effort in extraBody go as reasoning_effort, and no thoughts are asked for", async () => {
  await using upstream = await startUpstream(ok(), ok());
  await ask(open(await gemini(upstream, { reasoningEffort: "none" })));
  await ask(open(await gemini(upstream, { extraBody: { reasoning_effort: "low", seed: 1 } })));
  const bodies = upstream.calls.map(({ json }) => [json.reasoning_effort, json.extra_body, json.seed]);
  assert.deepEqual(bodies, [
    ["none", undefined, undefined],
    ["low", undefined, 1],
  ]);
});

test("gemini: an author's Google settings stand beside ours, and an own thinking_config replaces it", async () => {
  await using upstream = await startUpstream(ok(), ok());
  const google = (fields: object) => ({ extraBody: { extra_body: { google: fields } } });
  await ask(open(await gemini(upstream, google({ cached_content: "c" }))));
  const own = { thinking_config: { thinking_budget: 0 } };
  await ask(open(await gemini(upstream, { ...google(own), reasoningEffort: "low" })));
  assert.deepEqual(
    upstream.calls.map(({ json }) => json.extra_body.google),
    [{ ...THOUGHTS.google, cached_content: "c" }, own],
  );
  assert.equal("reasoning_effort" in (upstream.calls[1]?.json ?? {}), false);
});

const THOUGHTS_REFUSED = [
  ["gemma-3-27b-it", "Thinking is not enabled for models/gemma-3-27b-it"],
  [
    "gemini-3-flash-preview",
    `Invalid JSON payload received. Unknown name "thinking_level" at 'extra_body.google.thinking_config': Cannot find field.`,
  ],
] as const;

for (const [model, message] of THOUGHTS_REFUSED) {
  test(`gemini: ${model}, which refuses its thinking_config, is asked again without, and from then on`, async () => {
    const refusal = jsonReply(400, [{ error: { code: 400, message, status: "INVALID_ARGUMENT" } }]);
    await using upstream = await startUpstream(refusal, ok(), ok());
    const provider = await gemini(upstream, { reasoningEffort: "low" }, model);
    assert.equal(said(await ask(open(provider))), "ok");
    assert.equal(said(await ask(open(provider))), "ok");
    const sent = upstream.calls.map(({ json }) => ["extra_body" in json, json.reasoning_effort]);
    assert.deepEqual(sent, [
      [true, undefined],
      [false, "low"],
      [false, "low"],
    ]);
  });
}

// Another model's history, in the form that Google accepts.

for (const [model, extra] of [
  ["gemini-3-flash-preview", { extra_content: { google: { thought_signature: "skip_thought_signature_validator" } } }],
  ["gemini-2.5-flash", {}],
] as const) {
  test(`gemini: another model's history is sent to ${model} without what Google refuses`, async () => {
    await using upstream = await startUpstream(ok());
    const state = { conversation_history: FOREIGN_HISTORY };
    await ask(open(await gemini(upstream, {}, model), { state, instructions: "" }));
    const note = "[an image (GIF) was attached here, which this model cannot read]";
    assert.deepEqual(upstream.calls[0]?.json.messages, [
      {
        role: "user",
        content: [
          { type: "text", text: "Weather here?" },
          { type: "text", text: note },
          { type: "image_url", image_url: { url: "data:application/pdf;base64,JVBERi0=" } },
        ],
      },
      {
        role: "assistant",
        content: null,
        tool_calls: [
          {
            ...extra,
            id: "toolu_01",
            type: "function",
            function: { name: "get_weather", arguments: '{"city":"Lima"}' },
          },
        ],
      },
      { role: "tool", tool_call_id: "toolu_01", content: "mild" },
      { role: "assistant", content: "Mild." },
      { role: "user", content: "Hi" },
    ]);
  });
}

test("gemini: of another model's parallel calls, the first alone carries the stand-in for a signature", async () => {
  const call = (id: string) => ({
    id,
    type: "function" as const,
    function: { name: "get_weather", arguments: "{}" },
  });
  const conversation_history: HistoryMessage[] = [
    { role: "user", content: "Weather?" },
    { role: "assistant", content: null, tool_calls: [call("a"), call("b")] },
    { role: "tool", tool_call_id: "a", content: "mild" },
    { role: "tool", tool_call_id: "b", content: "cold" },
  ];
  await using upstream = await startUpstream(ok());
  const state = { conversation_history };
  await ask(open(await gemini(upstream, {}, "gemini-3-flash-preview"), { state }));
  const calls: object[] = upstream.calls[0]?.json.messages[2].tool_calls;
  assert.deepEqual(
    calls.map((sent) => "extra_content" in sent),
    [true, false],
  );
});

test("what OpenAPI's schema does not have is left out, and what it has stays", () => {
  const schema = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: {
      count: { type: "integer", minimum: 0, exclusiveMaximum: 10, default: 3 },
      when: { type: "string", format: "date-time", description: "A time." },
      site: { type: "string", format: "uri", minLength: 1, pattern: "^https:" },
      tags: { type: "array", items: { type: "string", contentEncoding: "x" }, uniqueItems: true },
    },
    required: ["count"],
    additionalProperties: false,
  };
  assert.deepEqual(geminiSchema(schema), {
    type: "object",
    properties: {
      count: { type: "integer", minimum: 0 },
      when: { type: "string", format: "date-time", description: "A time." },
      site: { type: "string", minLength: 1, pattern: "^https:" },
      tags: { type: "array", items: { type: "string" } },
    },
    required: ["count"],
  });
});

test("a property that is named like a keyword is kept", () => {
  const schema = { type: "object", properties: { default: { type: "string" }, $ref: { type: "null" } } };
  assert.deepEqual(Object.keys(geminiSchema(schema).properties as object), ["default", "$ref"]);
});

test("a constant is a choice of one, and choices of other types are told in words", () => {
  assert.deepEqual(geminiSchema({ const: "a" }), { type: "string", enum: ["a"] });
  assert.deepEqual(geminiSchema({ type: "integer", enum: [1, 2], description: "Size." }), {
    type: "integer",
    description: "Size. One of: 1, 2.",
  });
});

test("null among the types or the alternatives makes it nullable", () => {
  const nullable = { type: "string", nullable: true };
  assert.deepEqual(geminiSchema({ type: ["string", "null"] }), nullable);
  assert.deepEqual(geminiSchema({ anyOf: [{ type: "string" }, { type: "null" }] }), nullable);
  assert.deepEqual(geminiSchema({ oneOf: [{ type: "string" }, { type: "number" }] }), {
    anyOf: [{ type: "string" }, { type: "number" }],
  });
});

test("a definition is put where it is referred to, and cut off within itself", () => {
  const schema = {
    type: "object",
    properties: { tree: { $ref: "#/$defs/node", description: "A tree." } },
    $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } } },
  };
  assert.deepEqual(geminiSchema(schema), {
    type: "object",
    properties: { tree: { type: "object", description: "A tree.", properties: { next: { type: "object" } } } },
  });
});

test("what zod writes for common parameters comes out whole", () => {
  const parameters = z.object({
    city: z.string().describe("Where."),
    days: z.int().positive().max(14).default(1),
    unit: z.enum(["C", "F"]).nullable(),
  });
  assert.deepEqual(geminiSchema(z.toJSONSchema(parameters)), {
    type: "object",
    properties: {
      city: { type: "string", description: "Where." },
      days: { type: "integer", maximum: 14 },
      unit: { type: "string", enum: ["C", "F"], nullable: true },
    },
    required: ["city", "days", "unit"],
  });
});

test("an array without one schema for its elements gets one: Google refuses it otherwise", () => {
  const [integer, text] = [{ type: "integer" }, { type: "string" }];
  for (const [schema, items] of [
    [{ type: "array" }, {}],
    [{ type: "array", items: true }, {}],
    [z.toJSONSchema(z.tuple([z.string(), z.string()])), text],
    [{ type: "array", prefixItems: [integer, text, integer] }, { anyOf: [integer, text] }],
    [
      { type: "array", items: [text, { type: "null" }] },
      { ...text, nullable: true },
    ],
  ] as const) {
    assert.deepEqual(geminiSchema(schema as Record<string, unknown>).items, items);
  }
});

test("what must hold all at once is one schema", () => {
  const schema = {
    type: "object",
    properties: {
      where: {
        description: "A place.",
        allOf: [
          { $ref: "#/definitions/place" },
          { type: "object", properties: { zoom: { type: "integer" } }, required: ["zoom"] },
        ],
      },
    },
    definitions: { place: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } },
  };
  assert.deepEqual(geminiSchema(schema).properties, {
    where: {
      type: "object",
      description: "A place.",
      properties: { city: { type: "string" }, zoom: { type: "integer" } },
      required: ["city", "zoom"],
    },
  });
});

test("the elements of an array are those of the part that names them", () => {
  const array = { type: "array", items: { type: "string" } };
  const schema = { type: "array", allOf: [{ $ref: "#/$defs/tags" }], $defs: { tags: array } };
  assert.deepEqual(geminiSchema(schema), array);
  // The type is in another part of `allOf`.
  assert.deepEqual(geminiSchema({ allOf: [{ type: "array" }, { items: { type: "string" } }] }), array);
  const { anyOf } = geminiSchema({ type: ["array", "string"], items: { type: "string" } });
  assert.deepEqual(anyOf, [array, { type: "string" }]);
});

test("definitions by the older name are followed, and no name finds what every object has", () => {
  const schema = {
    type: "object",
    properties: {
      city: { $ref: "#/definitions/city" },
      odd: { $ref: "#/definitions/constructor" },
      self: { allOf: [{ $ref: "#/definitions/self" }] },
      tree: { allOf: [{ $ref: "#/definitions/tree" }] },
    },
    definitions: {
      city: { type: "string" },
      self: { allOf: [{ $ref: "#/definitions/self" }] },
      tree: { type: "object", properties: { next: { allOf: [{ $ref: "#/definitions/tree" }] } } },
    },
  };
  assert.deepEqual(geminiSchema(schema).properties, {
    city: { type: "string" },
    odd: { type: "object" },
    self: { type: "object" },
    tree: { type: "object", properties: { next: { type: "object" } } },
  });
});

// Vertex AI: addresses, credentials, and differences from the Gemini API.

const vertex = (upstream: UpstreamServer, settings = {}, model = "gemini-2.5-flash") =>
  serve(`vertex/${model}`, { VERTEX_BASE_URL: upstream.url, VERTEX_ACCESS_TOKEN: "ya29.test" }, settings);

for (const [location, host] of [
  ["europe-west1", "europe-west1-aiplatform.googleapis.com"],
  ["global", "aiplatform.googleapis.com"],
  ["eu", "aiplatform.eu.rep.googleapis.com"],
] as const) {
  test(`vertex: the location ${location} has the host ${host}`, () => {
    const settings = readSettings({ GOOGLE_CLOUD_PROJECT: "acme-1", GOOGLE_CLOUD_LOCATION: location });
    assert.equal(
      vertexEndpoint({ id: "vertex", model: "m", settings }),
      `https://${host}/v1/projects/acme-1/locations/${location}/endpoints/openapi`,
    );
  });
}

test("vertex: a missing or impossible project or location stops the start and names its variable", async () => {
  const project = { GOOGLE_CLOUD_PROJECT: "acme-1" };
  for (const [env, sentence] of [
    [{}, /needs GOOGLE_CLOUD_PROJECT/],
    [project, /needs GOOGLE_CLOUD_LOCATION/],
    [{ ...project, GOOGLE_CLOUD_LOCATION: "evil.com/" }, /^GOOGLE_CLOUD_LOCATION must/],
  ] as const) {
    await assert.rejects(serve("vertex/gemini-2.5-flash", { ...env, VERTEX_ACCESS_TOKEN: "t" }), {
      name: "ConfigError",
      message: sentence,
    });
  }
});

test("vertex: the model's name gets its publisher unless it has one, and the token travels as a key", async () => {
  await using upstream = await startUpstream(ok(), ok());
  for (const model of ["gemini-2.5-flash", "google/gemini-2.5-flash"]) {
    await ask(open(await vertex(upstream, {}, model)));
  }
  for (const { json, headers, path } of upstream.calls) {
    assert.equal(path, "/v1/chat/completions");
    assert.equal(json.model, "google/gemini-2.5-flash");
    assert.equal(headers.authorization, "Bearer ya29.test");
  }
});

test("vertex: thoughts are asked for with a tag of our own, found wherever they stand, and do not go back", async () => {
  await using upstream = await startUpstream(stream("gemini/vertex-thoughts-and-call"), ok());
  const conversation = open(await vertex(upstream, { reasoningEffort: "low" }), { tools: [WEATHER] });
  const [turn] = await runTools(conversation);
  assert.equal(said(turn, "thinking"), "I need the weather.In Lima.");
  assert.equal(said(turn), "Let me look. ");
  assert.deepEqual(turn.events.at(-1), { type: "end", finish: "stop", usage: { input_tokens: 50, output_tokens: 20 } });
  assert.deepEqual(upstream.calls[0]?.json.extra_body, {
    google: {
      thinking_config: { thinking_budget: 1024, include_thoughts: true },
      thought_tag_marker: "parley_thought",
    },
  });
  assert.deepEqual(upstream.calls[1]?.json.messages[2], {
    role: "assistant",
    content: "Let me look. ",
    tool_calls: [
      {
        extra_content: { google: { thought_signature: "CsQBvertex" } },
        id: "function-call-9",
        type: "function",
        function: { name: "get_weather", arguments: '{"city":"Lima"}' },
      },
    ],
  });
  assert.equal(historyOf(conversation.state()).length, 4);
});

test("vertex: refused credentials say what is missing", async () => {
  const error = (code: number, status: string) => [{ error: { code, message: "ya29.secret", status } }];
  await using upstream = await startUpstream(
    jsonReply(401, error(401, "UNAUTHENTICATED")),
    jsonReply(403, error(403, "PERMISSION_DENIED")),
  );
  const provider = await vertex(upstream);
  for (const sentence of [/wrong or expired/, /Vertex AI User/]) {
    const failure = failureOf(await ask(open(provider)));
    assert.equal(failure.code, "provider_auth");
    assert.match(failure.detail, sentence);
    assert.doesNotMatch(failure.detail, /secret/);
  }
});

test("vertex: without credentials the error says how to get some, and nothing is sent", async () => {
  await using upstream = await startUpstream();
  const env = {
    VERTEX_BASE_URL: upstream.url,
    GOOGLE_APPLICATION_CREDENTIALS: join(tmpdir(), "no-such-credentials.json"),
  };
  const failure = failureOf(await ask(open(await serve("vertex/gemini-2.5-flash", env))));
  assert.equal(failure.code, "provider_auth");
  assert.match(failure.detail, /gcloud auth application-default login/);
  assert.doesNotMatch(failure.detail, /no-such-credentials/);
  assert.equal(upstream.calls.length, 0);
});

test("vertex: application default credentials are exchanged for a token, which is renewed when it ends", async (t) => {
  await using upstream = await startUpstream(ok(), ok());
  const env = { VERTEX_BASE_URL: upstream.url, GOOGLE_APPLICATION_CREDENTIALS: await workloadCredentials(t) };
  const provider = await serve("vertex/gemini-2.5-flash", env);
  for (let request = 0; request < 2; request++) {
    assert.equal((await ask(open(provider))).error, undefined);
  }
  assert.deepEqual(
    upstream.calls.map(({ headers }) => headers.authorization),
    ["Bearer token-1", "Bearer token-2"],
  );
});

/** Credentials of an external workload (RFC 8693), with a token service whose tokens expire at once. */
async function workloadCredentials(t: TestContext): Promise<string> {
  let issued = 0;
  const tokens = createServer((req, res) => {
    req.resume();
    issued += 1;
    const issued_token_type = "urn:ietf:params:oauth:token-type:access_token";
    const token = { access_token: `token-${issued}`, issued_token_type, token_type: "Bearer", expires_in: 1 };
    res.setHeader("content-type", "application/json").end(JSON.stringify(token));
  });
  const token_url = `${await listen(t, tokens)}/v1/token`;
  const folder = temporaryProject(t, { "subject-token": "eyJ.of.a.test" });
  const path = join(folder, "credentials.json");
  const credentials = {
    type: "external_account",
    audience: "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/x",
    subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
    token_url,
    credential_source: { file: join(folder, "subject-token") },
  };
  writeFileSync(path, JSON.stringify(credentials));
  return path;
}
