/** Users: the input of `authenticate`, what a user may access, and what stays closed to all others. */

import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { type TestContext, test } from "node:test";
import { checkAgent } from "../../server/agent/define.ts";
import type { RunContext } from "../../server/agent/run-context.ts";
import { type Authenticate, type AuthRequest, Unauthorized } from "../../server/auth/authenticate.ts";
import type { StateKind } from "../../server/protocol/chat.ts";
import type { DoneEvent, ErrorEvent, SocketEvent } from "../../server/protocol/events.ts";
import { post, readEventStream, TRANSPORTS, type TransportName, terminal } from "../support/chat-transports.ts";
import { gate } from "../support/deadline.ts";
import { startTwo, testWithRedis } from "../support/redis-server.ts";
import { newRun } from "../support/run-lines.ts";
import { hang, say, type Turn, wait } from "../support/scripted-provider.ts";
import { connect, type SocketClient } from "../support/socket-client.ts";
import { type ServerOptions, startServer, type TestServer } from "../support/start-server.ts";

/** The token is the user's id; some tokens are invalid. */
const byToken: Authenticate = ({ token }) => {
  if (token === undefined) return undefined;
  if (token === "expired") throw new Unauthorized("Your session has ended. Please sign in again.");
  if (token === "closed") throw new Unauthorized();
  if (token === "silent") throw new Unauthorized("");
  if (token === "broken") throw new Error(`no database for ${token}`);
  return { id: token, plan: "pro" };
};

const turnsOf = (count: number): Turn[] => Array.from({ length: count }, () => [say("Fine")]);

const start = (t: TestContext, options: ServerOptions = {}) =>
  startServer(t, { authenticate: byToken, turns: turnsOf(8), ...options });

const tokenHeader = (token?: string): Record<string, string> => (token === undefined ? {} : { "x-user-token": token });

interface Asking {
  message?: string;
  state?: unknown;
  run?: string;
  token?: string | undefined;
}

type Ended = DoneEvent | ErrorEvent;

/** Sends one message over a transport with a token; HTTP errors are returned as error events. */
async function ask(t: TestContext, how: TransportName, server: TestServer, { token, ...rest }: Asking): Promise<Ended> {
  const message = { message: "Hi", ...rest };
  if (how === "socket") {
    const client = await connect(t, server.socketUrl);
    if (token !== undefined) client.send({ type: "authenticate", token });
    return lastOf(await client.run(message));
  }
  const answer = await post(server, { ...message, stream: how === "sse" }, { headers: tokenHeader(token) });
  const text = await answer.text();
  if (answer.status !== 200) return { type: "error", ...refusalOf(text) };
  if (how === "sse") return terminal(readEventStream(text));
  const { response, ...body } = JSON.parse(text);
  return { type: "done", data: response, ...body };
}

function refusalOf(text: string): Pick<ErrorEvent, "code" | "data" | "retryable"> {
  const { code, message, retryable } = JSON.parse(text).error;
  return { code, data: message, retryable };
}

function lastOf(events: readonly SocketEvent[]): Ended {
  const last = events.at(-1);
  assert.ok(last?.type === "done" || last?.type === "error");
  return last;
}

/** The error's code, or the run's finish reason. */
const endOf = (last: Ended): string => (last.type === "error" ? last.code : last.finish_reason);

for (const how of TRANSPORTS) {
  test(`ctx has the user of each message over ${how}, and nobody where none is known`, async (t) => {
    const users: unknown[] = [];
    const agent = { instructions: ({ user }: RunContext) => String(users.push(user)) };
    const server = await start(t, { agent });
    await ask(t, how, server, { token: "ada" });
    await ask(t, how, server, {});
    assert.deepEqual(users, [{ id: "ada", plan: "pro" }, undefined]);
  });

  test(`a refused token is login_required over ${how}, with the sentence of authenticate, and asks no model`, async (t) => {
    const server = await start(t);
    const expired = await ask(t, how, server, { token: "expired" });
    assert.deepEqual(
      [endOf(expired), expired.data],
      ["login_required", "Your session has ended. Please sign in again."],
    );
    for (const token of ["closed", "silent"]) {
      assert.equal((await ask(t, how, server, { token })).data, "Please sign in.");
    }
    assert.equal(server.model.asked.length, 0);
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    assert.match(metrics, /\nparley_refused_logins_total 3\n/);
  });
}

test("login_required is 401 without a prompt for a key", async (t) => {
  const server = await start(t);
  const answer = await post(server, { message: "Hi", stream: true }, { headers: tokenHeader("expired") });
  assert.equal(answer.status, 401);
  assert.equal(answer.headers.get("www-authenticate"), null);
  assert.equal(refusalOf(await answer.text()).retryable, false);
});

