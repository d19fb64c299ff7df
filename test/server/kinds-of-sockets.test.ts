/** The server on a Unix socket and behind HTTPS: all requests and shutdowns work as over TCP. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createConnection, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { atEnd } from "../support/at-end.ts";
import { within } from "../support/deadline.ts";
import { connectByPsk, createPskServer } from "../support/psk.ts";
import { chatRequest, RawConnection } from "../support/raw-connection.ts";
import { endlessTurn, say } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { type Cleanup, startServer, type TestServer } from "../support/start-server.ts";

/** Makes the server reachable in another way; returns a function that connects to it. */
type Entrance = (t: Cleanup, server: TestServer) => Promise<() => Socket>;

const onUnixSocket: Entrance = async (t, { server }) => {
  const folder = mkdtempSync(join(tmpdir(), "parley-"));
  const path = join(folder, "socket");
  const front = createServer({ allowHalfOpen: true }, (socket) => void server.http.emit("connection", socket));
  front.listen(path);
  await once(front, "listening");
  atEnd(t, () => {
    front.close();
    rmSync(folder, { recursive: true });
  });
  return () => createConnection(path);
};

const overTls: Entrance = async (t, { server }) => {
  const front = createPskServer();
  for (const event of ["request", "upgrade"]) front.on(event, (...args) => server.http.emit(event, ...args));
  front.listen(0, "127.0.0.1");
  await once(front, "listening");
  atEnd(t, () => front.close());
  const { port } = front.address() as AddressInfo;
  return () => connectByPsk(port);
};

const KINDS: Readonly<Record<string, Entrance>> = { "a Unix socket": onUnixSocket, TLS: overTls };

const TCP_ADDRESS = "ws://127.0.0.1/ws/chat";

for (const [kind, open] of Object.entries(KINDS)) {
  test(`JSON, event streams and WebSockets are answered over ${kind}`, async (t) => {
    const server = await startServer(t, { turns: [[say("One")], [say("Two")], [say("Three")]] });
    const dial = await open(t, server);
    const raw = new RawConnection(dial());
    await raw.write(...chatRequest({ message: "Hi", stream: false }));
    assert.match((await raw.answer()).body, /"response":"One"/);
    await raw.write(...chatRequest({ message: "Hi", stream: true }));
    assert.match(await raw.until("event: done"), /Two/);
    raw.socket.destroy();
    const client = await connect(t, TCP_ADDRESS, { createConnection: dial });
    assert.equal((await client.run({ message: "Hi" })).at(-1)?.data, "Three");
    client.socket.close();
    await client.closed;
    const requests = server.log.map((line) => JSON.parse(line)).filter(({ msg }) => msg === "request");
    for (const { status, bytes } of requests)
      assert.ok([101, 200].includes(status) && bytes > 100, `${status} ${bytes}`);
  });

  for (const wire of ["SSE", "WebSocket"]) {
    test(`a client that stops reading is disconnected, and the server goes on (${wire} over ${kind})`, async (t) => {
      const { turn } = endlessTurn();
      const server = await startServer(t, { turns: [turn, [say("Fine")]], env: { PARLEY_SEND_SECONDS: "0.2" } });
      const dial = await open(t, server);
      const asked = server.model.nextAsked();
      if (wire === "SSE") {
        const deaf = new RawConnection(dial());
        t.after(() => deaf.socket.destroy());
        await deaf.write(...chatRequest({ message: "Hi", stream: true }));
        deaf.socket.pause();
      } else {
        const deaf = await connect(t, TCP_ADDRESS, { createConnection: dial });
        deaf.send({ message: "Hi" });
        deaf.socket.pause();
      }
      await within((await asked).aborted, "the end of the run");
      const client = await connect(t, TCP_ADDRESS, { createConnection: dial });
      assert.equal((await client.run({ message: "Hi" })).at(-1)?.data, "Fine");
    });
  }
}

test("a proxy that connects over a Unix socket is one at 127.0.0.1: its clients are counted by their own address", async (t) => {
  const env = { PARLEY_TRUSTED_PROXIES: "127.0.0.1", PARLEY_RATE_PER_ADDRESS: "1" };
  const server = await startServer(t, { turns: [[say("One")], [say("Two")]], env });
  const raw = new RawConnection((await onUnixSocket(t, server))());
  t.after(() => raw.socket.destroy());
  const ask = async (address: string) => {
    await raw.write(...chatRequest({ message: "Hi", stream: false }, `x-forwarded-for: ${address}`));
    return (await raw.answer()).status;
  };
  assert.equal(await ask("203.0.113.1"), 200);
  assert.equal(await ask("203.0.113.1"), 429);
  assert.equal(await ask("203.0.113.2"), 200);
  assert.doesNotMatch(server.log.join(""), /names another client/);
});
