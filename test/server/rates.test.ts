/** Rate limits per key, per address and per socket, behind a trusted proxy. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { clientAddress } from "../../server/auth/client-address.ts";
import { readSettings } from "../../server/config/settings.ts";
import { createMemoryLimiter, MemoryRates } from "../../server/limits/limiter.ts";
import { askFrom, type From } from "../support/chat-transports.ts";
import { say } from "../support/scripted-provider.ts";
import { connect, startWithClient } from "../support/socket-client.ts";
import { startServer } from "../support/start-server.ts";

const PROXY = { PARLEY_TRUSTED_PROXIES: "127.0.0.1, 10.0.0.0/8" };
const KEYS = { PARLEY_API_KEY: "api-one,api-two", PARLEY_WIDGET_KEY: "widget-key" };
const turns = Array.from({ length: 12 }, () => [say("Fine")]);

/** Settings, then requests in order: the sender and the expected status. */
const CASES: [name: string, env: Record<string, string>, asks: [From, number][]][] = [
  [
    "a key has its own bucket",
    { ...KEYS, PARLEY_RATE_PER_KEY: "2" },
    [
      [{ key: "api-one" }, 200],
      [{ key: "api-one" }, 200],
      [{ key: "api-one" }, 429],
      [{ key: "api-two" }, 200],
    ],
  ],
  [
    "an address has its own bucket, whatever key it brings",
    { ...KEYS, ...PROXY, PARLEY_RATE_PER_ADDRESS: "2" },
    [
      [{ key: "api-one", address: "203.0.113.1" }, 200],
      [{ key: "api-two", address: "203.0.113.1" }, 200],
      [{ key: "api-one", address: "203.0.113.1" }, 429],
      [{ key: "api-one", address: "203.0.113.2" }, 200],
    ],
  ],
  [
    "a widget key is worth less from one address",
    { ...KEYS, ...PROXY, PARLEY_WIDGET_RATE_PER_ADDRESS: "1" },
    [
      [{ key: "widget-key", address: "203.0.113.1" }, 200],
      [{ key: "widget-key", address: "203.0.113.1" }, 429],
      [{ key: "widget-key", address: "203.0.113.2" }, 200],
      [{ key: "api-one", address: "203.0.113.1" }, 200],
    ],
  ],
  [
    "the addresses of one IPv6 /64 are one",
    { ...PROXY, PARLEY_RATE_PER_ADDRESS: "1" },
    [
      [{ address: "2001:db8::1" }, 200],
      [{ address: "2001:db8::ffff:2" }, 429],
      [{ address: "2001:db8:0:1::1" }, 200],
    ],
  ],
  [
    "what a client writes into the header himself is not believed",
    { ...PROXY, PARLEY_RATE_PER_ADDRESS: "1" },
    [
      [{ address: "198.51.100.1, 203.0.113.1" }, 200],
      [{ address: "198.51.100.2, 203.0.113.1, 10.1.2.3" }, 429],
    ],
  ],
  [
    "a loopback address is not counted, nor is a header from where no proxy was named",
    { PARLEY_RATE_PER_ADDRESS: "1" },
    [
      [{}, 200],
      [{ address: "203.0.113.1" }, 200],
      [{ address: "203.0.113.1" }, 200],
    ],
  ],
  [
    "0 is no limit",
    { ...PROXY, ...KEYS, PARLEY_RATE_PER_ADDRESS: "0", PARLEY_RATE_PER_KEY: "0" },
    Array.from({ length: 5 }, () => [{ key: "api-one", address: "203.0.113.1" }, 200]),
  ],
];

for (const [name, env, asks] of CASES) {
  test(`${name}: ${asks.map(([, status]) => status).join(", ")}`, async (t) => {
    const server = await startServer(t, { turns, env });
    const got: number[] = [];
    for (const [from] of asks) {
      const answer = await askFrom(server, from);
      got.push(answer.status);
      const { error } = JSON.parse(await answer.text());
      assert.equal(error?.code, answer.status === 429 ? "rate_limited" : undefined);
      const wait = Number(answer.headers.get("retry-after"));
      if (answer.status === 429) assert.ok(wait >= 1 && wait <= 60, `${wait} s`);
    }
    assert.deepEqual(
      got,
      asks.map(([, status]) => status),
    );
    assert.equal(server.model.asked.length, got.filter((status) => status === 200).length);
  });
}