const FAILURES: [name: string, authenticate: unknown, said: RegExp][] = [
  ["throws", () => assert.fail("no pool for secret-token"), /no pool for \[key\]/],
  ["rejects", async () => Promise.reject(new Error("no pool")), /no pool/],
  ["throws a text", () => throwIt("secret-text"), /threw something that is no Error/],
  ["throws the user", () => throwIt({ id: "ada", mail: "secret@example.com" }), /threw something that is no Error/],
  ["throws nothing", () => throwIt(undefined), /threw something that is no Error/],
  ["returns null", () => null, /must return a user with an id/],
  ["returns true", () => true, /must return a user with an id/],
  ["returns a list", async () => [{ id: "secret" }], /must return a user with an id/],
  ["returns a user without an id", () => ({ mail: "secret@example.com" }), /must return a user with an id/],
  [
    "returns a number as the id",
    () => ({ id: 42, mail: "secret@example.com" }),
    /must return a user with an id.*The id is a number: return String\(id\)\./,
  ],
  ["returns an empty id", () => ({ id: "" }), /must return a user with an id/],
  ["returns an id of 201 characters", () => ({ id: "x".repeat(201) }), /must return a user with an id/],
  ["returns half a character as the id", () => ({ id: "\ud83d" }), /must return a user with an id/],
  [
    "returns an object that throws",
    () => ({
      get id() {
        throw new Error("no id");
      },
    }),
    /no id/,
  ],
];

function throwIt(thrown: unknown): never {
  throw thrown;
}

for (const [name, authenticate, said] of FAILURES) {
  test(`authenticate that ${name} is internal: the log says so, without token and user, and no client does`, async (t) => {
    const server = await start(t, { authenticate: authenticate as Authenticate });
    for (const how of TRANSPORTS) {
      const last = await ask(t, how, server, { token: "secret-token" });
      assert.deepEqual(
        [endOf(last), last.data],
        ["internal", "The server could not check who you are. Please try again."],
      );
    }
    assert.equal(server.model.asked.length, 0);
    const log = server.log.join("");
    assert.match(log, said);
    assert.doesNotMatch(log, /secret/);
    const failure = server.log.map((record) => JSON.parse(record)).find(({ msg }) => msg === "failure");
    assert.ok(failure.request_id);
  });
}

test("an id of 200 characters is one, and so is a user that a class has made", async (t) => {
  class Customer {
    readonly id = "x".repeat(200);
  }
  const server = await start(t, { authenticate: () => new Customer() as unknown as { id: string } });
  assert.equal(endOf(await ask(t, "json", server, {})), "stop");
});

test("no log has what an error of authenticate quotes of cookies, credentials and the token", async (t) => {
  const authenticate: Authenticate = ({ headers, token }) => {
    const quoted = [headers.authorization, headers.authorization?.split(" ")[1], token];
    throw new Error(`no session in ${quoted.join(" or ")}`, { cause: new Error(`for ${headers.cookie}`) });
  };
  const server = await start(t, { authenticate, env: { PARLEY_LOG_LEVEL: "debug" } });
  const headers = {
    authorization: "Basic c2VjcmV0LXdvcmQ=",
    cookie: "theme=dark; sid=s%3Asecret-session%2B1",
    "x-user-token": "eyJhbGciOiJub25lIn0.secret-claims.",
  };
  await (await post(server, { message: "Hi", stream: false }, { headers })).text();
  assert.match(server.log.join(""), /no session in .*\[key\] or \[key\] or \[key\]/);
  assert.doesNotMatch(server.log.join(""), /secret|c2VjcmV0|JhbGci/);
});

test("the token stands in no log", async (t) => {
  const server = await start(t, { env: { PARLEY_LOG_LEVEL: "debug" } });
  for (const how of TRANSPORTS) await ask(t, how, server, { token: "a-secret-token" });
  assert.match(server.log.join(""), /"run"/);
  assert.doesNotMatch(server.log.join(""), /a-secret-token/);
});

// What `authenticate` gets

/** Records its input, and returns the same user for everybody. */
function recording(): { seen: AuthRequest[]; authenticate: Authenticate } {
  const seen: AuthRequest[] = [];
  const authenticate: Authenticate = (request) => {
    seen.push(request);
    return { id: "ada" };
  };
  return { seen, authenticate };
}

