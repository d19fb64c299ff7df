/** Which web sites may use the server: one policy for CORS, WebSockets and frames. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { post } from "../support/chat-transports.ts";
import { chatRequest, connectRaw } from "../support/raw-connection.ts";
import { say } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { type Cleanup, type ServerOptions, startServer } from "../support/start-server.ts";

const KEY = { PARLEY_API_KEY: "key-of-a-test" };
const BEARER = { authorization: "Bearer key-of-a-test" };
const LISTED = { PARLEY_ALLOWED_ORIGINS: "https://Shop.example:443, http://b.example:8000/" };
const SITE = "https://shop.example";
const EVIL = "https://evil.example";

interface Rule {
  name: string;
  options: Pick<ServerOptions, "env" | "host">;
  allowed: string[];
  refused: string[];
  ancestors: string;
  /** Whether `access-control-allow-origin` is `*` for an allowed site. */
  wildcard: boolean;
}

const RULES: Rule[] = [
  {
    name: "with no key on a loopback address, only pages of this machine",
    options: {},
    allowed: ["http://localhost:3000", "https://localhost", "http://127.0.0.1", "http://[::1]:9"],
    refused: [
      EVIL,
      "null",
      "http://evil.localhost",
      "http://localhost.evil.example",
      "http://127.0.0.1.evil.example",
      "file://",
    ],
    ancestors: "'self' http://localhost:* http://127.0.0.1:* https://localhost:* https://127.0.0.1:*",
    wildcard: false,
  },
  {
    name: "with a key, every site",
    options: { env: KEY },
    allowed: [EVIL, "null", "http://localhost:3000"],
    refused: [],
    ancestors: "*",
    wildcard: true,
  },
  {
    name: "with no key behind a proxy on the same machine, pages of this machine and its own",
    options: { env: { PARLEY_TRUSTED_PROXIES: "127.0.0.1" } },
    allowed: ["http://localhost:3000"],
    refused: [EVIL, "null"],
    ancestors: "'self' http://localhost:* http://127.0.0.1:* https://localhost:* https://127.0.0.1:*",
    wildcard: false,
  },
  {
    name: "listening publicly, every site",
    options: { host: "0.0.0.0" },
    allowed: [EVIL, "null"],
    refused: [],
    ancestors: "*",
    wildcard: true,
  },
  {
    name: "with a list and a key, the listed ones, compared as origins",
    options: { env: { ...KEY, ...LISTED } },
    allowed: [SITE, "http://b.example:8000"],
    refused: [EVIL, "null", "http://shop.example", "https://shop.example:444", "http://localhost:3000"],
    ancestors: "'self' https://shop.example http://b.example:8000",
    wildcard: false,
  },
  {
    name: "with a list and no key, the listed ones",
    options: { env: LISTED },
    allowed: [SITE],
    refused: [EVIL, "http://localhost:3000"],
    ancestors: "'self' https://shop.example http://b.example:8000",
    wildcard: false,
  },
  {
    name: "with apps in the list, each with its scheme, host and port, whatever their case",
    options: {
      env: {
        PARLEY_ALLOWED_ORIGINS:
          "Capacitor://localhost, ionic://App.Example:8100/, tauri://localhost, chrome-extension://abcdefghijklmnop, safari-web-extension://4B1F-0A, https://Shop.example:443",
      },
    },
    allowed: [
      "capacitor://localhost",
      "ionic://app.example:8100",
      "tauri://localhost",
      "chrome-extension://abcdefghijklmnop",
      "safari-web-extension://4B1F-0A",
      SITE,
    ],
    refused: [
      "ionic://localhost",
      "capacitor://localhost:8100",
      "https://localhost",
      "app://-",
      "null",
      "file://",
      EVIL,
    ],
    ancestors:
      "'self' capacitor://localhost ionic://app.example:8100 tauri://localhost chrome-extension://abcdefghijklmnop safari-web-extension://4b1f-0a https://shop.example",
    wildcard: false,
  },
  {
    name: "with * and an app, whose scheme * is not for in frames",
    options: { env: { PARLEY_ALLOWED_ORIGINS: "*, app://-" } },
    allowed: [EVIL, "null", "app://-", "tauri://localhost"],
    refused: [],
    ancestors: "* app://-",
    wildcard: true,
  },
  {
    name: "with * and no key, every site",
    options: { env: { PARLEY_ALLOWED_ORIGINS: "*" } },
    allowed: [EVIL],
    refused: [],
    ancestors: "*",
    wildcard: true,
  },
];

