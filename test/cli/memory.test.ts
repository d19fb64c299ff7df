/** A process with a small heap, as in a small container, survives messages that exceed its memory. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryAdvice, memoryDefaults } from "../../server/config/memory.ts";
import { post } from "../support/chat-transports.ts";
import { start } from "../support/command.ts";
import { gate } from "../support/deadline.ts";
import { attachment } from "../support/files.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { eventStream, startUpstream } from "../support/upstream-server.ts";

const MIB = 1024 * 1024;

const said = eventStream(
  { choices: [{ index: 0, delta: { content: "Fine" } }] },
  { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
  "[DONE]",
);

test("large messages are refused before they end a process with a heap of 256 MiB, and the start says what it takes", async (t) => {
  const upstream = await startUpstream();
  t.after(() => upstream.close());
  const go = gate();
  t.after(() => go.open());
  const project = temporaryProject(t, {
    "agent.mjs": 'export default { name: "Small", model: "compatible/scripted" };',
  });
  const env = { NODE_OPTIONS: "--max-old-space-size=256", COMPATIBLE_BASE_URL: upstream.url };
  const server = await start(t, [project], { env });
  await server.command.printed("stderr", /The heap of a process is \d+ MiB, so messages may have up to/);

  const file = attachment("application/pdf", { bytes: 20 * MIB });
  const ask = async (count: number) => {
    const attachments = Array.from({ length: count }, () => file);
    return (await post(server, { message: "Look", stream: false, attachments })).status;
  };
  assert.equal(await ask(2), 413);
  const fine = { body: [said] };
  upstream.reply({ body: [go.opened, said] }, fine, fine, fine, fine);
  const first = upstream.nextCall();
  const asked = [ask(1)];
  await first;
  for (let more = 0; more < 3; more++) asked.push(ask(1));
  // How many of them fit depends on this Node's heap.
  for (const status of await Promise.all(asked.slice(1))) assert.ok([200, 503].includes(status));
  go.open();
  assert.equal(await asked[0], 200);
  assert.equal((await post(server, { message: "Hi", stream: false })).status, 200);
});

test("what may be held follows from the heap, and what the operator allows beyond it is told", () => {
  const large = memoryDefaults(8192 * MIB);
  assert.deepEqual(large, { bodyBytes: 64 * MIB, requestBytesTotal: 512 * MIB, resumeBytesTotal: 256 * MIB });
  for (let heap = 20; heap < 5000; heap += 7) {
    const { bodyBytes, requestBytesTotal } = memoryDefaults(heap * MIB);
    assert.ok(bodyBytes >= MIB && bodyBytes <= requestBytesTotal, `${heap} MiB`);
    const allowed = { maxBodyBytes: bodyBytes, maxRequestBytesTotal: requestBytesTotal };
    const advice = memoryAdvice(allowed, heap * MIB);
    assert.equal(advice === undefined, bodyBytes === 64 * MIB, `${heap} MiB`);
    assert.doesNotMatch(advice ?? "", /can crash/);
    const more = { ...allowed, maxRequestBytesTotal: requestBytesTotal + 1 };
    assert.match(memoryAdvice(more, heap * MIB) ?? "", /can crash the process/);
  }
});
