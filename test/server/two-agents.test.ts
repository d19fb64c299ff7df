/** The handler of an agent, on a server that is not ours. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { checkAgent } from "../../server/agent/define.ts";
import { readSettings } from "../../server/config/settings.ts";
import { createCore } from "../../server/server.ts";
import { post } from "../support/chat-transports.ts";
import { DIST } from "../support/command.ts";
import { connect } from "../support/socket-client.ts";
import type { Cleanup } from "../support/start-server.ts";

/** An agent below a path, as a project would make one within its own process. */
function parleyAt(basePath: string, name: string) {
  return createCore({
    agent: checkAgent({ name, model: "demo" }),
    settings: readSettings({ PARLEY_BASE_PATH: basePath, PARLEY_DRAIN_SECONDS: "1" }),
    logSink: () => {},
    publicFolder: join(DIST, "public"),
    parseWorker: join(DIST, "parse-worker.js"),
    lingerMs: 100,
  });
}

/** A server of a host that has two agents, and pages of its own. */
async function startHost(t: Cleanup) {
  const [sales, support] = await Promise.all([parleyAt("/sales", "Sales"), parleyAt("/support", "Support")]);
  const at = (url = "") => (url.startsWith("/sales") ? sales : support);
  const host = createServer((req, res) => {
    if (req.url === "/own") res.end("the host's own page");
    else at(req.url).handler.request(req, res);
  });
  host.on("upgrade", (req, socket, head) => {
    if (!at(req.url).handler.upgrade(req, socket as never, head)) socket.destroy();
  });
  host.listen(0, "127.0.0.1");
  await once(host, "listening");
  t.after(async () => {
    await Promise.all([sales.drain(), support.drain()]);
    host.closeAllConnections();
    host.close();
  });
  return { sales, support, address: `127.0.0.1:${(host.address() as AddressInfo).port}` };
}

test("two agents in one process answer below their paths, beside the host's own pages, over HTTP and sockets", async (t) => {
  const { address } = await startHost(t);
  assert.equal(await (await fetch(`http://${address}/own`)).text(), "the host's own page");
  for (const [path, name] of [
    ["/sales", "Sales"],
    ["/support", "Support"],
  ] as const) {
    const info = await (await fetch(`http://${address}${path}/api/info`)).json();
    assert.equal(info.name, name);
    const answer = await post({ url: `http://${address}${path}` }, { message: "Hi", stream: false });
    assert.equal(answer.status, 200);
    const client = await connect(t, `ws://${address}${path}/ws/chat`);
    assert.equal((await client.run({ message: "Hi" })).at(-1)?.type, "done");
  }
});

test("an agent that is drained closes its sockets, and the other one goes on", async (t) => {
  const { sales, address } = await startHost(t);
  const [gone, staying] = await Promise.all(
    ["/sales", "/support"].map((path) => connect(t, `ws://${address}${path}/ws/chat`)),
  );
  await sales.drain();
  assert.equal((await gone?.closed)?.code, 1001);
  assert.equal((await fetch(`http://${address}/sales/health/ready`)).status, 503);
  assert.equal((await staying?.run({ message: "Hi" }))?.at(-1)?.type, "done");
});