test("authenticate gets headers, address, kind of key and token of a request, and of a socket with each message", async (t) => {
  const { seen, authenticate } = recording();
  const server = await start(t, { authenticate });
  await post(server, { message: "Hi", stream: false }, { headers: { "X-Shop": "7", ...tokenHeader("one") } });
  const client = await connect(t, server.socketUrl, { headers: { "X-Shop": "8", "x-user-token": "two" } });
  await client.run({ message: "Hi" });
  client.send({ type: "authenticate", token: "three" });
  await client.run({ message: "Hi" });
  client.send({ type: "authenticate", token: "" });
  await client.run({ message: "Hi" });
  assert.deepEqual(
    seen.map(({ headers, address, keyKind, token, raw }) => [headers["x-shop"], address, keyKind, token, raw.url]),
    [
      ["7", "127.0.0.1", "none", "one", "/api/chat"],
      ["8", "127.0.0.1", "none", "two", "/ws/chat"],
      ["8", "127.0.0.1", "none", "three", "/ws/chat"],
      ["8", "127.0.0.1", "none", undefined, "/ws/chat"],
    ],
  );
});

test("raw is made from the request anew for each message: nothing that is put on it, or taken from its headers, lives on", async (t) => {
  const seen: unknown[] = [];
  const authenticate: Authenticate = ({ raw, headers }) => {
    const request = raw as IncomingMessage & { session?: string };
    seen.push([request.session, headers.cookie, raw.headers === headers, raw.socket.remotePort !== undefined]);
    request.session = "of Ada";
    delete headers.cookie;
    return { id: "ada" };
  };
  const server = await start(t, { authenticate });
  for (const origin of [undefined, "http://localhost:3000"]) {
    const headers = { cookie: "session=1", ...(origin && { origin }) };
    const client = await connect(t, server.socketUrl, { headers });
    for (let round = 0; round < 2; round++) await client.run({ message: "Hi", state: {} });
    const cookie = origin ? undefined : "session=1";
    assert.deepEqual(seen.splice(0), Array(2).fill([undefined, cookie, true, true]));
  }
});

test("raw hears of the end of its request, as the request does", async (t) => {
  const closed = gate();
  const authenticate: Authenticate = ({ raw }) => {
    raw.once("close", closed.open);
    return { id: "ada" };
  };
  await ask(t, "json", await start(t, { authenticate }), {});
  await closed.opened;
});

test("authenticate is asked once for each message, resume and cancel, and for nothing else", async (t) => {
  const { seen, authenticate } = recording();
  const server = await start(t, { authenticate });
  const run = newRun();
  for (const how of TRANSPORTS) await ask(t, how, server, how === "sse" ? { run } : {});
  assert.equal(seen.length, 3);
  const client = await connect(t, server.socketUrl);
  for (const message of [{ type: "stop" }, { type: "clear" }, { type: "authenticate", token: "t" }])
    client.send(message);
  await client.until("cleared");
  assert.equal(seen.length, 3);
  await (await fetch(`${server.url}/api/chat/runs/${run}`)).text();
  await (await fetch(`${server.url}/api/chat/runs/${run}/cancel`, { method: "POST" })).text();
  client.send({ type: "resume", run, after: 0 });
  await client.until("done");
  assert.equal(seen.length, 6);
});

test("a token that is no text, or longer than 16 KiB, is invalid_request, and the socket stays open", async (t) => {
  const server = await start(t);
  const client = await connect(t, server.socketUrl);
  for (const token of [5, null, undefined, { id: "ada" }, "x".repeat(16 * 1024 + 1)]) {
    client.send({ type: "authenticate", token });
    const [event] = await client.until("error");
    assert.equal(event?.type === "error" && event.code, "invalid_request");
  }
  client.send({ type: "authenticate", token: "x".repeat(200) });
  assert.equal(endOf(lastOf(await client.run({ message: "Hi" }))), "stop");
});

test("without authenticate a token does nothing, on any transport", async (t) => {
  const server = await start(t, { authenticate: undefined });
  for (const how of TRANSPORTS) assert.equal(endOf(await ask(t, how, server, { token: "expired" })), "stop");
});

const KEYS = { PARLEY_API_KEY: "the-api-key", PARLEY_WIDGET_KEY: "the-widget-key" };

test("no key reaches authenticate, in whatever way it came", async (t) => {
  const { seen, authenticate } = recording();
  const server = await start(t, { authenticate, env: KEYS });
  const headers = { authorization: "Bearer the-api-key" };
  await post(server, { message: "Hi", stream: false }, { headers });
  await (await fetch(`${server.url}/api/info`, { headers })).text();
  for (const [query, more] of [
    ["?key=the-api-key&page=2", {}],
    ["?%6bey=the-api-key", {}],
    ["", { headers }],
    ["?key=the-widget-key", { headers: { authorization: ["Basic YWRh", "Bearer the-api-key"] } as never }],
  ] as const) {
    await (await connect(t, server.socketUrl + query, more)).run({ message: "Hi" });
  }
  assert.equal(seen.length, 6);
  for (const { raw, headers: seenHeaders, keyKind } of seen) {
    const { url, rawHeaders } = raw;
    assert.doesNotMatch(
      JSON.stringify([url, rawHeaders, raw.headers, seenHeaders, raw.headersDistinct]),
      /the-(?:api|widget)-key/,
    );
    assert.match(keyKind, /api|widget|none/);
  }
  assert.deepEqual(
    seen.slice(2).map(({ raw }) => raw.url),
    ["/ws/chat?page=2", "/ws/chat", "/ws/chat", "/ws/chat"],
  );
});

