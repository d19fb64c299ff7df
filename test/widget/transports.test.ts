import "./browser-globals.ts";
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import type { StreamEvent } from "../../server/protocol/events.ts";
import { openedSockets } from "./browser-globals.ts";
import { done, startScriptedServer, token } from "./scripted-server.ts";
import { collect, connect, HttpTransport, NEVER, start, TURN } from "./transport-runs.ts";

const http = await import("../../widget/chunks/http.ts");
const { FallbackTransport } = await import("../../widget/transport/fallback-transport.ts");
const { SocketTransport } = await import("../../widget/transport/socket-transport.ts");

for (const Transport of [SocketTransport, HttpTransport]) {
  test(`${Transport.name} sends message and state, and yields the run's events in order`, async (t) => {
    const { server, transport } = await connect(t, Transport);
    const events = start(transport);
    const turn = await server.turn();
    assert.equal(turn.body.message, "Hi");
    assert.deepEqual(turn.body.state, TURN.state);
    turn.send(token("Hel"), token("lo"), done("Hello"));
    assert.deepEqual(
      (await events).map(({ type, data }) => [type, data]),
      [
        ["token", "Hel"],
        ["token", "lo"],
        ["done", "Hello"],
      ],
    );
  });

  test(`${Transport.name} sends the key, and yields the refusal of a wrong one as an event`, async (t) => {
    const right = await connect(t, Transport, { key: "k", givenKey: "k" });
    const events = start(right.transport);
    (await right.server.turn()).send(done("in"));
    assert.equal((await events).at(-1)?.type, "done");

    const wrong = await connect(t, Transport, { key: "k", givenKey: "w" });
    const [refusal] = await start(wrong.transport);
    assert.equal(refusal?.type === "error" && refusal.code, "unauthorized");
  });

  test(`${Transport.name} throws connection_lost when the line breaks in mid-answer`, async (t) => {
    const { server, transport } = await connect(t, Transport);
    const run = transport.run({ ...TURN, run: "run" }, NEVER)[Symbol.asyncIterator]();
    const first = run.next();
    const turn = await server.turn();
    turn.send(token("Hel"));
    assert.equal((await first).value.data, "Hel");
    turn.cut();
    await assert.rejects(run.next(), { code: "connection_lost" });
  });

  test(`${Transport.name} resumes a run after the last event that arrived`, async (t) => {
    const { server, transport } = await connect(t, Transport);
    const first = start(transport);
    const turn = await server.turn();
    turn.send(token("a"));
    turn.cut();
    await assert.rejects(first, { code: "connection_lost" });
    turn.send(token("b"), done("ab"));
    const run = String(turn.body.run);
    const rest = await collect(transport.resume({ run, after: 1 }, NEVER));
    assert.deepEqual(
      rest.map(({ data }) => data),
      ["b", "ab"],
    );
    const [refusal] = await collect(transport.resume({ run: "another", after: 0 }, NEVER));
    assert.equal(refusal?.type === "error" && refusal.code, "run_not_found");
  });

  test(`${Transport.name} ignores event kinds that it does not know`, async (t) => {
    const { server, transport } = await connect(t, Transport);
    const events = start(transport);
    const turn = await server.turn();
    const unknown = { type: "news", data: 1 } as unknown as StreamEvent;
    turn.send(unknown, done("Hello"));
    assert.deepEqual(
      (await events).map(({ type }) => type),
      ["done"],
    );
  });

  test(`${Transport.name} throws unreadable for an event with the wrong shape`, async (t) => {
    const { server, transport } = await connect(t, Transport);
    const events = start(transport);
    (await server.turn()).send({ type: "token", data: 7 } as unknown as StreamEvent);
    await assert.rejects(events, { code: "unreadable" });
  });
}

test("the socket asks the server to stop and yields what it still says", async (t) => {
  const { server, transport } = await connect(t, SocketTransport);
  const stop = new AbortController();
  const events = start(transport, stop.signal);
  const turn = await server.turn();
  stop.abort();
  assert.equal(await server.control(), "stop");
  turn.send({ type: "done", data: "Half", state: {}, finish_reason: "stopped" });
  const last = (await events).at(-1);
  assert.equal(last?.type === "done" && last.finish_reason, "stopped");
});

