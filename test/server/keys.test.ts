/** Which key grants access to what, for which page: each cell of the table in the documentation. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { askFrom, post } from "../support/chat-transports.ts";
import { chatRequest, connectRaw } from "../support/raw-connection.ts";
import { say } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { type Cleanup, OPEN_PATHS, startServer, type TestServer } from "../support/start-server.ts";

const KEYS = { PARLEY_API_KEY: "api-key-1, api-key-2", PARLEY_CHAT_KEY: "chat-key", PARLEY_WIDGET_KEY: "widget-key" };
const ENV = { ...KEYS, PARLEY_ALLOWED_ORIGINS: "https://shop.example" };

/** Origins that a request can come from. */
const PAGES = {
  none: () => undefined,
  own: (server: TestServer) => server.url,
  allowed: () => "https://shop.example",
  other: () => "https://evil.example",
  sandboxed: () => "null",
} as const;
type Page = keyof typeof PAGES;
type Verdict = 200 | 401 | 403;
type Way = "rest" | "socket" | "feedback" | "metrics";

/** Columns: no Origin, our own page, an allowed site, another site, a sandboxed frame. */
const TABLE: [way: Way, key: string | undefined, ...verdicts: Verdict[]][] = [
  ["rest", "api-key-1", 200, 200, 200, 403, 403],
  ["rest", "api-key-2", 200, 200, 200, 403, 403],
  ["rest", "chat-key", 403, 200, 403, 403, 403],
  ["rest", "widget-key", 403, 200, 200, 403, 403],
  ["rest", "unknown", 401, 401, 401, 401, 401],
  ["rest", "api-key", 401, 401, 401, 401, 401],
  ["rest", "api-key-1,", 401, 401, 401, 401, 401],
  ["rest", undefined, 401, 401, 401, 401, 401],
  ["socket", "api-key-1", 200, 200, 200, 403, 403],
  ["socket", "api-key-2", 200, 200, 200, 403, 403],
  ["socket", "chat-key", 200, 200, 403, 403, 403],
  ["socket", "widget-key", 200, 200, 200, 403, 403],
  ["socket", "unknown", 401, 401, 401, 401, 401],
  ["socket", "", 401, 401, 401, 401, 401],
  ["socket", undefined, 401, 401, 401, 401, 401],
  ["feedback", "api-key-1", 200, 200, 200, 403, 403],
  ["feedback", "chat-key", 403, 200, 403, 403, 403],
  ["feedback", "widget-key", 403, 200, 200, 403, 403],
  ["feedback", "unknown", 401, 401, 401, 401, 401],
  ["feedback", undefined, 401, 401, 401, 401, 401],
  ["metrics", "api-key-1", 200, 200, 200, 403, 403],
  ["metrics", "chat-key", 403, 403, 403, 403, 403],
  ["metrics", "widget-key", 403, 403, 403, 403, 403],
  ["metrics", "unknown", 401, 401, 401, 401, 401],
  ["metrics", undefined, 401, 401, 401, 401, 401],
];

for (const [way, key, ...verdicts] of TABLE) {
  const name = key === undefined ? "no key" : `the key "${key}"`;
  test(`${name} on ${way}: ${verdicts.join(", ")}`, async (t) => {
    const turns = verdicts.map(() => [say("Welcome")]);
    const server = await startServer(t, { turns, env: ENV, agent: { onFeedback: () => {} } });
    const got: number[] = [];
    for (const page of Object.keys(PAGES) as Page[]) {
      const origin = PAGES[page](server);
      got.push(await (way === "socket" ? askSocket(t, server, key, origin) : askRest(server, key, origin, way)));
    }
    assert.deepEqual(got, verdicts);
  });
}

const requestOf: Record<Way, (server: TestServer, headers: Record<string, string>) => Promise<Response>> = {
  rest: (server, headers) => post(server, { message: "Hi", stream: false }, { headers }),
  socket: () => assert.fail("it is asked by askSocket"),
  feedback({ url }, headers) {
    const body = JSON.stringify({ run: "run-of-this-test-0001", rating: "up" });
    const init = { method: "POST", headers: { "content-type": "application/json", ...headers }, body };
    return fetch(`${url}/api/feedback`, init);
  },
  metrics: ({ url }, headers) => fetch(`${url}/metrics`, { headers }),
};

