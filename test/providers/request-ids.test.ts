/** The name that a provider gave a request: it stands in the log, for its support to be asked about. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { post } from "../support/chat-transports.ts";
import { startServer } from "../support/start-server.ts";
import { CHAT_COMPLETIONS, RESPONSES } from "../support/upstream-replies.ts";
import { jsonReply, startUpstream, type UpstreamReply } from "../support/upstream-server.ts";

/** A refusal that no try can mend. */
const refusal = (headers: Record<string, string>) =>
  jsonReply(400, { error: { type: "invalid_request_error", message: "No." } }, headers);

const root = (url: string) => url.replace(/\/v1$/, "");

interface Case {
  model: string;
  env: (url: string) => Record<string, string>;
  reply: UpstreamReply;
  named: string | undefined;
}

const anthropic = {
  model: "anthropic/claude-sonnet-4-5",
  env: (url: string) => ({ ANTHROPIC_API_KEY: "sk-of-a-test", ANTHROPIC_BASE_URL: root(url) }),
};
const bedrock = {
  model: "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
  env: (url: string) => ({
    AWS_REGION: "us-east-1",
    AWS_BEARER_TOKEN_BEDROCK: "key-of-a-test",
    BEDROCK_BASE_URL: root(url),
  }),
};

const CASES: Record<string, Case> = {
  "an answer of OpenAI": {
    ...RESPONSES,
    reply: { ...RESPONSES.text("Hi"), headers: { "x-request-id": "req_1" } },
    named: "req_1",
  },
  "an answer of LiteLLM": {
    ...CHAT_COMPLETIONS,
    reply: { ...CHAT_COMPLETIONS.text("Hi"), headers: { "x-request-id": "req_2" } },
    named: "req_2",
  },
  "a refusal of OpenAI": {
    ...RESPONSES,
    reply: refusal({ "x-request-id": "req_3" }),
    named: "req_3",
  },
  "a refusal of Anthropic": {
    ...anthropic,
    reply: refusal({ "request-id": "req_4" }),
    named: "req_4",
  },
  "a refusal of Bedrock": {
    ...bedrock,
    reply: refusal({ "x-amzn-requestid": "req_5" }),
    named: "req_5",
  },
  "an answer without a name": { ...RESPONSES, reply: RESPONSES.text("Hi"), named: undefined },
  "a name that is none": {
    ...RESPONSES,
    reply: { ...RESPONSES.text("Hi"), headers: { "x-request-id": `${"x".repeat(201)}` } },
    named: undefined,
  },
};

for (const [name, { model, env, reply, named }] of Object.entries(CASES)) {
  test(`the provider's name of a request is in the log: ${name}`, async (t) => {
    await using upstream = await startUpstream(reply);
    const server = await startServer(t, {
      agent: { model },
      env: { ...env(upstream.url), PARLEY_LOG: "json" },
    });
    await post(server, { message: "Hi", stream: false });
    await server.close();
    const lines = server.log.map((line) => JSON.parse(line));
    const [run] = lines.filter(({ msg }) => msg === "run");
    assert.equal(run.provider_request_id, named);
  });
}
