/** Unit tests of the parts that use Redis. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { NumberedEvent } from "../../server/protocol/events.ts";
import { RedisConnection, type RedisPackage } from "../../server/redis/connection.ts";
import { EventPublisher } from "../../server/redis/event-publisher.ts";
import { RedisRunStore } from "../../server/redis/run-store.ts";
import { RedisStateStore } from "../../server/redis/state-store.ts";
import { EARLY_CANCELS, type MarkKind } from "../../server/runs/run-store.ts";
import { post } from "../support/chat-transports.ts";
import { run, start } from "../support/command.ts";
import { freePort } from "../support/free-port.ts";
import { NO_REDIS, type RedisServer, startRedis, testWithRedis } from "../support/redis-server.ts";
import { say } from "../support/scripted-provider.ts";
import { type Cleanup, startServer } from "../support/start-server.ts";

async function connected(
  t: Cleanup,
  { url }: RedisServer,
  onChange: (isUp: boolean) => void = () => {},
): Promise<RedisConnection> {
  const redis = new RedisConnection((await import("@redis/client")) as unknown as RedisPackage, {
    url,
    prefix: "parley:",
    agentId: "acme",
    onChange,
  });
  t.after(() => redis.close());
  await redis.connect();
  return redis;
}

const LIMITS = { maxBytes: 1000, keepMs: 60_000, graceMs: 60_000 };

const openRun = (publisher: EventPublisher, stream: string, claimKey = "claim") =>
  publisher.open({ stream, claimKey, claim: "mine", kept: () => [], onWritten: () => {}, onTaken: () => {} });

for (const [moment, sent] of [
  ["before a command has left", () => Promise.resolve()],
  ["while a command is under way", () => new Promise((resolve) => setImmediate(resolve))],
] as const) {
  testWithRedis(`a pause of the event loop ${moment} does not make Redis away`, async (t, redis) => {
    const changes: boolean[] = [];
    const connection = await connected(t, redis, (isUp) => changes.push(isUp));
    const answer = connection.command("GET", "nothing");
    await sent();
    const until = performance.now() + 700;
    while (performance.now() < until);
    assert.equal(await answer, null);
    assert.deepEqual(changes, [true]);
  });
}

testWithRedis("a large state comes in pieces, between which other commands have their turn", async (t, redis) => {
  const connection = await connected(t, redis);
  const store = new RedisStateStore(connection);
  const seen = await redis.monitor(t);
  // A character of two UTF-16 units, so that a piece must not end anywhere.
  const large = `"${"👋".repeat(1_000_000)}"`;
  let isSaving = true;
  const saving = store.save("a", large).finally(() => {
    isSaving = false;
  });
  let others = 0;
  for (; isSaving; others++) await connection.command("PING");
  assert.equal(await saving, true);
  const { json, version } = (await store.load("a")) ?? {};
  assert.ok(json === large);
  const pieces = seen()
    .split("\n")
    .filter((line) => /"SET" "parley:/.test(line)).length;
  assert.ok(others > pieces / 2 && pieces > 5, `${others} commands beside ${pieces} pieces`);
  assert.equal(await store.save("a", "{}", version), true);
  // The rest of the previous state expires soon.
  const keys = (await redis.command("KEYS", "parley:*state*:*:*")).match(/parley:\S+/g) ?? [];
  const times = await Promise.all(keys.map((key) => redis.command("PTTL", key)));
  assert.ok(times.every((time) => Number(time.slice(1)) <= 10_000));
  assert.equal(await store.save("a", large, version), false);
  assert.equal((await store.load("a"))?.json, "{}");
});

testWithRedis("what Redis could not take is newer than what it has, until it is followed", async (t, redis) => {
  const connection = await connected(t, redis);
  const store = new RedisStateStore(connection);
  await store.save("a", "1");
  const first = await store.load("a");
  redis.freeze();
  assert.equal(await store.save("a", "2", first?.version), true);
  assert.equal(await store.save("a", "another", first?.version), false);
  const second = await store.load("a");
  assert.equal(second?.json, "2");
  const returned = new Promise<void>((resolve) => connection.onReturn(resolve));
  redis.thaw();
  await returned;
  assert.equal(await store.save("a", "3", first?.version), false);
  assert.equal(await store.save("a", "3", second?.version), true);
  assert.equal((await new RedisStateStore(connection).load("a"))?.json, "3");
});

test("runs that have more to write each time do not keep others from being written", async () => {
  const written = new Set<string>();
  const token = (id: number): NumberedEvent => ({ type: "token", data: "x", id });
  let last = 1;
  // While a command runs, the first runs get more events, which could be written next, too.
  const busy = {
    async script(_source: string, keys: readonly string[]): Promise<number[][]> {
      for (const [index, key] of keys.entries()) if (index % 2 === 0) written.add(key);
      if (last < 20) {
        last++;
        for (const run of runs.slice(0, 100)) run.add([token(last)]);
        void publisher.flush();
      }
      rounds.push(written.size);
      return [[], []];
    },
  } as unknown as RedisConnection;
  const rounds: number[] = [];
  const publisher = new EventPublisher(busy, LIMITS);
  const runs = Array.from({ length: 150 }, (_, index) => openRun(publisher, `stream ${index}`));
  for (const run of runs) run.add([token(1)]);
  await publisher.flush();
  assert.deepEqual(rounds.slice(0, 2), [100, 150]);
});

test("a run that is over is written without waiting for others that go on", async () => {
  let commands = 0;
  // While a command runs, the other run gets more events.
  const busy = {
    async script(): Promise<number[][]> {
      if (++commands < 20) {
        other.add([{ type: "token", data: "x", id: commands + 1 }]);
        void publisher.flush();
      }
      return [[], []];
    },
  } as unknown as RedisConnection;
  const publisher = new EventPublisher(busy, LIMITS);
  const [other, over] = [openRun(publisher, "other"), openRun(publisher, "over")];
  other.add([{ type: "token", data: "x", id: 1 }]);
  over.add([{ type: "token", data: "x", id: 1 }]);
  await publisher.finish(over);
  assert.ok(over.isWritten);
  assert.ok(commands < 5, `${commands} commands`);
});

test("finishing a run that cannot be written ends, too", async () => {
  const away = { script: () => Promise.reject(new Error("away")) } as unknown as RedisConnection;
  const publisher = new EventPublisher(away, LIMITS);
  const run = openRun(publisher, "stream");
  run.add([{ type: "token", data: "x", id: 1 }]);
  await publisher.finish(run);
  assert.equal(run.isWritten, false);
  run.close();
});

testWithRedis("what is written to Redis a second time drives no older events out", async (t, redis) => {
  const connection = await connected(t, redis);
  const publisher = new EventPublisher(connection, LIMITS);
  const run = openRun(publisher, "stream");
  t.after(() => run.close());
  const token = (id: number, length: number): NumberedEvent => ({ type: "token", data: "x".repeat(length), id });
  run.add([token(1, 100)]);
  await publisher.flush();
  run.add([token(2, 300)]);
  redis.freeze();
  for (let time = 0; time < 4; time++) await publisher.flush();
  redis.thaw();
  while (!(await redis.command("XLEN", "stream")).startsWith(":2")) await publisher.flush();
});

testWithRedis(
  "what waits is written, also where Redis has lost what was before it, and the process, too",
  async (t, redis) => {
    const publisher = new EventPublisher(await connected(t, redis), LIMITS);
    const run = openRun(publisher, "stream");
    run.add([{ type: "token", data: "x", id: 1 }]);
    await publisher.flush();
    await redis.command("DEL", "stream");
    run.add([{ type: "token", data: "y", id: 2 }]);
    await publisher.finish(run);
    assert.match(await redis.command("XRANGE", "stream", "-", "+"), /0-2/);
  },
);

testWithRedis("a run whose keys in Redis are spoilt keeps no other from being written", async (t, redis) => {
  const publisher = new EventPublisher(await connected(t, redis), LIMITS);
  await redis.command("SADD", "spoilt-stream", "x");
  await redis.command("SADD", "spoilt-claim", "x");
  for (const [stream, claimKey] of [
    ["spoilt-stream", "first claim"],
    ["second-stream", "spoilt-claim"],
    ["third-stream", "third claim"],
  ] as const) {
    const run = openRun(publisher, stream, claimKey);
    run.add([{ type: "token", data: "x", id: 1 }]);
  }
  await publisher.flush();
  for (const stream of ["spoilt-stream", "second-stream", "third-stream"]) {
    assert.match(await redis.command("XLEN", stream), /^:1/, stream);
  }
});

testWithRedis(
  "a run that is quiet keeps its name, also when Redis has lost it, unless another has it",
  async (t, redis) => {
    let taken = 0;
    const publisher = new EventPublisher(await connected(t, redis), LIMITS);
    const run = publisher.open({
      stream: "stream",
      claimKey: "claim",
      claim: "mine",
      kept: () => [[{ type: "token", data: "x", id: 1 }]],
      onWritten: () => {},
      onTaken: () => taken++,
    });
    const renew = async () => {
      run.renew();
      await publisher.flush();
    };
    await renew();
    assert.match(await redis.command("GET", "claim"), /mine/, "before its first event");
    run.add([{ type: "token", data: "x", id: 1 }]);
    await publisher.flush();
    for (const key of ["claim", "stream"]) await redis.command("PEXPIRE", key, 1000);
    await renew();
    for (const key of ["claim", "stream"]) assert.match(await redis.command("PTTL", key), /^:[3-6]\d{4}\r/, key);
    await redis.command("DEL", "claim");
    await renew();
    assert.match(await redis.command("GET", "claim"), /mine/);
    assert.match(await redis.command("XLEN", "stream"), /^:1\r/);
    assert.equal(taken, 0);
    await redis.command("DEL", "stream");
    await renew();
    assert.match(await redis.command("XLEN", "stream"), /^:1\r/, "what Redis has lost is written again");
    await redis.command("SET", "claim", "another");
    await renew();
    assert.deepEqual([taken, run.isClosed], [1, true]);
    assert.match(await redis.command("GET", "claim"), /another/);
  },
);

const APPROVALS: MarkKind = { purpose: "approvals", max: 30, alone: "refuse" };

/** The run stores of two processes. */
async function twoStores(t: Cleanup, redis: RedisServer): Promise<[RedisRunStore, RedisRunStore]> {
  const open = async () => new RedisRunStore(await connected(t, redis), { graceMs: 60_000, maxBytes: 1000 });
  return [await open(), await open()];
}