for (const { name, options, allowed, refused, ancestors, wildcard } of RULES) {
  test(`${name}: REST, preflight, socket and frames agree`, async (t) => {
    const count = (allowed.length + 1) * 2;
    const turns = Array.from({ length: count }, () => [say("Welcome")]);
    const server = await startServer(t, { turns, ...options });
    for (const origin of [...allowed, server.url]) {
      const answer = await post(server, { message: "Hi", stream: false }, { headers: { origin, ...BEARER } });
      assert.equal(answer.status, 200, origin);
      const told = answer.headers.get("access-control-allow-origin");
      assert.equal(told, wildcard ? "*" : origin);
      assert.equal(answer.headers.get("vary"), wildcard ? null : "origin");
      assert.equal(answer.headers.get("access-control-allow-credentials"), null);
      assert.equal((await preflight(server.url, origin)).status, 204);
      assert.equal(await greet(t, server.socketUrl, origin), "Welcome");
    }
    for (const origin of refused) {
      const answer = await post(server, { message: "Hi", stream: false }, { headers: { origin, ...BEARER } });
      assert.equal(answer.status, 403, origin);
      assert.equal(answer.headers.get("access-control-allow-origin"), null);
      assert.match(await answer.text(), /PARLEY_ALLOWED_ORIGINS/);
      const refusal = await preflight(server.url, origin);
      assert.equal(refusal.status, 403);
      assert.equal(refusal.headers.get("access-control-allow-origin"), null);
      assert.equal(await greet(t, server.socketUrl, origin), 4403);
    }
    for (const [path, value] of [
      ["/?embed=1", ancestors],
      ["/", "'self'"],
      ["/?embed=0", "'self'"],
    ]) {
      const policy = (await fetch(server.url + path)).headers.get("content-security-policy") ?? "";
      assert.match(policy, new RegExp(`frame-ancestors ${value?.replaceAll("*", "\\*")};`));
    }
  });
}

function preflight(url: string, origin: string): Promise<Response> {
  return fetch(`${url}/api/chat`, {
    method: "OPTIONS",
    headers: {
      origin,
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization,content-type",
    },
  });
}

/** The agent's answer to a page of this origin, or the close code of its socket. */
async function greet(t: Cleanup, url: string, origin: string): Promise<string | number> {
  const client = await connect(t, `${url}?key=key-of-a-test`, { origin });
  const last = (await client.run({ message: "Hi" })).at(-1);
  if (last?.type === "done") return last.data;
  return (await client.closed).code;
}

test("a preflight says which methods and headers may be used", async (t) => {
  const server = await startServer(t, { turns: [], env: { ...KEY, ...LISTED } });
  const { status, headers } = await preflight(server.url, SITE);
  assert.equal(status, 204);
  assert.equal(headers.get("access-control-allow-methods"), "POST");
  const named = headers.get("access-control-allow-headers")?.split(", ");
  for (const name of ["authorization", "content-type"]) assert.ok(named?.includes(name));
  assert.match(headers.get("access-control-max-age") ?? "", /^\d+$/);
});

test("refusals of the key and of the body can be read by an allowed page", async (t) => {
  const server = await startServer(t, { turns: [], env: { ...KEY, ...LISTED } });
  const headers = { origin: SITE };
  for (const answer of [
    await post(server, {}, { headers }),
    await post(server, {}, { headers: { ...headers, ...BEARER } }),
  ]) {
    assert.equal(answer.headers.get("access-control-allow-origin"), SITE);
    assert.match(answer.headers.get("access-control-expose-headers") ?? "", /retry-after/);
  }
});

test("OPTIONS that is no preflight names the methods", async (t) => {
  const server = await startServer(t, { turns: [] });
  const answer = await fetch(`${server.url}/api/chat`, { method: "OPTIONS" });
  assert.deepEqual([answer.status, answer.headers.get("allow")], [204, "POST, OPTIONS"]);
});

test("a site whose name resolves to 127.0.0.1 does not become our own by its Host (DNS rebinding)", async (t) => {
  for (const env of [{}, LISTED]) {
    const server = await startServer(t, { turns: [], env });
    const origin = `http://rebound.example:${server.port}`;
    const raw = await connectRaw(t, server);
    const [first = "", , ...more] = chatRequest({ message: "Hi", stream: false }, `origin: ${origin}`);
    await raw.write(first, `host: rebound.example:${server.port}`, ...more);
    assert.equal((await raw.answer()).status, 403);
    const headers = { host: `rebound.example:${server.port}` };
    const client = await connect(t, server.socketUrl, { origin, headers });
    assert.equal((await client.closed).code, 4403);
  }
});

