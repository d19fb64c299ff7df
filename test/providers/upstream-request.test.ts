/** Requests are made once, by the `openai` package, and sent without it: they must be what it would send. */

import assert from "node:assert/strict";
import type { IncomingHttpHeaders } from "node:http";
import { test } from "node:test";
import { Anthropic } from "@anthropic-ai/sdk";
import { OpenAI } from "openai";
import { withFallbacks } from "../../server/providers/fallbacks.ts";
import { claude, stream } from "../support/anthropic.ts";
import { ask, chatProvider, open, responsesProvider, said } from "../support/upstream-conversation.ts";
import { CHAT_COMPLETIONS, RESPONSES } from "../support/upstream-replies.ts";
import { startUpstream, type UpstreamCall } from "../support/upstream-server.ts";

const APIS = {
  "/chat/completions": { provider: chatProvider, reply: CHAT_COMPLETIONS.text("Hello") },
  "/responses": { provider: responsesProvider, reply: RESPONSES.text("Hello") },
};

/** Of the connection, and of how a body is sent. */
const NOT_THE_REQUEST = ["connection", "accept-encoding", "accept-language", "sec-fetch-mode"];

function headersOf({ headers }: UpstreamCall): IncomingHttpHeaders {
  const own = Object.entries(headers).filter(([name]) => !NOT_THE_REQUEST.includes(name));
  return Object.fromEntries(own);
}

for (const [path, { provider, reply }] of Object.entries(APIS)) {
  test(`each request to ${path} is what the package sends`, async () => {
    await using upstream = await startUpstream(reply, reply, reply);
    const served = provider(upstream);
    for (let turn = 0; turn < 2; turn++) {
      assert.equal(said(await ask(open(served, { message: `Grüße ${turn}` }))), "Hello");
    }
    const [first, second] = upstream.calls;
    assert.ok(first !== undefined && second !== undefined);
    assert.match(JSON.stringify(second.json), /Grüße 1/);
    const client = new OpenAI({ baseURL: upstream.url, apiKey: "sk-test", maxRetries: 0 });
    await client.post(path, { body: second.json, stream: true }).asResponse();
    const sent = upstream.calls[2];
    assert.ok(sent !== undefined);
    assert.equal(second.body, sent.body);
    assert.deepEqual(headersOf(second), headersOf(sent));
    const { "content-length": length, ...others } = headersOf(second);
    assert.equal(Number(length), Buffer.byteLength(second.body));
    assert.equal(others["x-stainless-lang"], "js");
    assert.deepEqual({ ...headersOf(first), "content-length": length }, headersOf(second));
  });
}

test("what is prepared asks the upstream nothing, also of several models", async () => {
  await using upstream = await startUpstream(CHAT_COMPLETIONS.text("Hello"));
  const [first, second] = [chatProvider(upstream), chatProvider(upstream)];
  const provider = withFallbacks({ name: "a", provider: first }, [{ name: "b", provider: second }]);
  await provider.prepare?.();
  await responsesProvider(upstream).prepare?.();
  assert.equal(upstream.calls.length, 0);
  assert.equal(said(await ask(open(provider))), "Hello");
});

for (const [path, { sdk, provider, reply }] of Object.entries({
  "/chat/completions": { ...APIS["/chat/completions"], sdk: OpenAI },
  "/responses": { ...APIS["/responses"], sdk: OpenAI },
  "/messages": { provider: claude, reply: stream("text"), sdk: Anthropic },
})) {
  test(`a request to ${path} that the package could not build once is built for the next message`, async (t) => {
    await using upstream = await startUpstream(reply);
    const served = provider(upstream);
    const fail = async () => {
      throw new Error("not now");
    };
    t.mock.method(sdk.prototype, "buildRequest", fail, { times: 1 });
    await assert.rejects(async () => served.prepare?.(), /not now/);
    assert.match(said(await ask(open(served))), /^Hello/);
    assert.equal(upstream.calls.length, 1);
  });
}