testWithRedis("of two processes that mark one name at once exactly one gets `new`", async (t, redis) => {
  const [one, other] = await twoStores(t, redis);
  for (let round = 0; round < 20; round++) {
    for (const kind of [EARLY_CANCELS, APPROVALS]) {
      const mark = (store: RedisRunStore) => store.mark(`name ${round}`, 60_000, kind);
      const answers = await Promise.all([mark(one), mark(other), mark(one), mark(other)]);
      assert.deepEqual(answers.sort(), ["known", "known", "known", "new"]);
      assert.ok((await one.isMarked(`name ${round}`, kind)) && (await other.isMarked(`name ${round}`, kind)));
    }
  }
  assert.equal(await other.isMarked("another name", APPROVALS), false);
});

testWithRedis("marks last as long as was said, and too many for one purpose cost no other a mark", async (t, redis) => {
  const [one, other] = await twoStores(t, redis);
  const cancels = { ...EARLY_CANCELS, max: 2 };
  assert.equal(await one.mark("short", 1, APPROVALS), "new");
  for (let n = 0; n < 29; n++) await one.mark(`approval ${n}`, 60_000, APPROVALS);
  for (const name of ["a", "b", "c"]) await one.mark(name, 60_000, cancels);
  assert.deepEqual(
    await Promise.all(["a", "b", "c"].map((name) => other.isMarked(name, cancels))),
    [false, true, true],
    "the oldest gives way",
  );
  assert.equal(await other.mark("short", 60_000, APPROVALS), "new", "it was over");
  await assert.rejects(other.mark("one too many", 60_000, APPROVALS), { code: "overloaded", status: 503 });
  assert.equal(await other.mark("approval 0", 60_000, APPROVALS), "known");
});

