/** A large request goes to the model in pieces, and is the same JSON. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { destinationOf, exchange } from "../../server/providers/upstream/exchange.ts";
import { requestBody } from "../../server/providers/upstream/request-body.ts";
import { ok, serve } from "../support/chat-servers.ts";
import { listen } from "../support/listen.ts";
import { ask, chatProvider, open, responsesProvider } from "../support/upstream-conversation.ts";
import { fixture, startUpstream, type UpstreamServer } from "../support/upstream-server.ts";

const LONG = 1_200_001;

const BODIES: [name: string, value: unknown][] = [
  ["base64", { messages: [{ url: `data:image/png;base64,${"QUJD".repeat(LONG / 4)}` }], model: "m" }],
  ["characters that JSON escapes", { a: '"\\\n\u0000'.repeat(LONG / 4), b: [true, null, 1.5] }],
  ["pairs of surrogates, which a piece may end in", { text: `x${"😀".repeat(LONG / 2)}` }],
  ["several, beside short texts", ["é".repeat(LONG), "short", { deep: ["€".repeat(LONG)] }, ""]],
];

for (const [name, value] of BODIES) {
  test(`long texts of ${name} arrive as they were, with their length in the head`, async (t) => {
    let said: string | undefined;
    const model = createServer(async (req, res) => {
      said = req.headers["content-length"];
      const pieces: Buffer[] = [];
      for await (const piece of req) pieces.push(piece as Buffer);
      res.end(JSON.stringify(pieces.reduce((sum, { length }) => sum + length, 0)));
      assert.deepEqual(JSON.parse(Buffer.concat(pieces).toString()), value);
    });
    const url = await listen(t, model);
    const body = await requestBody(value);
    assert.ok(Array.isArray(body) && body.length > 2);
    const sent = { method: "POST", headers: { "content-type": "application/json" }, body };
    const answer = await exchange(destinationOf(url), sent, new AbortController().signal);
    let length = "";
    for await (const piece of answer) length += piece;
    assert.equal(length, said);
  });
}

test("without a long text it is one text, made at once", () => {
  const value = { messages: [{ role: "user", content: "Hi".repeat(1000) }] };
  assert.equal(requestBody(value), JSON.stringify(value));
});

for (const [name, provider, reply] of [
  ["Chat Completions", async (upstream: UpstreamServer) => chatProvider(upstream), ok()],
  ["Responses", async (upstream: UpstreamServer) => responsesProvider(upstream), { body: [fixture("responses/text")] }],
  [
    "Messages",
    (upstream: UpstreamServer) =>
      serve("anthropic/claude-sonnet-4-5", {
        ANTHROPIC_API_KEY: "sk-ant-test",
        ANTHROPIC_BASE_URL: upstream.url.replace(/\/v1$/, ""),
      }),
    { body: [fixture("anthropic/text")] },
  ],
] as const) {
  test(`no request to a ${name} API with a large file is written as one text`, async (t) => {
    await using upstream = await startUpstream(reply);
    const served = await provider(upstream);
    const data = "QUJD".repeat(LONG / 4);
    const url = `data:image/png;base64,${data}`;
    const file = { type: "image", name: "a.png", mime_type: "image/png", url } as const;
    const stringify = t.mock.method(JSON, "stringify");
    const { error } = await ask(open(served, { attachments: [file] }));
    const longest = Math.max(...stringify.mock.calls.map(({ result }) => result?.length ?? 0));
    stringify.mock.restore();
    assert.equal(error, undefined);
    assert.ok(longest < LONG / 2 + 1024, `${longest} characters at once`);
    assert.ok(upstream.calls[0]?.body.includes(data));
  });
}
