/** What is left out of a request that a model or an account refuses. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { gate } from "../support/deadline.ts";
import { stopClock } from "../support/stopped-clock.ts";
import { ask, open, responsesProvider } from "../support/upstream-conversation.ts";
import { fixture, jsonReply, startUpstream } from "../support/upstream-server.ts";

const text = () => ({ body: [fixture("responses/text")] });

test("only reasoning models are asked for summaries", async () => {
  for (const [model, asks] of [
    ["gpt-5.2", true],
    ["o4-mini", true],
    ["codex-mini-latest", true],
    ["ft:o4-mini:acme::1", true],
    ["gpt-4o", false],
    ["gpt-5-chat-latest", false],
    ["llama3", false],
  ] as const) {
    await using upstream = await startUpstream(text());
    await ask(open(responsesProvider(upstream, { model })));
    const wanted = asks ? { summary: "auto" } : undefined;
    assert.deepEqual(upstream.calls[0]?.json.reasoning, wanted, model);
    // What is stored need not travel encrypted.
    assert.equal(upstream.calls[0]?.json.include, undefined);
  }
});

test("a 400 that names reasoning leads to one request without it, and the provider remembers", async () => {
  const error = {
    message: "Your organization must be verified to generate reasoning summaries.",
    param: "reasoning.summary",
    code: "unsupported_value",
  };
  await using upstream = await startUpstream(jsonReply(400, { error }), text(), text());
  const provider = responsesProvider(upstream, { model: "gpt-5.2" });
  assert.equal((await ask(open(provider))).error, undefined);
  assert.equal((await ask(open(provider))).error, undefined);
  assert.deepEqual(
    upstream.calls.map((call) => call.json.reasoning),
    [{ summary: "auto" }, undefined, undefined],
  );
});

test("two first messages at once that are both refused the summary are both answered", async (t) => {
  // A refusal's text is not waited for forever; here it is held back until both have come.
  stopClock(t);
  const refusal = jsonReply(400, { error: { message: "x", param: "reasoning.summary" } });
  await using upstream = await startUpstream();
  const provider = responsesProvider(upstream, { model: "gpt-5.2" });
  const [first, second] = [upstream.nextCall(), upstream.nextCall()];
  const held = gate();
  const refused = { ...refusal, body: [held.opened, ...(refusal.body ?? [])] };
  upstream.reply(refused, refused, text(), text());
  const turns = [ask(open(provider)), ask(open(provider))];
  await Promise.all([first, second]);
  held.open();
  for (const turn of turns) assert.equal((await turn).error, undefined);
});

test("a 400 for asking for encrypted content leads to one request without it, and is remembered", async () => {
  const error = {
    message: "Encrypted content is not supported with this model.",
    type: "invalid_request_error",
    param: "include",
    code: null,
  };
  await using upstream = await startUpstream(jsonReply(400, { error }), text(), text());
  const provider = responsesProvider(upstream, { model: "gpt-5.2", settings: { store: false } });
  assert.equal((await ask(open(provider))).error, undefined);
  assert.equal((await ask(open(provider))).error, undefined);
  assert.deepEqual(
    upstream.calls.map(({ json }) => json.include),
    [["reasoning.encrypted_content"], undefined, undefined],
  );
});