test("over HTTP a message leaves, and a question for what is missing of its answer does not", async (t) => {
  const { server, transport } = await connect(t, HttpTransport);
  const events = start(transport);
  assert.equal(transport.unsent, Infinity);
  const turn = await server.turn();
  turn.send(token("a"));
  turn.cut();
  await assert.rejects(events, { code: "connection_lost" });
  turn.send(done("a"));
  const rest = collect(transport.resume({ run: String(turn.body.run), after: 1 }, NEVER));
  assert.equal(transport.unsent, 0);
  await rest;
});

test("HTTP cancels the run and yields what it still says", async (t) => {
  const { server, transport } = await connect(t, HttpTransport);
  const stop = new AbortController();
  const events = start(transport, stop.signal);
  const turn = await server.turn();
  stop.abort();
  assert.equal(await server.control(), "cancel");
  turn.send({ type: "done", data: "Half", state: {}, finish_reason: "stopped" });
  const last = (await events).at(-1);
  assert.equal(last?.type === "done" && last.finish_reason, "stopped");
});

test("HTTP hangs up on a run that cannot be cancelled", async (t) => {
  const { server, transport } = await connect(t, HttpTransport);
  const stop = new AbortController();
  const events = start(transport, stop.signal);
  const turn = await server.turn();
  turn.forget();
  stop.abort();
  await assert.rejects(events, { code: "connection_lost" });
  await turn.gone;
});

test("the socket is opened once for two runs, and again when it dropped between them", async (t) => {
  const { server, transport } = await connect(t, SocketTransport);
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

test("a socket that is closed as a page is left, without a word of the server, is a lost line", async (t) => {
  const { server, transport } = await connect(t, SocketTransport);
  const events = start(transport);
  await server.turn().then(() => server.cutSockets(1001));
  await assert.rejects(events, { code: "connection_lost" });
});

test("clear ends the run without a terminal event and waits for cleared", async (t) => {
  const { server, transport } = await connect(t, SocketTransport);
  const events = start(transport);
  const turn = await server.turn();
  turn.send(token("old"));
  await transport.clear();
  assert.equal(await server.control(), "clear");
  assert.ok((await events).every(({ type }) => type === "token"));
});

test("the socket proves a key without a run", async (t) => {
  const right = await connect(t, SocketTransport, { key: "k", givenKey: "k" });
  assert.equal(await right.transport.check(), undefined);
  const wrong = await connect(t, SocketTransport, { key: "k", givenKey: "w" });
  assert.equal((await wrong.transport.check())?.code, "unauthorized");
});

test("a key with special characters arrives on the socket as it is", async (t) => {
  const key = "a&b=c #+%/ü";
  const { server, transport } = await connect(t, SocketTransport, { key, givenKey: key });
  await transport.check();
  assert.deepEqual(server.dialled, [key]);
});

test("a blocked socket falls back to HTTP, and the server's answer decides that", async (t) => {
  const server = await startScriptedServer(t, { socket: false });
  const endpoint = { server: new URL(server.url), key: () => "k" };
  const down = new FallbackTransport(endpoint, async () => false);
  await assert.rejects(start(down), { code: "unreachable" });

  let asked = 0;
  let loads = 0;
  const up = new FallbackTransport(
    endpoint,
    async () => {
      asked += 1;
      return true;
    },
    // At first the chunk cannot be had.
    async () => (loads++ === 0 ? undefined : http),
  );
  await assert.rejects(start(up), { code: "unreachable" });
  for (const message of ["first", "second"]) {
    const events = start(up);
    const turn = await server.turn();
    assert.equal(turn.over, "http");
    assert.equal(turn.authorization, "Bearer k");
    turn.send(done(message));
    assert.equal((await events).at(-1)?.data, message);
  }
  assert.equal(asked, 1, "the second run knows already");
});

test("a server that is down is unreachable on both transports", async () => {
  const endpoint = { server: new URL("http://127.0.0.1:9/"), key: () => undefined };
  await assert.rejects(start(new SocketTransport(endpoint)), { code: "unreachable" });
  await assert.rejects(start(new HttpTransport(endpoint)), { code: "unreachable" });
});