testWithRedis("while Redis is away a process goes on with its own marks, or refuses", async (t, redis) => {
  const [one, other] = await twoStores(t, redis);
  await one.mark("name", 60_000, EARLY_CANCELS);
  await redis.kill();
  assert.equal(await one.mark("name", 60_000, EARLY_CANCELS), "known");
  assert.equal(await other.mark("name", 60_000, EARLY_CANCELS), "new", "nobody can know better");
  assert.ok(await other.isMarked("name", EARLY_CANCELS));
  const refusal = { code: "overloaded", status: 503, detail: "Redis is away." };
  await assert.rejects(one.mark("name", 60_000, APPROVALS), refusal);
  await assert.rejects(one.isMarked("name", APPROVALS), refusal);
  await redis.restart();
  const marked = async () => one.mark("name", 60_000, APPROVALS).catch(() => undefined);
  let answer = await marked();
  for (; answer === undefined; answer = await marked()) await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(answer, "new");
});

testWithRedis("while Redis takes no writes the log says so once, and says why", async (t, redis) => {
  const server = await startServer(t, { turns: [[say("A")], [say("B")]], env: { PARLEY_REDIS_URL: redis.url } });
  await redis.command("CONFIG", "SET", "maxmemory", "1");
  const refused = async () => Number(/OOM:count=(\d+)/.exec(await redis.command("INFO", "errorstats"))?.[1] ?? 0);
  while ((await refused()) < 5) await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal((await post(server, { message: "Hi", stream: false })).status, 200);
  const said = server.log.filter((record) => /Redis is/.test(record));
  assert.equal(said.length, 1);
  assert.match(said[0] ?? "", /Redis is away \(OOM\)/);
});