/** The response's status; also checks the headers that belong to it. */
async function askRest(server: TestServer, key: string | undefined, origin: string | undefined, way: Way = "rest") {
  const headers = {
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    ...(origin === undefined ? {} : { origin }),
  };
  const answer = await requestOf[way](server, headers);
  const text = await answer.text();
  assert.equal(answer.headers.get("www-authenticate"), answer.status === 401 ? "Bearer" : null);
  if (answer.ok) return 200;
  assert.equal(JSON.parse(text).error.code, { 401: "unauthorized", 403: "forbidden" }[answer.status]);
  assert.doesNotMatch(text, /parley_/);
  return answer.status;
}

/** The result of the WebSocket as an HTTP status: 4401 is 401, 4403 is 403. */
async function askSocket(t: Cleanup, server: TestServer, key: string | undefined, origin: string | undefined) {
  const query = key === undefined ? "" : `?key=${encodeURIComponent(key)}`;
  const options = origin === undefined ? {} : { origin };
  const client = await connect(t, server.socketUrl + query, options);
  const event = (await client.run({ message: "Hi" })).at(-1);
  if (event?.type === "done") return 200;
  const { code } = await client.closed;
  assert.ok(event?.type === "error");
  assert.equal(event.code, code === 4401 ? "unauthorized" : "forbidden");
  assert.deepEqual(client.unread, []);
  return code - 4000;
}

test("on the socket the key may come in the header instead of the query", async (t) => {
  const server = await startServer(t, { turns: [[say("Welcome")]], env: KEYS });
  const headers = { authorization: "bearer api-key-1" };
  const client = await connect(t, server.socketUrl, { headers });
  assert.equal((await client.run({ message: "Hi" })).at(-1)?.data, "Welcome");
});