const OWN = "http://own";
const OWN_TLS = "https://own";
const AMBIENT: [name: string, headers: Record<string, string>, env: Record<string, string>, reaches: boolean][] = [
  ["a program", {}, {}, true],
  ["the server's own page", { origin: OWN }, {}, true],
  ["the server's own page over TLS", { origin: OWN_TLS, "x-forwarded-proto": "https" }, {}, true],
  ["the page of its name without TLS", { origin: OWN, "x-forwarded-proto": "https, http" }, {}, false],
  [
    "the page of its name without TLS, as RFC 7239 says it",
    { origin: OWN, forwarded: "for=_x;proto=https" },
    {},
    false,
  ],
  [
    "the page of its name without TLS, as the browser says it",
    { origin: OWN, "sec-fetch-site": "cross-site" },
    {},
    false,
  ],
  ["the server's own page, which sends no Origin", { "sec-fetch-site": "same-origin" }, {}, true],
  ["a person's own navigation", { "sec-fetch-site": "none" }, {}, true],
  ["a page of the same site, which sends no Origin", { "sec-fetch-site": "same-site" }, {}, false],
  ["a page of another site, which sends no Origin", { "sec-fetch-site": "cross-site" }, {}, false],
  [
    "a page that is named",
    { origin: "https://shop.example" },
    { PARLEY_ALLOWED_ORIGINS: "https://shop.example" },
    true,
  ],
  [
    "a page that is named beside *",
    { origin: "https://a.example" },
    { PARLEY_ALLOWED_ORIGINS: "*,https://a.example" },
    true,
  ],
  ["a page that * allows", { origin: "https://evil.example" }, { PARLEY_ALLOWED_ORIGINS: "*" }, false],
  ["a page that the default allows", { origin: "https://evil.example" }, KEYS, false],
  ["another port of this machine", { origin: "http://localhost:3000" }, {}, false],
  ["a sandbox", { origin: "null" }, { PARLEY_ALLOWED_ORIGINS: "*" }, false],
];

for (const [name, more, env, reaches] of AMBIENT) {
  test(`cookies and credentials from ${name} ${reaches ? "reach" : "do not reach"} authenticate`, async (t) => {
    const { seen, authenticate } = recording();
    const server = await start(t, { authenticate, env });
    const origin = more.origin?.replace("//own", server.url.slice("http:".length));
    const key = env.PARLEY_WIDGET_KEY === undefined ? "" : "?key=the-widget-key";
    const basic = "Basic YWRhOnNlY3JldA==";
    const headers = { ...more, ...(origin === undefined ? {} : { origin }), cookie: "session=1", ...tokenHeader("t") };
    await (await connect(t, server.socketUrl + key, { headers: { ...headers, authorization: basic } })).run({
      message: "Hi",
    });
    const authorization = key === "" ? basic : "Bearer the-widget-key";
    await (await post(server, { message: "Hi", stream: false }, { headers: { ...headers, authorization } })).text();
    assert.equal(seen.length, 2);
    for (const { headers: got, raw, token } of seen) {
      assert.equal(got.cookie, reaches ? "session=1" : undefined);
      assert.equal(raw.headers.cookie, got.cookie);
      assert.equal(token, "t");
      if (!reaches)
        assert.doesNotMatch(JSON.stringify([got, raw.headers, raw.rawHeaders]), /session=1|Basic|widget-key/);
    }
    assert.equal(seen[0]?.headers.authorization, reaches ? basic : undefined);
  });
}

test("what other code of the server has made of a cookie does not reach authenticate from a foreign page either", async (t) => {
  const { seen, authenticate } = recording();
  const server = await start(t, { authenticate, env: { PARLEY_ALLOWED_ORIGINS: "*" } });
  server.server.http.prependListener("request", (req) => Object.assign(req, { session: { user: "ada" } }));
  for (const origin of [server.url, "https://evil.example"]) {
    await (await post(server, { message: "Hi", stream: false }, { headers: { origin, cookie: "session=1" } })).text();
  }
  assert.deepEqual(
    seen.map(({ raw }) => Object(raw).session?.user),
    ["ada", undefined],
  );
});

