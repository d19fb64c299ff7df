/** Vertex AI: addresses, credentials, and what it does differently from the Gemini API. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { readSettings } from "../../server/config/settings.ts";
import { vertexEndpoint } from "../../server/providers/gemini/vertex.ts";
import { historyOf, ok, runTools, serve, stream, WEATHER } from "../support/chat-servers.ts";
import { listen } from "../support/listen.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { ask, failureOf, open, said } from "../support/upstream-conversation.ts";
import { jsonReply, startUpstream, type UpstreamServer } from "../support/upstream-server.ts";

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

/** Credentials of a workload elsewhere (RFC 8693), with a token service whose tokens end at once. */
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