test("REST takes no key from the query, a cookie or another scheme", async (t) => {
  const server = await startServer(t, { turns: [], env: KEYS });
  const body = { message: "Hi", stream: false };
  for (const headers of [
    { cookie: "key=api-key-1" },
    { "x-api-key": "api-key-1" },
    { authorization: "api-key-1" },
    { authorization: "Basic api-key-1" },
    { authorization: "Bearer" },
  ]) {
    assert.equal((await post(server, body, { headers })).status, 401);
  }
  const answer = await fetch(`${server.url}/api/chat?key=api-key-1`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  assert.equal(answer.status, 401);
});

test("the key is judged before the body", async (t) => {
  const server = await startServer(t, { turns: [], env: KEYS });
  assert.equal((await post(server, "{", { headers: { "content-type": "text/plain" } })).status, 401);
});

test("the open paths need no key, whatever page asks", async (t) => {
  const server = await startServer(t, { turns: [], env: ENV });
  for (const path of OPEN_PATHS) {
    for (const origin of ["https://evil.example", server.url]) {
      assert.equal((await fetch(server.url + path, { headers: { origin } })).status, 200, path);
    }
  }
});

for (const [name, env, required] of [
  ["without a key", {}, false],
  ["with an API key", { PARLEY_API_KEY: "k" }, true],
  ["with a chat key only", { PARLEY_CHAT_KEY: "k" }, true],
  ["with a widget key only", { PARLEY_WIDGET_KEY: "k" }, true],
] as const) {
  test(`${name}, auth_required of /api/info is ${required}`, async (t) => {
    const server = await startServer(t, { turns: [], env });
    const answer = await fetch(`${server.url}/api/info`);
    assert.equal(JSON.parse(await answer.text()).auth_required, required);
  });
}

test("no key shows in the log, whatever was asked with it", async (t) => {
  const server = await startServer(t, { turns: [[say("Welcome")]], env: KEYS });
  await askSocket(t, server, "api-key-1", undefined);
  await askRest(server, "chat-key", undefined);
  await fetch(`${server.url}/nowhere?key=widget-key`);
  await fetch(`${server.url}/api-key-2`);
  await server.close();
  assert.ok(server.log.length >= 4);
  assert.doesNotMatch(server.log.join("\n"), /(?:api|chat|widget)-key/);
});

// Guesses at keys are limited, wherever they come from.

const PROXY = { PARLEY_TRUSTED_PROXIES: "127.0.0.1, 10.0.0.0/8" };
const ONE_KEY = { PARLEY_API_KEY: "api-one" };
const turns = Array.from({ length: 12 }, () => [say("Fine")]);

test("after too many wrong keys from an address no key is looked at, right ones included", async (t) => {
  const server = await startServer(t, { turns, env: { ...ONE_KEY, ...PROXY, PARLEY_WRONG_KEYS_PER_ADDRESS: "2" } });
  const address = "203.0.113.1";
  const statuses: number[] = [];
  for (const key of ["guess-1", "guess-2", "guess-3", "api-one"]) {
    statuses.push((await askFrom(server, { key, address })).status);
  }
  assert.deepEqual(statuses, [401, 401, 429, 429]);
  const headers = { "x-forwarded-for": address };
  const client = await connect(t, `${server.socketUrl}?key=api-one`, { headers });
  const event = await client.next();
  assert.equal(event.type === "error" && event.code, "rate_limited");
  assert.equal((await client.closed).code, 4429);
  assert.equal((await askFrom(server, { key: "api-one", address: "203.0.113.2" })).status, 200);
});

/** How guesses reach a server so that all count as one loopback address. */
const THROUGH: [how: string, env: Record<string, string>, headers: (n: number) => object][] = [
  ["directly", {}, () => ({})],
  ["through a proxy that is not named", {}, (n) => ({ "x-forwarded-for": `203.0.113.${n}` })],
  ["through one that writes Forwarded", {}, (n) => ({ forwarded: `for=203.0.113.${n}` })],
  ["through a named proxy that names no client", PROXY, () => ({})],
  ["through a named proxy that names this machine", PROXY, () => ({ "x-forwarded-for": "::1" })],
];

for (const [how, env, headers] of THROUGH) {
  test(`20 guesses at keys over loopback, ${how}, share one limit`, async (t) => {
    const limit = { PARLEY_WRONG_KEYS_PER_ADDRESS: "5" };
    const server = await startServer(t, { turns, env: { ...ONE_KEY, ...limit, ...env } });
    const guess = (n: number, key: string) =>
      post(server, { message: "Hi", stream: false }, { headers: { ...headers(n), authorization: `Bearer ${key}` } });
    const statuses: number[] = [];
    for (let n = 0; n < 20; n++) statuses.push((await guess(n, `guess-${n}`)).status);
    assert.deepEqual(statuses, [...Array(5).fill(401), ...Array(15).fill(429)]);
    const right = await guess(20, "api-one");
    assert.ok(right.status === 429 && Number(right.headers.get("retry-after")) >= 1);
  });
}

test("guesses over REST, in a socket's query and in its header share one limit", async (t) => {
  const env = { ...ONE_KEY, PARLEY_WRONG_KEYS_PER_ADDRESS: "3" };
  const server = await startServer(t, { turns, env });
  const codes: unknown[] = [(await askFrom(server, { key: "guess-1" })).status];
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
  codes.push((await askFrom(server, { key: "api-one" })).status);
  assert.deepEqual(codes, [401, 4401, 4401, 4429, 4429, 4429, 429]);
});

test("a few wrong keys keep nobody out, and 0 switches the limit off", async (t) => {
  const few = await startServer(t, { turns, env: ONE_KEY });
  for (let n = 0; n < 5; n++) assert.equal((await askFrom(few, { key: `typo-${n}` })).status, 401);
  assert.equal((await askFrom(few, { key: "api-one" })).status, 200);
  const env = { ...ONE_KEY, PARLEY_WRONG_KEYS_PER_ADDRESS: "0" };
  const off = await startServer(t, { turns, env });
  for (let n = 0; n < 30; n++) assert.equal((await askFrom(off, { key: `typo-${n}` })).status, 401);
  assert.equal((await askFrom(off, { key: "api-one" })).status, 200);
});

test("guesses that come in one write are limited like any others", async (t) => {
  const env = { ...ONE_KEY, PARLEY_WRONG_KEYS_PER_ADDRESS: "3" };
  const server = await startServer(t, { turns, env });
  const connection = await connectRaw(t, server);
  const keys = [...Array.from({ length: 10 }, (_, n) => `guess-${n}`), "api-one"];
  const requests = keys.map((key) =>
    chatRequest({ message: "Hi", stream: false }, `authorization: Bearer ${key}`).join("\r\n"),
  );
  await connection.write(requests.join(""));
  const statuses: number[] = [];
  for (const _ of keys) statuses.push((await connection.answer()).status);
  assert.deepEqual(statuses, [401, 401, 401, ...Array(8).fill(429)]);
});

test("a header of forwarding from a proxy that was not named is told to the operator, once", async (t) => {
  const server = await startServer(t, { turns });
  for (const _ of [1, 2]) await askFrom(server, { address: "203.0.113.1" });
  const notices = server.log.filter((line) => line.includes("PARLEY_TRUSTED_PROXIES"));
  assert.equal(notices.length, 1);
  assert.match(notices[0] ?? "", /wrong keys of one of them lock out all/);
});