test("with authenticate, only sites that are named may frame the page, and a page may send a token", async (t) => {
  const policyOf = async (options: ServerOptions) => {
    const { url } = await start(t, options);
    return (await fetch(`${url}/?embed=1`)).headers.get("content-security-policy");
  };
  const all = { PARLEY_ALLOWED_ORIGINS: "*,https://shop.example" };
  assert.match(String(await policyOf({ env: all })), /frame-ancestors 'self' https:\/\/shop\.example;/);
  assert.match(String(await policyOf({ env: KEYS })), /frame-ancestors 'self';/);
  assert.match(String(await policyOf({})), /frame-ancestors 'self';/);
  assert.match(
    String(await policyOf({ env: all, authenticate: undefined })),
    /frame-ancestors \* https:\/\/shop\.example;/,
  );
  const { url } = await start(t);
  const headers = { origin: url, "access-control-request-method": "POST" };
  const preflight = await fetch(`${url}/api/chat`, { method: "OPTIONS", headers });
  assert.match(String(preflight.headers.get("access-control-allow-headers")), /\bx-user-token\b/);
});

// Forgeries

const KINDS: readonly StateKind[] = ["conversation_history", "previous_response_id"];

/** The owner of a state, the user who continues it, and the result. */
const STATES: [owner: string | undefined, reader: string | undefined, end: string][] = [
  ["ada", "ada", "stop"],
  ["ada", "bob", "invalid_state"],
  ["ada", undefined, "invalid_state"],
  [undefined, undefined, "stop"],
  [undefined, "bob", "stop"],
];

for (const stateKind of KINDS) {
  for (const how of TRANSPORTS) {
    test(`${stateKind}: over ${how}, a user's state is continued by them alone, and nobody's by everybody`, async (t) => {
      const server = await start(t, { stateKind, turns: turnsOf(20) });
      for (const [owner, reader, end] of STATES) {
        const { state } = await ask(t, how, server, { token: owner });
        assert.equal(endOf(await ask(t, how, server, { token: reader, state })), end, `${owner} ${reader}`);
      }
    });
  }

  test(`${stateKind}: what nobody began is the user's who went on`, async (t) => {
    const server = await start(t, { stateKind });
    const { state } = await ask(t, "json", server, {});
    const next = await ask(t, "json", server, { token: "ada", state });
    assert.equal(next.state?.conversation, state?.conversation);
    assert.equal(endOf(await ask(t, "json", server, { state: next.state })), "invalid_state");
    assert.equal(endOf(await ask(t, "json", server, { token: "bob", state: next.state })), "invalid_state");
  });

  test(`${stateKind}: an unsigned state, or one of another conversation, is refused`, async (t) => {
    const unsigned = await startServer(t, { stateKind, turns: turnsOf(1) });
    const server = await start(t, { stateKind });
    const { state: foreign } = await ask(t, "json", unsigned, {});
    assert.equal(endOf(await ask(t, "json", server, { state: foreign })), "invalid_state");
    const { state } = await ask(t, "json", server, { token: "ada" });
    const other = await ask(t, "json", server, { token: "ada" });
    const renamed = { ...state, conversation: other.state?.conversation };
    assert.equal(endOf(await ask(t, "json", server, { token: "ada", state: renamed })), "invalid_state");
  });
}

test("a state is signed with the secret of the setting, if there is one, and outlives the start", async (t) => {
  const env = { PARLEY_STATE_SECRET: "a secret that is long enough" };
  const { state } = await ask(t, "json", await start(t, { env }), { token: "ada" });
  assert.equal(endOf(await ask(t, "json", await start(t, { env }), { token: "ada", state })), "stop");
  assert.equal(endOf(await ask(t, "json", await start(t), { token: "ada", state })), "invalid_state");
});

test("a user's id stands in no state", async (t) => {
  const server = await start(t);
  for (const how of TRANSPORTS) {
    assert.doesNotMatch(JSON.stringify(await ask(t, how, server, { token: "ada-lovelace" })), /ada-lovelace/);
  }
});

const READERS: [name: string, read: (server: TestServer, run: string, token?: string) => Promise<number>][] = [
  [
    "resumes",
    async ({ url }, run, token) => status(fetch(`${url}/api/chat/runs/${run}`, { headers: tokenHeader(token) })),
  ],
  [
    "cancels",
    async ({ url }, run, token) =>
      status(fetch(`${url}/api/chat/runs/${run}/cancel`, { method: "POST", headers: tokenHeader(token) })),
  ],
];

async function status(answer: Promise<Response>): Promise<number> {
  const { status: code, body } = await answer;
  await body?.cancel();
  return code;
}

for (const [name, read] of READERS) {
  test(`nobody else ${name} a user's run over HTTP, and an expired token does not either`, async (t) => {
    const server = await start(t, {
      turns: [
        [say("Half"), hang],
        [say("Other"), hang],
      ],
    });
    const run = newRun();
    const answer = await post(server, { message: "Hi", stream: true, run }, { headers: tokenHeader("ada") });
    for (const [token, code] of [
      ["bob", 404],
      [undefined, 404],
      ["expired", 401],
      ["broken", 500],
      ["ada", 200],
    ] as const) {
      assert.equal(await read(server, run, token), code, token);
    }
    await answer.body?.cancel();
  });
}