test("an app's page is not the chat page, though its host is the server's", async (t) => {
  const env = { PARLEY_CHAT_KEY: "key-of-a-test" };
  const server = await startServer(t, { turns: [], env });
  const headers = { origin: `capacitor://127.0.0.1:${server.port}`, ...BEARER };
  assert.equal((await post(server, { message: "Hi", stream: false }, { headers })).status, 403);
});

test("a page from a file is told to be served, since no setting can name it", async (t) => {
  const server = await startServer(t, { turns: [], env: LISTED });
  const answer = await post(server, { message: "Hi", stream: false }, { headers: { origin: "null" } });
  assert.match(await answer.text(), /Serve the page from a web server/);
});

const SHOP = { env: { PARLEY_ALLOWED_ORIGINS: SITE } };

for (const [what, options, more, others] of [
  ["a loopback address without keys and proxies", {}, [], 403],
  ["such an address, of which a site may use the server", SHOP, ["shop.example", "Shop.Example:443"], 403],
  ["such an address, which every site may use", { env: { PARLEY_ALLOWED_ORIGINS: "*" } }, [], 200],
  ["a loopback address behind a proxy", { env: { PARLEY_TRUSTED_PROXIES: "127.0.0.1" } }, [], 200],
  ["a public address", { host: "0.0.0.0" }, [], 200],
] as const) {
  test(`without a key on ${what}, other names than those of the machine get ${others} (DNS rebinding)`, async (t) => {
    const server = await startServer(t, { turns: [], ...options });
    const raw = await connectRaw(t, server);
    const statusFor = async (path: string, host: string, ...lines: string[]) => {
      await raw.write(`GET ${path} HTTP/1.1`, `host: ${host}`, ...lines, "", "");
      const { status, body } = await raw.answer();
      if (status !== 200) assert.match(body, /PARLEY_API_KEY.*PARLEY_TRUSTED_PROXIES.*PARLEY_ALLOWED_ORIGINS/);
      return status;
    };
    const rebound = `rebound.example:${server.port}`;
    for (const path of ["/metrics", "/", "/?embed=1", "/api/info"]) {
      for (const host of ["localhost", `127.0.0.1:${server.port}`, "[::1]:9", "LocalHost:80", ...more]) {
        assert.equal(await statusFor(path, host), 200, host);
      }
      for (const host of [rebound, "app.localhost", "127.0.0.1.evil.example", "0.0.0.0:8080", "192.0.2.1"]) {
        assert.equal(await statusFor(path, host), others, host);
      }
    }
    for (const path of ["/health", "/health/ready", "/widget.js"]) assert.equal(await statusFor(path, rebound), 200);
    // The element on an allowed page, behind a proxy with a name of its own.
    const origin = options === SHOP ? SITE : "http://localhost:3000";
    assert.equal(await statusFor("/api/info", "chat.example", `origin: ${origin}`), 200);
  });
}

test("behind a proxy that ends TLS, the page's https origin is our own by its Host, with a chat key or the proxy named", async (t) => {
  const key = { PARLEY_CHAT_KEY: "key-of-a-test" };
  const proxy = { PARLEY_TRUSTED_PROXIES: "127.0.0.1" };
  for (const env of [{ ...key, ...LISTED }, proxy, { ...proxy, ...LISTED }]) {
    const server = await startServer(t, { turns: [[say("Welcome")]], env });
    const headers = { host: "chat.example", authorization: "Bearer key-of-a-test" };
    const client = await connect(t, server.socketUrl, { origin: "https://chat.example", headers });
    assert.equal((await client.run({ message: "Hi" })).at(-1)?.data, "Welcome");
    const other = await connect(t, server.socketUrl, { origin: EVIL, headers });
    assert.equal((await other.closed).code, 4403);
  }
});

test("/widget.js may be loaded by a page of any site", async (t) => {
  const server = await startServer(t, { turns: [], env: { ...KEY, ...LISTED } });
  const { headers } = await fetch(`${server.url}/widget.js`, { headers: { origin: EVIL } });
  assert.equal(headers.get("access-control-allow-origin"), "*");
  assert.equal(headers.get("cross-origin-resource-policy"), "cross-origin");
});