test("Retry-After is exact: a token is there then, and not before", () => {
  let now = 1_000;
  const rates = new MemoryRates(() => now);
  const take = () => rates.take([{ name: "a", perMinute: 4 }]);
  // Four per minute: four at once, then one every 15 seconds.
  assert.deepEqual([1, 2, 3, 4, 5].map(take), [0, 0, 0, 0, 15_000]);
  now += 14_999;
  assert.equal(Math.round(take()), 1);
  now += 1;
  assert.equal(take(), 0);
  assert.equal(take(), 15_000);
  now += 60_000;
  assert.deepEqual([1, 2, 3, 4, 5].map(take), [0, 0, 0, 0, 15_000]);
});

test("of several buckets one token each is taken, or none at all", () => {
  const rates = new MemoryRates(() => 0);
  const [full, empty] = [
    { name: "full", perMinute: 2 },
    { name: "empty", perMinute: 1 },
  ];
  assert.equal(rates.take([empty]), 0);
  for (const _ of [1, 2, 3]) assert.equal(rates.take([full, empty]), 60_000);
  assert.deepEqual([rates.take([full]), rates.take([full]), rates.take([full])], [0, 0, 30_000]);
});

test("who has not come for a minute is forgotten, and the number of the remembered is bounded", () => {
  let now = 0;
  const rates = new MemoryRates(() => now);
  const take = (name: string) => rates.take([{ name, perMinute: 10 }]);
  for (let id = 0; id < 101_000; id++) take(`${id}`);
  assert.ok(rates.size <= 100_001, `${rates.size}`);
  now += 60_001;
  take("one");
  assert.equal(rates.size, 1);
});

test("a socket beyond its rate is told how long to wait, and closed with 4429 if it goes on", async (t) => {
  const env = { PARLEY_RATE_PER_SOCKET: "3" };
  const { client } = await startWithClient(t, { turns: [[say("Fine")]], env });
  await client.run({ message: "Hi" });
  for (const _ of [1, 2]) {
    client.send({ type: "clear" });
    assert.equal((await client.next()).type, "cleared");
  }
  for (let refused = 0; refused < 20; refused++) {
    client.send({ type: "clear" });
    const event = await client.next();
    assert.ok(event.type === "error");
    assert.equal(event.code, "rate_limited");
    assert.equal(event.retryable, true);
    assert.ok(Number(event.retry_after) >= 1 && Number(event.retry_after) <= 20);
  }
  assert.deepEqual(await client.closed, { code: 4429, reason: "rate_limited" });
});

test("messages of sockets and of REST come out of the same bucket", async (t) => {
  const server = await startServer(t, { turns, env: { ...PROXY, PARLEY_RATE_PER_ADDRESS: "2" } });
  const headers = { "x-forwarded-for": "203.0.113.1" };
  const client = await connect(t, server.socketUrl, { headers });
  assert.equal((await client.run({ message: "Hi" })).at(-1)?.type, "done");
  assert.equal((await askFrom(server, { address: "203.0.113.1" })).status, 200);
  const last = (await client.run({ message: "Hi" })).at(-1);
  assert.equal(last?.type === "error" && last.code, "rate_limited");
  client.send({ type: "clear" });
  assert.equal((await client.next()).type, "cleared", "forgetting is not counted with the messages");
});

test("a caller that stopped waiting as the last slot was left frees no slot of those who come next", async () => {
  const limiter = createMemoryLimiter();
  const pool = { name: "runs", max: 1 };
  const leave = await limiter.acquire(pool);
  const client = new AbortController();
  const waiting = assert.rejects(limiter.acquire(pool, { maxWaiting: 1, maxMs: 1000, signal: client.signal }));
  client.abort();
  leave?.();
  assert.ok(await limiter.acquire(pool));
  await waiting;
  assert.equal(await limiter.acquire(pool), undefined, "a second slot of a pool that has one");
});

test("callers that wait for a slot get it in the order in which they came", async () => {
  const limiter = createMemoryLimiter();
  const pool = { name: "runs", max: 1 };
  const waiting = { maxWaiting: 10, maxMs: 10_000, signal: new AbortController().signal };
  const release = await limiter.acquire(pool);
  const order: number[] = [];
  const callers = [0, 1, 2, 3, 4].map(async (caller) => {
    const own = await limiter.acquire(pool, waiting);
    order.push(caller);
    setImmediate(() => own?.());
  });
  release?.();
  await Promise.all(callers);
  assert.deepEqual(order, [0, 1, 2, 3, 4]);
});