test("two users may give one name to different runs, and each gets their own", async (t) => {
  const server = await start(t, { turns: [[say("For Ada")], [say("For Bob")]] });
  const run = newRun();
  assert.equal((await ask(t, "sse", server, { token: "ada", run })).data, "For Ada");
  assert.equal((await ask(t, "sse", server, { token: "bob", run })).data, "For Bob");
  assert.equal((await ask(t, "socket", server, { token: "ada", run })).data, "For Ada");
});

test("a cancel that comes before its message ends only the same user's", async (t) => {
  const server = await start(t, { turns: [[say("Fine")]] });
  const run = newRun();
  await fetch(`${server.url}/api/chat/runs/${run}/cancel`, { method: "POST", headers: tokenHeader("bob") });
  assert.equal(endOf(await ask(t, "sse", server, { token: "ada", run })), "stop");
  assert.equal(endOf(await ask(t, "sse", server, { token: "bob", run })), "stopped");
});

/** Sends a token, which gets no response. */
const signIn = (client: SocketClient, token: string) => client.send({ type: "authenticate", token });

test("on a socket, the next user continues nothing of the one before, and what nobody began goes on", async (t) => {
  const server = await start(t);
  const client = await connect(t, server.socketUrl);
  await client.run({ message: "1" });
  signIn(client, "ada");
  const first = lastOf(await client.run({ message: "2" }));
  assert.equal(first.state?.conversation_history?.length, 4);
  signIn(client, "bob");
  for (let round = 0; round < 2; round++) {
    assert.equal(endOf(lastOf(await client.run({ message: "And?" }))), "conversation_expired");
  }
  assert.equal(endOf(lastOf(await client.run({ message: "And?", state: first.state }))), "invalid_state");
  assert.equal(lastOf(await client.run({ message: "Hi", state: {} })).state?.conversation_history?.length, 2);
  assert.equal(lastOf(await client.run({ message: "Hi" })).state?.conversation_history?.length, 4);
  signIn(client, "");
  assert.equal(endOf(lastOf(await client.run({ message: "And?" }))), "conversation_expired");
});

test("on a socket, a running answer keeps its user, and the next user's message leaves it", async (t) => {
  const going = gate();
  const server = await start(t, { turns: [[say("One"), wait(going.opened), say("Two"), hang], [say("Fine")]] });
  const client = await connect(t, server.socketUrl);
  signIn(client, "ada");
  const run = newRun();
  client.send({ message: "Hi", run });
  await client.until("token");
  signIn(client, "expired");
  going.open();
  assert.deepEqual((await client.until("token")).at(-1)?.data, "Two");
  assert.equal(endOf(lastOf(await client.run({ message: "Hi" }))), "login_required");
  signIn(client, "bob");
  assert.equal(endOf(lastOf(await client.run({ message: "Hi", state: {} }))), "stop");
  client.send({ type: "resume", run, after: 0 });
  assert.equal(endOf(lastOf(await client.until("error"))), "run_not_found");
  signIn(client, "ada");
  client.send({ type: "resume", run, after: 0 });
  await client.until("token");
  signIn(client, "expired");
  client.send({ type: "stop" });
  assert.equal(endOf(lastOf(await client.until("done"))), "stopped");
});

test("a token that expires in mid-answer lets the answer end, and then neither resumes nor continues it", async (t) => {
  let isExpired = false;
  const authenticate: Authenticate = (request) => byToken({ ...request, token: isExpired ? "expired" : request.token });
  const going = gate();
  const server = await start(t, { authenticate, turns: [[say("One"), wait(going.opened), say("Two")], [say("Fine")]] });
  const run = newRun();
  const answer = await post(server, { message: "Hi", stream: true, run }, { headers: tokenHeader("ada") });
  isExpired = true;
  going.open();
  const { state } = terminal(readEventStream(await answer.text()));
  assert.equal(await status(fetch(`${server.url}/api/chat/runs/${run}`, { headers: tokenHeader("ada") })), 401);
  for (const how of TRANSPORTS)
    assert.equal(endOf(await ask(t, how, server, { token: "ada", state })), "login_required");
  isExpired = false;
  assert.equal(endOf(await ask(t, "json", server, { token: "ada", state })), "stop");
});

test("a large message is refused before it is parsed, over HTTP before it is read", async (t) => {
  const server = await start(t);
  const message = "x".repeat(900_000);
  for (const how of TRANSPORTS)
    assert.equal(endOf(await ask(t, how, server, { token: "expired", message })), "login_required");
  const socket = await connect(t, server.socketUrl);
  signIn(socket, "ada");
  assert.equal(endOf(lastOf(await socket.run({ message }))), "stop");
});

