/** `POST /api/feedback`: ratings of answers. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Feedback } from "../../server/agent/hooks.ts";
import { Unauthorized } from "../../server/auth/authenticate.ts";
import { onceCalled } from "../support/once-called.ts";
import { startServer, type TestServer } from "../support/start-server.ts";

const RUN = "run-of-this-test-0001";

function rate({ url }: TestServer, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${url}/api/feedback`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

const errorOf = async (response: Response) => (await response.json()).error;

test("a rating reaches onFeedback with its user, answered with 204, and null takes it back", async (t) => {
  const { hook: onFeedback, next } = onceCalled<Feedback>();
  const authenticate = ({ token }: { token: string | undefined }) => (token === undefined ? undefined : { id: token });
  const server = await startServer(t, { agent: { onFeedback }, authenticate, turns: [] });
  const sent = {
    run: RUN,
    conversation: "conversation-0001",
    rating: "down",
    reason: "incorrect",
    comment: "It is in May.",
    metadata: { page: "/a" },
  };
  const response = await rate(server, { ...sent, user: "eve", extra: 1 }, { "x-user-token": "ada" });
  assert.deepEqual([response.status, await response.text()], [204, ""]);
  assert.deepEqual(await next(), { ...sent, user: { id: "ada" } });

  await rate(server, { run: RUN, rating: null, reason: null, comment: null, conversation: null, metadata: null });
  const nothing = { conversation: undefined, reason: undefined, comment: undefined, metadata: {}, user: undefined };
  assert.deepEqual(await next(), { run: RUN, rating: null, ...nothing });
});

test("without onFeedback there is no such address, and /api/info says so", async (t) => {
  const server = await startServer(t, { turns: [] });
  const response = await rate(server, { run: RUN, rating: "up" });
  assert.equal(response.status, 404);
  assert.equal((await errorOf(response)).code, "not_found");
  for (const [agent, says] of [
    [{}, undefined],
    [{ onFeedback: () => {} }, true],
  ] as const) {
    const { url } = await startServer(t, { agent, turns: [] });
    assert.equal((await (await fetch(`${url}/api/info`)).json()).feedback, says);
    assert.equal((await (await fetch(url)).text()).includes('"feedback":true'), says === true);
  }
});

const WRONG: [param: string, body: unknown][] = [
  ["/rating", { run: RUN }],
  ["/rating", { run: RUN, rating: "good" }],
  ["/run", { rating: "up" }],
  ["/run", { run: "short", rating: "up" }],
  ["/run", { run: 7, rating: "up" }],
  ["/conversation", { run: RUN, rating: "up", conversation: "a b" }],
  ["/reason", { run: RUN, rating: "up", reason: "x".repeat(201) }],
  ["/reason", { run: RUN, rating: "up", reason: 1 }],
  ["/comment", { run: RUN, rating: "up", comment: "x".repeat(4001) }],
  ["/metadata/a", { run: RUN, rating: "up", metadata: { a: 1 } }],
];

for (const [param, body] of WRONG) {
  test(`a wrong ${param} is 400 and names it: ${JSON.stringify(body).slice(0, 70)}`, async (t) => {
    const onFeedback = () => assert.fail("it was called");
    const server = await startServer(t, { agent: { onFeedback }, turns: [] });
    const response = await rate(server, body);
    const error = await errorOf(response);
    assert.deepEqual([response.status, error.code, error.param], [400, "invalid_request", param]);
    assert.match(error.message, new RegExp(param.split("/")[1] ?? ""));
  });
}

test("the longest texts are taken, however they are escaped, and a larger body is not", async (t) => {
  const { hook: onFeedback, next } = onceCalled<Feedback>();
  const server = await startServer(t, { agent: { onFeedback }, turns: [] });
  const text = (chars: number) => "\\u00e9".repeat(chars);
  const metadata = Array.from({ length: 16 }, (_, index) => `"m${index}":"${text(512)}"`).join(",");
  const longest = `{"run":"${RUN}","rating":"down","reason":"${text(200)}","comment":"${text(4000)}","metadata":{${metadata}}}`;
  assert.equal((await rate(server, longest)).status, 204);
  assert.equal((await next()).comment, "é".repeat(4000));
  const refused = await rate(server, { run: RUN, rating: "up", extra: "x".repeat(128 * 1024) });
  assert.deepEqual([refused.status, (await errorOf(refused)).code], [413, "request_too_large"]);
  assert.equal((await errorOf(await rate(server, "{"))).code, "invalid_json");
  assert.equal((await rate(server, "{}", { "content-type": "text/plain" })).status, 415);
});

test("a page that may use it learns so, and may send a token", async (t) => {
  const env = { PARLEY_API_KEY: "api-key-0001", PARLEY_ALLOWED_ORIGINS: "https://shop.example" };
  const server = await startServer(t, { agent: { onFeedback: () => {} }, env, turns: [] });
  const preflight = await fetch(`${server.url}/api/feedback`, {
    method: "OPTIONS",
    headers: { origin: "https://shop.example", "access-control-request-method": "POST" },
  });
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers.get("access-control-allow-origin"), "https://shop.example");
  assert.match(preflight.headers.get("access-control-allow-headers") ?? "", /x-user-token/);
});

test("it counts as a message of its user, and authenticate may refuse it", async (t) => {
  const authenticate = ({ token }: { token: string | undefined }) => {
    if (token === undefined) throw new Unauthorized();
    return { id: token };
  };
  const env = { PARLEY_RATE_PER_USER: "1" };
  const server = await startServer(t, { agent: { onFeedback: () => {} }, authenticate, env, turns: [] });
  const refused = await rate(server, { run: RUN, rating: "up" });
  assert.deepEqual([refused.status, (await errorOf(refused)).code], [401, "login_required"]);
  assert.equal((await rate(server, { run: RUN, rating: "up" }, { "x-user-token": "ada" })).status, 204);
  const third = await rate(server, { run: RUN, rating: "up" }, { "x-user-token": "ada" });
  assert.deepEqual([third.status, (await errorOf(third)).code], [429, "rate_limited"]);
});