// The address of a client: which headers of which proxies are trusted.

const PROXIES = "10.0.0.0/8, fd00::/8, 2001:db8::1";
const XFF = readSettings({ PARLEY_TRUSTED_PROXIES: PROXIES });
const FORWARDED = readSettings({ PARLEY_TRUSTED_PROXIES: PROXIES, PARLEY_FORWARDED_HEADER: "Forwarded" });

const ADDRESSES: [name: string, peer: string, header: string | undefined, address: string][] = [
  ["no header", "10.0.0.1", undefined, "10.0.0.1"],
  ["an empty header", "10.0.0.1", "", "10.0.0.1"],
  ["a peer that is no named proxy", "203.0.113.9", "198.51.100.1", "203.0.113.9"],
  ["one hop", "10.0.0.1", "198.51.100.1", "198.51.100.1"],
  ["a proxy on a socket of both kinds", "::ffff:10.0.0.1", "198.51.100.1", "198.51.100.1"],
  ["what the client wrote itself, left", "10.0.0.1", "1.1.1.1, 198.51.100.1", "198.51.100.1"],
  ["two proxies", "10.0.0.1", "198.51.100.1, 10.0.0.2", "198.51.100.1"],
  ["proxies only", "10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"],
  ["a name in the middle", "10.0.0.1", "198.51.100.1, unknown, 10.0.0.2", "10.0.0.2"],
  ["an address with a port", "10.0.0.1", "198.51.100.1:4711", "198.51.100.1"],
  ["IPv6 in brackets with a port", "fd00::1", "[2001:DB8::2]:4711", "2001:db8::2"],
  ["IPv4 in IPv6", "2001:db8::1", "::ffff:198.51.100.1", "198.51.100.1"],
  ["half an address", "10.0.0.1", "198.51.100", "10.0.0.1"],
  ["the other header's form", "10.0.0.1", "for=198.51.100.1", "10.0.0.1"],
  ["hops without end", "10.0.0.1", `1.1.1.1${", 10.0.0.2".repeat(3000)}`, "10.0.0.2"],
];

const FORWARDED_CASES: typeof ADDRESSES = [
  ["one element", "10.0.0.1", "for=198.51.100.1", "198.51.100.1"],
  ["other fields around it", "10.0.0.1", "proto=https; For=198.51.100.1;by=10.0.0.1", "198.51.100.1"],
  ["a quoted address with a port", "10.0.0.1", 'for="[2001:db8::2]:4711"', "2001:db8::2"],
  ["two elements", "10.0.0.1", "for=1.1.1.1, for=198.51.100.1", "198.51.100.1"],
  ["a field whose name ends in for", "10.0.0.1", "x-for=1.1.1.1", "10.0.0.1"],
  ["an element without it", "10.0.0.1", "for=1.1.1.1, proto=https", "10.0.0.1"],
  ["a made-up name", "10.0.0.1", "for=1.1.1.1, for=_hidden", "10.0.0.1"],
  ["a quote that the client left open", "10.0.0.1", 'for="1.1.1.1, for=198.51.100.1', "198.51.100.1"],
  ["the other header's form", "10.0.0.1", "198.51.100.1", "10.0.0.1"],
];

for (const [header, settings, cases] of [
  ["X-Forwarded-For", XFF, ADDRESSES],
  ["Forwarded", FORWARDED, FORWARDED_CASES],
] as const) {
  for (const [name, peer, value, address] of cases) {
    test(`${header} with ${name} means ${address}`, () => {
      assert.equal(clientAddress(peer, value, settings), address);
    });
  }
}

for (const entry of [
  "proxy.local",
  "10.0.0.0/33",
  "10.0.0.0/",
  "10.0.0.0/8/8",
  "10.0.0",
  "fd00::/129",
  "/8",
  "10.0.0.0/-1",
]) {
  test(`PARLEY_TRUSTED_PROXIES with ${entry} stops the start and says so`, () => {
    assert.throws(() => readSettings({ PARLEY_TRUSTED_PROXIES: `10.0.0.1, ${entry}` }), {
      name: "ConfigError",
      message: new RegExp(`has "${entry.replaceAll(".", "\\.")}"`),
    });
  });
}
