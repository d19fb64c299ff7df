/** The transports, without a DOM, against a scripted server. */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { WebSocketServer } from "ws";
import type { StreamEvent } from "../../server/protocol/events.ts";
import { check, checkOverHttp, checkOverSocket } from "../../widget/transport/check.ts";
import { FallbackTransport } from "../../widget/transport/fallback.ts";
import { HttpTransport } from "../../widget/transport/http.ts";
import type { Endpoint, RunEvent, RunRequest, Transport } from "../../widget/transport/transport.ts";
import { WebSocketTransport } from "../../widget/transport/websocket.ts";
import { gate } from "../support/deadline.ts";
import { say } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { openedSockets } from "./browser-stubs.ts";
import { done, type ScriptOptions, startScriptedServer, token } from "./scripted-server.ts";

const NEVER = new AbortController().signal;
const TURN = { message: "Hi", attachments: [], state: { previous_response_id: "resp_1" } };

const loadHttp = async () => HttpTransport;

type Runs = Pick<Transport, "run">;

async function connect<T extends { close(): void }>(
  t: TestContext,
  Transport: new (endpoint: Endpoint, http: typeof loadHttp) => T,
  { givenKey, ...options }: ScriptOptions & { givenKey?: string } = {},
) {
  const server = await startScriptedServer(t, options);
  const transport = new Transport({ server: new URL(server.url), key: () => givenKey }, loadHttp);
  t.after(() => transport.close());
  return { server, transport };
}

/** Collects the events of one request. Tests may await the server's side first. */
function collect(transport: Runs, request: RunRequest, signal = NEVER): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  const all = transport.run(request, (event) => events.push(event), signal).then(() => events);
  all.catch(() => undefined);
  return all;
}

let runs = 0;

/** Starts a new run. */
function start(transport: Runs, signal = NEVER) {
  runs += 1;
  return collect(transport, { ...TURN, run: `run-${runs}` }, signal);
}

const typesAndData = (events: RunEvent[]) => events.map(({ type, data }) => [type, data]);

for (const Transport of [WebSocketTransport, HttpTransport]) {
  test(`${Transport.name} sends message and state, and reports the run's events in order`, async (t) => {
    const { server, transport } = await connect<WebSocketTransport | HttpTransport>(t, Transport);
    const events = start(transport);
    const turn = await server.turn();
    assert.equal(turn.body.message, "Hi");
    assert.deepEqual(turn.body.state, TURN.state);
    turn.send(token("Hel"), token("lo"), done("Hello"));
    assert.deepEqual(typesAndData(await events), [
      ["token", "Hel"],
      ["token", "lo"],
      ["done", "Hello"],
    ]);
  });

  test(`${Transport.name} sends the key, and reports the refusal of a wrong one as an event`, async (t) => {
    const right = await connect<WebSocketTransport | HttpTransport>(t, Transport, { key: "k", givenKey: "k" });
    const events = start(right.transport);
    (await right.server.turn()).send(done("in"));
    assert.equal((await events).at(-1)?.type, "done");

    const wrong = await connect<WebSocketTransport | HttpTransport>(t, Transport, { key: "k", givenKey: "w" });
    const [refusal] = await start(wrong.transport);
    assert.equal(refusal?.type === "error" && refusal.code, "unauthorized");
  });

  test(`${Transport.name} reports with a refusal when the server takes messages again`, async (t) => {
    const key = "a-key-that-may-send-one-message";
    const env = { PARLEY_API_KEY: key, PARLEY_RATE_PER_KEY: "1" };
    const { url } = await startServer(t, { turns: [[say("In.")]], env });
    const transport = new Transport({ server: new URL(`${url}/`), key: () => key });
    t.after(() => transport.close());
    const ask = () => collect(transport, { run: randomUUID(), message: "Hi", attachments: [], state: {} });
    await ask();
    const [refusal] = await ask();
    assert.equal(refusal?.type === "error" && refusal.code, "rate_limited");
    assert.ok(refusal?.type === "error" && Number(refusal.retry_after) >= 1, JSON.stringify(refusal));
  });

  test(`${Transport.name} resumes a run after the last event that arrived`, async (t) => {
    const { server, transport } = await connect<WebSocketTransport | HttpTransport>(t, Transport);
    const first = start(transport);
    const turn = await server.turn();
    turn.send(token("a"));
    turn.cut();
    await assert.rejects(first, { code: "connection_lost" });
    turn.send(token("b"), done("ab"));
    const rest = await collect(transport, { run: String(turn.body.run), after: 1 });
    assert.deepEqual(
      rest.map(({ data }) => data),
      ["b", "ab"],
    );
    const [refusal] = await collect(transport, { run: "another", after: 0 });
    assert.equal(refusal?.type === "error" && refusal.code, "run_not_found");
  });

  test(`${Transport.name} ignores event kinds that it does not know`, async (t) => {
    const { server, transport } = await connect<WebSocketTransport | HttpTransport>(t, Transport);
    const events = start(transport);
    (await server.turn()).send({ type: "news", data: 1 } as unknown as StreamEvent, done("Hello"));
    assert.deepEqual(typesAndData(await events), [["done", "Hello"]]);
  });

  test(`${Transport.name} fails with unreadable for an event with the wrong shape`, async (t) => {
    const { server, transport } = await connect<WebSocketTransport | HttpTransport>(t, Transport);
    const events = start(transport);
    (await server.turn()).send({ type: "token", data: 7 } as unknown as StreamEvent);
    await assert.rejects(events, { code: "unreadable" });
  });

  test(`${Transport.name} asks the server to stop and reports its last events`, async (t) => {
    const { server, transport } = await connect<WebSocketTransport | HttpTransport>(t, Transport);
    const stop = new AbortController();
    const events = start(transport, stop.signal);
    const turn = await server.turn();
    stop.abort();
    assert.equal(await server.control(), Transport === HttpTransport ? "cancel" : "stop");
    turn.send({ type: "done", data: "Half", state: {}, finish_reason: "stopped" });
    const last = (await events).at(-1);
    assert.equal(last?.type === "done" && last.finish_reason, "stopped");
  });
}