test("a socket from before authenticate came is closed with its next message, so that its client connects again", async (t) => {
  const server = await start(t, { authenticate: undefined });
  const client = await connect(t, server.socketUrl);
  await client.run({ message: "Hi" });
  await server.server.replaceAgent({
    agent: checkAgent({ name: "Acme Support", model: "demo" }),
    authenticate: byToken,
  });
  client.send({ message: "Hi" });
  assert.equal((await client.closed).code, 1001);
  assert.equal(endOf(await ask(t, "socket", server, { token: "expired" })), "login_required");
});

// Limits

const PROXY = { PARLEY_TRUSTED_PROXIES: "127.0.0.1" };
const from = (address: string, token?: string) => ({ headers: { "x-forwarded-for": address, ...tokenHeader(token) } });

test("a user has a rate of their own, from wherever they send", async (t) => {
  const server = await start(t, { env: { PARLEY_RATE_PER_USER: "2" } });
  const ends = [];
  for (const token of ["ada", "ada", "ada", "bob"]) ends.push(endOf(await ask(t, "json", server, { token })));
  ends.push(endOf(await ask(t, "socket", server, { token: "ada" })));
  for (let round = 0; round < 3; round++) ends.push(endOf(await ask(t, "sse", server, {})));
  assert.deepEqual(ends, ["stop", "stop", "rate_limited", "stop", "rate_limited", "stop", "stop", "stop"]);
});

test("a user has slots of their own", async (t) => {
  const server = await start(t, { env: { PARLEY_MAX_RUNS_PER_USER: "1" }, turns: [[hang], [say("Fine")]] });
  const first = await post(server, { message: "Hi", stream: true }, { headers: tokenHeader("ada") });
  assert.equal(endOf(await ask(t, "json", server, { token: "ada" })), "rate_limited");
  assert.equal(endOf(await ask(t, "json", server, { token: "bob" })), "stop");
  await first.body?.cancel();
});

test("a refused token counts as a message of its address, whatever it was to open; beyond the rate nobody is asked", async (t) => {
  let asked = 0;
  const authenticate: Authenticate = (request) => {
    asked++;
    return byToken(request);
  };
  const { url } = await start(t, { authenticate, env: { ...PROXY, PARLEY_RATE_PER_ADDRESS: "3" } });
  const cancel = (address: string, token: string) =>
    status(fetch(`${url}/api/chat/runs/${newRun()}/cancel`, { method: "POST", ...from(address, token) }));
  const codes = [];
  for (let round = 0; round < 2; round++) codes.push(await cancel("203.0.113.1", "expired"));
  codes.push(await status(post({ url }, { message: "Hi", stream: false }, from("203.0.113.1", "expired"))));
  assert.deepEqual(codes, [401, 401, 401]);
  assert.equal(await cancel("203.0.113.1", "ada"), 429);
  assert.equal(await status(post({ url }, { message: "Hi", stream: false }, from("203.0.113.1", "ada"))), 429);
  assert.equal(asked, 3);
  assert.equal(await status(post({ url }, { message: "Hi", stream: false }, from("203.0.113.2", "ada"))), 200);
});

test("of many resumes at once, no more are asked who they are than may be refused one after another", async (t) => {
  const all = gate();
  let asked = 0;
  const authenticate: Authenticate = async () => {
    asked++;
    await all.opened;
    throw new Unauthorized();
  };
  const { url, server } = await start(t, { authenticate, env: { ...PROXY, PARLEY_RATE_PER_ADDRESS: "3" } });
  let arrived = 0;
  server.http.on("request", () => ++arrived === 60 && all.open());
  const guess = () => status(fetch(`${url}/api/chat/runs/${newRun()}`, from("203.0.113.1", "guess")));
  const codes = new Set(await Promise.all(Array.from({ length: 60 }, guess)));
  assert.deepEqual([...codes].sort(), [401, 429]);
  assert.equal(asked, 3);
});

// GET /api/info

test("/api/info names the user in 22 characters, the same after a restart, and another for another agent", async (t) => {
  const idOf = async (options: ServerOptions, token?: string) => {
    const { url } = await start(t, options);
    const answer = await fetch(`${url}/api/info`, { headers: tokenHeader(token) });
    assert.equal(answer.headers.get("cache-control"), "no-store");
    return JSON.parse(await answer.text());
  };
  const { user } = await idOf({}, "ada");
  assert.match(user, /^[\w-]{22}$/);
  assert.equal((await idOf({ env: { PARLEY_STATE_SECRET: "another secret" } }, "ada")).user, user);
  assert.notEqual((await idOf({}, "bob")).user, user);
  assert.notEqual((await idOf({ agent: { id: "other" } }, "ada")).user, user);
  for (const [options, token, expected] of [
    [{}, undefined, {}],
    [{}, "expired", { login_required: true }],
    [{}, "broken", { user_pending: true }],
    [{ authenticate: undefined }, "ada", {}],
  ] as const) {
    const info = Object.entries(await idOf(options, token));
    assert.deepEqual(Object.fromEntries(info.filter(([name]) => /user|login/.test(name))), expected);
  }
});