testWithRedis("a user in the URL; a wrong password is named in the log, and is not quoted", async (t, redis) => {
  await redis.command("ACL", "SETUSER", "parley", "on", ">the-password-of-parley", "~parley:*", "&parley:*", "+@all");
  await redis.command("ACL", "SETUSER", "default", "off");
  const url = (password: string) => ({
    env: { PARLEY_REDIS_URL: `redis://parley:${password}@127.0.0.1:${redis.port}/0` },
  });
  const server = await startServer(t, { turns: [[say("A")]], ...url("the-password-of-parley") });
  assert.match(await (await fetch(`${server.url}/metrics`)).text(), /^parley_redis_up 1$/m);
  assert.equal((await post(server, { message: "Hi", stream: false })).status, 200);
  const wrong = await startServer(t, { turns: [], ...url("another-password") });
  assert.match(wrong.log.join(""), /WRONGPASS/);
  assert.doesNotMatch(wrong.log.join(""), /another-password/);
});

testWithRedis("server stops: the log does not say that Redis is away", async (t, redis) => {
  const server = await startServer(t, { turns: [[say("A")]], env: { PARLEY_REDIS_URL: redis.url } });
  assert.equal((await post(server, { message: "Hi", stream: false })).status, 200);
  await server.close();
  assert.doesNotMatch(server.log.join(""), /Redis is away/);
});

test("rediss:// with a certificate that Node trusts", { skip: NO_REDIS }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "parley-tls-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const [key, certificate] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  execFileSync(
    "openssl",
    ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-keyout", key, "-out", certificate, ...subject],
    { stdio: "ignore" },
  );
  const port = await freePort();
  const tls = ["--tls-port", String(port), "--tls-cert-file", certificate, "--tls-key-file", key];
  await startRedis(t, ...tls, "--tls-ca-cert-file", certificate, "--tls-auth-clients", "no");
  const env = { PARLEY_REDIS_URL: `rediss://localhost:${port}`, PARLEY_REDIS_REQUIRED: "on" };
  const server = await start(t, [], { env: { ...env, NODE_EXTRA_CA_CERTS: certificate } });
  assert.match(await (await fetch(`${server.url}/metrics`)).text(), /^parley_redis_up 1$/m);
  const { stderr } = await run(["start"], { env: { ...env, PORT: "0" } });
  assert.match(stderr, /^parley: Redis cannot be used at PARLEY_REDIS_URL \((?:DEPTH_ZERO_)?SELF_SIGNED_CERT\)/);
});
