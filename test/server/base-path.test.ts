/** A server whose addresses all begin with PARLEY_BASE_PATH. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { WebSocket } from "ws";
import { post } from "../support/chat-transports.ts";
import { gate } from "../support/deadline.ts";
import { startWithRaw } from "../support/raw-connection.ts";
import { ask, LINES, newRun, openLine } from "../support/run-lines.ts";
import { hang, say, wait } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";

const BASE = "/team/support";
const env = { PARLEY_BASE_PATH: BASE };

const STATUS: readonly [path: string, status: number][] = [
  [`${BASE}/`, 200],
  [`${BASE}/?embed=1`, 200],
  [`${BASE}/api/info`, 200],
  [`${BASE}/health`, 200],
  [`${BASE}/health/ready`, 200],
  [`${BASE}/widget.js`, 200],
  // Without the base path: probes and Prometheus ask the process directly.
  ["/health", 200],
  ["/health/ready", 200],
  ["/metrics", 200],
  [`${BASE}/metrics`, 404],
  [`${BASE}/nowhere`, 404],
  [`${BASE}//health`, 404],
  [BASE + BASE, 404],
  ["/team/supporting/", 404],
  ["/TEAM/support/", 404],
  ["/team/%73upport/", 404],
  ["/team", 404],
  ["/", 404],
  ["/api/info", 404],
  ["/widget.js", 404],
  ["/health/", 404],
];

test("every address begins with the base path, but those for probes and Prometheus", async (t) => {
  const server = await startServer(t, { turns: [], env });
  for (const [path, status] of STATUS) {
    const answer = await fetch(server.url + path, { redirect: "manual" });
    assert.equal(answer.status, status, path);
    const text = await answer.text();
    if (status === 404) assert.equal(JSON.parse(text).error.code, "not_found", path);
  }
});

test("a message to an address with nothing is told where the chat is, below the path", async (t) => {
  const server = await startServer(t, { turns: [], env });
  for (const path of ["/api/chat", `${BASE}/chat`]) {
    const answer = await fetch(server.url + path, { method: "POST" });
    assert.match(await answer.text(), /The chat is POST \/team\/support\/api\/chat\./);
  }
});

for (const [target, location] of [
  [BASE, "./support/"],
  [`${BASE}?embed=1&x=%20%22`, "./support/?embed=1&x=+%22"],
  [`http://chat.example${BASE}?embed=1`, "./support/?embed=1"],
] as const) {
  test(`the bare path ${target} leads to ${location}`, async (t) => {
    const { raw } = await startWithRaw(t, { turns: [], env });
    await raw.write(`GET ${target} HTTP/1.1`, "host: chat.example", "", "");
    const { status, headers, body } = await raw.answer();
    assert.deepEqual([status, headers.get("location"), body], [308, location, ""]);
    assert.ok(headers.get("x-request-id"));
  });
}

test("below a path the log and the metrics name the same routes as without one", async (t) => {
  const server = await startServer(t, { turns: [[say("Fine")]], env });
  const below = { url: server.url + BASE, socketUrl: "" };
  await (await fetch(below.url)).text();
  assert.equal((await post(below, { message: "Hi", stream: false })).status, 200);
  const run = newRun();
  assert.equal((await ask(t, below, { resume: run, after: 0 })).status, 404);
  assert.equal((await ask(t, server, { resume: run, after: 0 })).status, 404);
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  const counted = [...metrics.matchAll(/^parley_requests_total\{(.*)\}/gm)].map(([, labels]) => labels);
  assert.deepEqual(counted.sort(), [
    'method="GET",route="/",status="200"',
    'method="GET",route="/",status="308"',
    'method="GET",route="/api/chat/runs/{id}",status="404"',
    'method="GET",route="unmatched",status="404"',
    'method="POST",route="/api/chat",status="200"',
  ]);
  assert.doesNotMatch(server.log.join(), new RegExp(`team|${run}`));
});

for (const name of LINES) {
  test(`below a path an answer is resumed, and cancelled at its address there (${name})`, async (t) => {
    const more = gate();
    const turns = [[say("One"), wait(more.opened), say("Two"), hang]];
    const server = await startServer(t, { turns, env });
    const below = { url: server.url + BASE, socketUrl: server.socketUrl.replace("/ws/", `${BASE}/ws/`) };
    const cancel = (url: string) => fetch(`${url}/api/chat/runs/${run}/cancel`, { method: "POST" });
    const run = newRun();
    const line = await openLine[name](t, below, { message: "Hi", run });
    const first = await line.next();
    await line.cut();
    more.open();
    const again = await openLine[name](t, below, { resume: run, after: first.id });
    assert.equal((await again.next()).data, "Two");
    assert.equal((await cancel(server.url)).status, 404);
    assert.equal((await cancel(below.url)).status, 200);
    assert.equal((await again.rest()).at(-1)?.type, "done");
  });
}

test("below a path there is a socket at one address alone", async (t) => {
  const server = await startServer(t, { turns: [], env });
  for (const path of ["/ws/chat", BASE, "/health", `${BASE}/metrics`]) {
    const socket = new WebSocket(`ws://127.0.0.1:${server.port}${path}`);
    const [, answer] = await once(socket, "unexpected-response");
    assert.equal(answer.statusCode, 404, path);
    socket.on("error", () => {});
    socket.terminate();
  }
});