test("HTTP disconnects from a run that cannot be cancelled", async (t) => {
  const { server, transport } = await connect(t, HttpTransport);
  const stop = new AbortController();
  const events = start(transport, stop.signal);
  const turn = await server.turn();
  turn.forget();
  stop.abort();
  await assert.rejects(events, { code: "connection_lost" });
  await turn.gone;
});

test("the socket is opened once for two runs, and again when it was cut between them", async (t) => {
  const { server, transport } = await connect(t, WebSocketTransport);
  for (const dials of [1, 1, 2]) {
    if (dials === 2) {
      const noticed = openedSockets.map((socket) => once(socket, "close"));
      await server.cutSockets();
      await noticed.at(-1);
    }
    const events = start(transport);
    (await server.turn()).send(done("ok"));
    await events;
    assert.equal(server.dialled.length, dials);
  }
});

test("a socket that is closed as a page is left, without a word of the server, is a lost connection", async (t) => {
  const { server, transport } = await connect(t, WebSocketTransport);
  const events = start(transport);
  await server.turn().then(() => server.cutSockets(1001));
  await assert.rejects(events, { code: "connection_lost" });
});

test("an old connection that ends after the next was opened does not cut the run of the next", async (t) => {
  const opened = gate();
  let upgrades = 0;
  const { server, transport } = await connect(t, WebSocketTransport, {
    upgrade: () => (upgrades++ === 0 ? opened.opened : Promise.resolve()),
  });
  const first = assert.rejects(transport.connect(), { code: "unreachable" });
  transport.close();
  const events = start(transport);
  const turn = await server.turn();
  const [old] = openedSockets.slice(-2);
  assert.ok(old);
  const ended = once(old, "close");
  opened.open();
  await first;
  await ended;
  turn.send(token("Hel"), done("Hello"));
  assert.equal((await events).at(-1)?.data, "Hello");
});

for (const check of [checkOverSocket, checkOverHttp]) {
  test(`${check.name} proves a key without a run`, async (t) => {
    const { url } = await startScriptedServer(t, { key: "k" });
    const endpoint = (key: string) => ({ server: new URL(url), key: () => key });
    assert.equal(await check(endpoint("k")), undefined);
    assert.equal((await check(endpoint("w")))?.code, "unauthorized");
  });
}

test("a key with special characters arrives on the socket as it is", async (t) => {
  const key = "a&b=c #+%/ü";
  const server = await startScriptedServer(t, { key });
  await check({ server: new URL(server.url), key: () => key });
  assert.deepEqual(server.dialled, [key]);
});

