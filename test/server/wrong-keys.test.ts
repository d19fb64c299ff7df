/** Guesses at keys are limited, wherever they come from. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { post } from "../support/chat-transports.ts";
import { connectRaw } from "../support/raw-connection.ts";
import { say } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { startServer, type TestServer } from "../support/start-server.ts";

const PROXY = { PARLEY_TRUSTED_PROXIES: "127.0.0.1, 10.0.0.0/8" };
const KEYS = { PARLEY_API_KEY: "api-one" };
const turns = Array.from({ length: 12 }, () => [say("Fine")]);

function ask(server: TestServer, { key, address }: { key?: string; address?: string }): Promise<Response> {
  const headers = {
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    ...(address === undefined ? {} : { "x-forwarded-for": address }),
  };
  return post(server, { message: "Hi", stream: false }, { headers });
}

test("after too many wrong keys from an address no key is looked at, right ones included", async (t) => {
  const server = await startServer(t, {
    turns,
    env: { ...KEYS, ...PROXY, PARLEY_WRONG_KEYS_PER_ADDRESS: "2" },
  });
  const address = "203.0.113.1";
  const statuses: number[] = [];
  for (const key of ["guess-1", "guess-2", "guess-3", "api-one"]) {
    statuses.push((await ask(server, { key, address })).status);
  }
  assert.deepEqual(statuses, [401, 401, 429, 429]);
  const headers = { "x-forwarded-for": address };
  const client = await connect(t, `${server.socketUrl}?key=api-one`, { headers });
  const event = await client.next();
  assert.equal(event.type === "error" && event.code, "rate_limited");
  assert.equal((await client.closed).code, 4429);
  assert.equal((await ask(server, { key: "api-one", address: "203.0.113.2" })).status, 200);
});

/** How a guess reaches a server that names no proxy. */
const THROUGH: [how: string, env: Record<string, string>, headers: (n: number) => object][] = [
  ["directly", {}, () => ({})],
  ["through a proxy that is not named", {}, (n) => ({ "x-forwarded-for": `203.0.113.${n}` })],
  ["through one that writes Forwarded", {}, (n) => ({ forwarded: `for=203.0.113.${n}` })],
  ["through a named proxy that names no client", PROXY, () => ({})],
  ["through a named proxy that names this machine", PROXY, () => ({ "x-forwarded-for": "::1" })],
];

for (const [how, env, headers] of THROUGH) {
  test(`100 guesses at keys over loopback, ${how}, share one limit`, async (t) => {
    const limit = { PARLEY_WRONG_KEYS_PER_ADDRESS: "5" };
    const server = await startServer(t, { turns, env: { ...KEYS, ...limit, ...env } });
    const guess = (n: number, key: string) =>
      post(server, { message: "Hi", stream: false }, { headers: { ...headers(n), authorization: `Bearer ${key}` } });
    const statuses: number[] = [];
    for (let n = 0; n < 100; n++) statuses.push((await guess(n, `guess-${n}`)).status);
    assert.deepEqual(statuses, [...Array(5).fill(401), ...Array(95).fill(429)]);
    const right = await guess(100, "api-one");
    assert.ok(right.status === 429 && Number(right.headers.get("retry-after")) >= 1);
  });
}

test("guesses over REST, in a socket's query and in its header share one limit", async (t) => {
  const env = { ...KEYS, PARLEY_WRONG_KEYS_PER_ADDRESS: "3" };
  const server = await startServer(t, { turns, env });
  const codes: unknown[] = [(await ask(server, { key: "guess-1" })).status];
  for (const [query, headers] of [
    ["?key=guess-2", {}],
    ["", { authorization: "Bearer guess-3" }],
    ["?key=guess-4", {}],
    ["?key=api-one", {}],
    ["", { authorization: "Bearer api-one" }],
  ] as const) {
    const client = await connect(t, `${server.socketUrl}${query}`, { headers });
    codes.push((await client.closed).code);
  }
  codes.push((await ask(server, { key: "api-one" })).status);
  assert.deepEqual(codes, [401, 4401, 4401, 4429, 4429, 4429, 429]);
});

test("a few wrong keys keep nobody out, and 0 switches the limit off", async (t) => {
  const few = await startServer(t, { turns, env: KEYS });
  for (let n = 0; n < 5; n++) assert.equal((await ask(few, { key: `typo-${n}` })).status, 401);
  assert.equal((await ask(few, { key: "api-one" })).status, 200);
  const env = { ...KEYS, PARLEY_WRONG_KEYS_PER_ADDRESS: "0" };
  const off = await startServer(t, { turns, env });
  for (let n = 0; n < 30; n++) assert.equal((await ask(off, { key: `typo-${n}` })).status, 401);
  assert.equal((await ask(off, { key: "api-one" })).status, 200);
});

test("messages over a loopback address are still not counted by it", async (t) => {
  const env = { PARLEY_RATE_PER_ADDRESS: "1", PARLEY_MAX_RUNS_PER_ADDRESS: "1" };
  const server = await startServer(t, { turns, env });
  for (let n = 0; n < 5; n++) assert.equal((await ask(server, {})).status, 200);
});

test("guesses that come in one write are limited like any others", async (t) => {
  const env = { ...KEYS, PARLEY_WRONG_KEYS_PER_ADDRESS: "3" };
  const server = await startServer(t, { turns, env });
  const connection = await connectRaw(t, server);
  const body = '{"message":"Hi","stream":false}';
  const keys = [...Array.from({ length: 10 }, (_, n) => `guess-${n}`), "api-one"];
  const requests = keys.map((key) =>
    [
      "POST /api/chat HTTP/1.1",
      "Host: x",
      `Authorization: Bearer ${key}`,
      "Content-Type: application/json",
      `Content-Length: ${body.length}`,
      "",
      body,
    ].join("\r\n"),
  );
  await connection.write(requests.join(""));
  const statuses: number[] = [];
  for (const _ of keys) statuses.push((await connection.answer()).status);
  assert.deepEqual(statuses, [401, 401, 401, ...Array(8).fill(429)]);
});

test("a header of forwarding from a proxy that was not named is told to the operator, once", async (t) => {
  const server = await startServer(t, { turns });
  for (const _ of [1, 2]) await ask(server, { address: "203.0.113.1" });
  const notices = server.log.filter((line) => line.includes("PARLEY_TRUSTED_PROXIES"));
  assert.equal(notices.length, 1);
  assert.match(notices[0] ?? "", /wrong keys of one of them lock out all/);
});
