import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import { EventStream } from "../../server/http/event-stream.ts";
import { within } from "../support/deadline.ts";
import { listen } from "../support/listen.ts";

const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;

test("a stream that opens when its client has left leaves no timer behind", async (t) => {
  const server = createServer();
  const url = new URL(await listen(t, server));
  const asked = once(server, "request");
  const client = connect(Number(url.port), url.hostname);
  client.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  const res: ServerResponse = (await within(asked, "the request"))[1];
  const left = once(res, "close");
  client.destroy();
  await within(left, "the end of the line");
  const before = timers();
  const stream = new EventStream(res, { keepAliveMs: 600_000, sendMs: 600_000 }, () => {});
  stream.open({});
  stream.end();
  assert.equal(timers(), before);
});
