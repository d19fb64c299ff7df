/** Pipelining: a request that comes before the answer to the one before it is over (RFC 9112, 9.3.2). */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { type LargeBodies, withBody } from "../../server/http/body.ts";
import { tellOfClosing } from "../../server/http/queued-answers.ts";
import { RequestMemoryBudget } from "../../server/limits/request-memory.ts";
import { gate, within } from "../support/deadline.ts";
import { listen } from "../support/listen.ts";
import { connectRaw } from "../support/raw-connection.ts";
import { hang, say } from "../support/scripted-provider.ts";
import { startServer, type TestServer } from "../support/start-server.ts";

/** Beyond the deadline of a test: a run that is not let go holds the server up so long. */
const PATIENT = { PARLEY_DRAIN_SECONDS: "30" };

const requestsIn = ({ log }: TestServer): string[] => log.filter((line) => / (?:GET|POST) \//.test(line));

const MEBIBYTE = 1024 * 1024;

const ask = (stream: boolean): string[] => {
  const body = JSON.stringify({ message: "Hi", stream });
  return [
    "POST /api/chat HTTP/1.1",
    "host: 127.0.0.1",
    "content-type: application/json",
    `content-length: ${body.length}`,
    "",
    body,
  ];
};

for (const stream of [true, false]) {
  const kind = stream ? "stream" : "JSON";
  test(`a ${kind} answer that waits behind another one is let go when its client leaves`, async (t) => {
    const turns = [
      [say("A"), hang],
      [say("B"), hang],
    ];
    const server = await startServer(t, { turns, env: PATIENT });
    const raw = await connectRaw(t, server);
    const first = server.model.nextAsked();
    await raw.write(...ask(true));
    await first;
    const second = server.model.nextAsked();
    await raw.write(...ask(stream));
    await second;
    raw.socket.destroy();
    await within(server.close(), "the end of the server");
    const [sent, unsent, ...others] = requestsIn(server);
    assert.match(sent ?? "", /POST \/api\/chat 200 \d+ms [1-9]\d*B/);
    assert.match(unsent ?? "", /POST \/api\/chat 200 \d+ms 0B/, "nothing of it was sent");
    assert.deepEqual(others, []);
  });
}

test("an answer whose turn came is logged once, with the bytes that were its own", async (t) => {
  const server = await startServer(t, { turns: [[say("A"), hang]], env: PATIENT });
  const raw = await connectRaw(t, server);
  await raw.write("GET /widget.js HTTP/1.1", "host: 127.0.0.1", "", ask(true).join("\r\n"));
  const { body } = await raw.answer();
  await raw.until('"data":"A"');
  raw.socket.destroy();
  await within(server.close(), "the end of the server");
  const [first, second, ...others] = requestsIn(server).map((line) => Number(/ (\d+)B /.exec(line)?.[1]));
  assert.ok(first !== undefined && first > body.length, `${first} bytes of the first`);
  assert.ok(second !== undefined && second > 0 && second < 2_000, `${second} of the second`);
  assert.deepEqual(others, []);
});

test("a large message behind another answer gives its place in line up when its client leaves", async (t) => {
  const http = createServer();
  const port = Number(new URL(await listen(t, http)).port);
  const asked = gate();
  const left = gate();
  const large: LargeBodies = {
    enter(_address, signal) {
      asked.open();
      return new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => {
          reject(signal.reason);
          left.open();
        });
      });
    },
  };
  http.on("request", (req, res) => {
    tellOfClosing(res);
    // The first one, a GET, is never answered.
    if (req.method === "GET") return;
    const memory = new RequestMemoryBudget(0).hold();
    const rules = { limit: 2 * MEBIBYTE, large, minRate: 0, address: "192.0.2.1", memory };
    withBody(req, res, rules, async () => {}).catch(() => {});
  });
  const raw = await connectRaw(t, { port });
  const head = ["POST / HTTP/1.1", "host: x", "content-type: application/json"];
  await raw.write("GET / HTTP/1.1", "host: x", "", ...head);
  await raw.write("", `content-length: ${2 * MEBIBYTE}`, "", "");
  await within(asked.opened, "the request for a turn");
  raw.socket.destroy();
  await within(left.opened, "the end of the wait");
});