test("/api/info has the name that authenticate returns, in one line of at most 100 characters, and no other value", async (t) => {
  for (const [name, shown] of [
    ["Ada Lovelace", "Ada Lovelace"],
    ["Ada\n\u202eLove\u0000lace ", "Ada Love lace"],
    ["x".repeat(101), `${"x".repeat(99)}…`],
    [" \n", undefined],
    [{ first: "Ada" }, undefined],
    [undefined, undefined],
  ]) {
    const { url } = await start(t, { authenticate: () => ({ id: "ada", name, card: "secret" }) });
    const { user, user_name, ...info } = await (await fetch(`${url}/api/info`)).json();
    assert.deepEqual([user.length, user_name], [22, shown]);
    assert.doesNotMatch(JSON.stringify(info) + (await (await fetch(url)).text()), /Ada|secret/);
  }
});

test("/api/info asks who is there within a rate of its own, which takes nothing from the messages and gets none from them", async (t) => {
  let asked = 0;
  const authenticate: Authenticate = (request) => {
    asked++;
    return byToken(request);
  };
  const server = await start(t, { authenticate, env: { ...PROXY, PARLEY_RATE_PER_ADDRESS: "2" } });
  const infoFor = async (more: Record<string, string> = {}) => {
    const headers = { ...from("203.0.113.1", "ada").headers, ...more };
    const { name, user, user_pending } = JSON.parse(await (await fetch(`${server.url}/api/info`, { headers })).text());
    return [name, typeof user, user_pending];
  };
  const pending = ["Acme Support", "undefined", true];
  // Sent by an image on another site, which could otherwise use up the rate limit of its visitors.
  for (const site of ["cross-site", "same-site", "anything"]) {
    for (let round = 0; round < 3; round++) assert.deepEqual(await infoFor({ "sec-fetch-site": site }), pending);
  }
  assert.equal(asked, 0);
  const seen = [
    await infoFor({ "sec-fetch-site": "cross-site", origin: "http://localhost:3000" }),
    await infoFor({ "sec-fetch-site": "same-origin" }),
    await infoFor({ "sec-fetch-site": "none" }),
  ];
  const known = ["Acme Support", "string", undefined];
  assert.deepEqual(seen, [known, known, pending]);
  const send = () => status(post(server, { message: "Hi", stream: false }, from("203.0.113.1", "ada")));
  assert.deepEqual([await send(), await send(), await send()], [200, 200, 429]);
  assert.equal(asked, 4);
});

test("the page at / says of the user only that there is one to ask for, and nothing where nobody is", async (t) => {
  const pending = async (options: ServerOptions) => {
    const { url } = await start(t, options);
    const html = await (await fetch(url, { headers: tokenHeader("ada") })).text();
    assert.doesNotMatch(html, /"user":|"login_required":/);
    return html.includes('"user_pending":true');
  };
  assert.deepEqual([await pending({}), await pending({ authenticate: undefined })], [true, false]);
});

// Several processes

testWithRedis(
  "over Redis, states, runs and rates are the user's at every process, and no key shows an id",
  async (t, redis) => {
    const env = { PARLEY_RATE_PER_USER: "4" };
    const turns = [[say("One")], [say("Two"), hang], [say("Three")]];
    const [one, two] = await startTwo(t, redis, { authenticate: byToken, turns, env });
    const { state } = await ask(t, "json", one, { token: "ada-lovelace" });
    assert.equal(endOf(await ask(t, "json", two, { token: "bob", state })), "invalid_state");
    const run = newRun();
    const answer = await post(one, { message: "Hi", stream: true, run }, { headers: tokenHeader("ada-lovelace") });
    for (const [, read] of READERS) {
      assert.equal(await read(two, run, "bob"), 404);
      assert.equal(await read(two, run, "ada-lovelace"), 200);
    }
    await answer.text();
    const keys = await redis.command("KEYS", "*");
    assert.match(keys, /rate:/);
    assert.doesNotMatch(keys, /lovelace/);
    const ends = [];
    for (let round = 0; round < 3; round++) {
      ends.push(endOf(await ask(t, "json", round % 2 ? one : two, { token: "ada-lovelace", state })));
    }
    assert.deepEqual(ends, ["stop", "stop", "rate_limited"]);
  },
);