test("where the socket is blocked messages go over HTTP, and the socket is tried again after some minutes", async (t) => {
  t.mock.timers.enable({ apis: ["Date"] });
  let isBlocked = true;
  const tries: boolean[] = [];
  const { server, transport } = await connect(t, FallbackTransport, {
    givenKey: "k",
    socket: () => {
      tries.push(isBlocked);
      return !isBlocked;
    },
  });
  const ask = async (message: string) => {
    const events = start(transport);
    const turn = await server.turn();
    turn.send(done(message));
    assert.equal((await events).at(-1)?.data, message);
    return [turn.over, turn.authorization];
  };
  assert.deepEqual(await ask("first"), ["http", "Bearer k"]);
  assert.deepEqual(await ask("second"), ["http", "Bearer k"]);
  assert.deepEqual(tries, [true], "the second message knows already");
  isBlocked = false;
  t.mock.timers.tick(6 * 60_000);
  assert.deepEqual(await ask("third"), ["http", "Bearer k"], "no message waits for the socket");
  const socket = openedSockets.at(-1) ?? assert.fail();
  if (socket.readyState !== socket.OPEN) await once(socket, "open");
  // Lets the transport's own listeners run first.
  await new Promise(setImmediate);
  assert.deepEqual(await ask("fourth"), ["socket", undefined]);
});

test("where the socket hears nothing, HTTP begins, and the socket that opens late has the next message", async (t) => {
  const opened = gate();
  const blocked: boolean[] = [];
  const server = await startScriptedServer(t, { upgrade: () => opened.opened });
  const transport = new FallbackTransport(
    {
      server: new URL(server.url),
      key: () => undefined,
      onSocketBlocked: (isBlocked) => blocked.push(isBlocked),
    },
    loadHttp,
  );
  t.after(() => transport.close());
  const first = start(transport);
  const turn = await server.turn();
  assert.deepEqual([turn.over, blocked], ["http", [true]]);
  opened.open();
  const socket = openedSockets.at(-1) ?? assert.fail();
  await once(socket, "open");
  await new Promise(setImmediate);
  assert.deepEqual(blocked, [true, false]);
  turn.send(done("first"));
  assert.equal((await first).at(-1)?.data, "first");
  const second = start(transport);
  const next = await server.turn();
  next.send(done("second"));
  await second;
  assert.deepEqual([next.over, server.dialled.length], ["socket", 1]);
});

test("Stop and leaving wait for no socket that hears nothing, and nothing is sent then", async (t) => {
  const upgrades: string[] = [];
  const { server, transport } = await connect(t, FallbackTransport, {
    upgrade: () => {
      upgrades.push("asked");
      return new Promise(() => undefined);
    },
  });
  const stop = new AbortController();
  const stopped = start(transport, stop.signal);
  stop.abort();
  await assert.rejects(stopped, { code: "unreachable" });
  const left = start(transport);
  transport.close();
  await assert.rejects(left, { code: "unreachable" });
  const known = new FallbackTransport(
    { server: new URL(server.url), key: () => undefined, isSocketBlocked: () => true },
    loadHttp,
  );
  t.after(() => known.close());
  const events = start(known);
  const turn = await server.turn();
  assert.equal(turn.over, "http");
  turn.send(done("at once"));
  await events;
  assert.equal(turn.body.run, `run-${runs}`, "what was stopped and left was not sent");
});

test("a connection that breaks and an answer about something else prove no key", async (t) => {
  const server = createServer((_req, res) => res.writeHead(429, { "content-type": "application/json" }).end("{}"));
  new WebSocketServer({ server }).on("connection", (socket) => socket.on("message", () => socket.terminate()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const endpoint = { server: new URL(`http://127.0.0.1:${port}/`), key: () => "k" };
  await assert.rejects(checkOverSocket(endpoint), { code: "connection_lost" });
  await assert.rejects(checkOverHttp(endpoint), { code: "unreadable" });
});

test("a server that is down is unreachable on all transports", async () => {
  const endpoint = { server: new URL("http://127.0.0.1:9/"), key: () => undefined };
  for (const Transport of [WebSocketTransport, HttpTransport, FallbackTransport]) {
    await assert.rejects(start(new Transport(endpoint, loadHttp)), { code: "unreachable" });
  }
});

test("a proxy that answers for a server that is down is no answer of the server, and the socket is tried again", async (t) => {
  const proxy = createServer((_req, res) =>
    res.writeHead(502, { "content-type": "text/html" }).end("<h1>Bad Gateway</h1>"),
  );
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  t.after(() => proxy.close());
  const server = new URL(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}/`);
  const transport = new FallbackTransport({ server, key: () => undefined }, loadHttp);
  t.after(() => transport.close());
  const socketsBefore = openedSockets.length;
  for (const tries of [1, 2]) {
    await assert.rejects(collect(transport, { run: "a-run-of-this-test", ...TURN }), { code: "unreachable" });
    assert.equal(openedSockets.length - socketsBefore, tries);
  }
});
