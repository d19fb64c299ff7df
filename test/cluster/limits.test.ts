/** Limits that clients meet at both workers are those of one server. */

import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { within } from "../support/deadline.ts";
import { newRun } from "../support/run-lines.ts";
import { EventReader, startWorkers, textOf } from "../support/workers.ts";

const HOLD = { message: "Please hold", stream: true };

test("the server's number of answers holds for both workers, and who waits at one is let in when the other one is done", async (t) => {
  const env = { PARLEY_MAX_RUNS: "1", PARLEY_MAX_QUEUED_RUNS: "1", PARLEY_QUEUE_SECONDS: "30" };
  const { lines, line, url } = await startWorkers(t, { env });
  const [here, there] = lines;
  const running = new EventReader(await here.chat(HOLD));
  await running.until("tool_call");
  const waiting = there.chat({ message: "Hello", stream: true });
  // Both workers see it: the place of who waits is taken, so the next one is refused.
  for (;;) {
    const metrics = await (await fetch(`${url}/metrics`)).text();
    if (/^parley_runs_queued 1$/m.test(metrics)) break;
  }
  const refused = await (await line(here.pid)).chat({ message: "Hello", stream: false });
  assert.equal(refused.statusCode, 503);
  assert.match(await textOf(refused), /overloaded/);
  await here.release();
  await running.until("done");
  await new EventReader(await waiting).until("done");
});

test("rates of keys, guesses at keys and sockets of an address are counted at both workers together", async (t) => {
  const env = {
    PARLEY_API_KEY: "the-key",
    PARLEY_TRUSTED_PROXIES: "127.0.0.1",
    PARLEY_RATE_PER_KEY: "3",
    PARLEY_WRONG_KEYS_PER_ADDRESS: "3",
    PARLEY_MAX_SOCKETS_PER_ADDRESS: "1",
  };
  const { lines, line } = await startWorkers(t, { env });
  const [here, there] = lines;
  const from = (address: string, key: string) => ({
    authorization: `Bearer ${key}`,
    "x-forwarded-for": address,
  });
  const statuses = async (headers: Record<string, string>) => {
    const found: (number | undefined)[] = [];
    for (const worker of [here, there, here, there]) {
      // Refused because it is empty, yet counted as a message.
      const body = { message: "", stream: false };
      found.push(await worker.status("/api/chat", { method: "POST", headers, body }));
    }
    return found;
  };
  assert.deepEqual(await statuses(from("203.0.113.1", "the-key")), [400, 400, 400, 429]);
  assert.deepEqual(await statuses(from("203.0.113.2", "a-guess")), [401, 401, 401, 429]);
  // From this machine itself.
  assert.deepEqual(await statuses({ authorization: "Bearer a-guess" }), [401, 401, 401, 429]);
  assert.deepEqual(await statuses({ authorization: "Bearer the-key" }), [429, 429, 429, 429]);

  const headers = from("203.0.113.3", "the-key");
  const first = await (await line(here.pid)).socket(t, "", headers);
  const second = await (await line(there.pid)).socket(t, "", headers);
  assert.equal((await second.closed).code, 4429);
  first.socket.close();
  await first.closed;
  for (;;) {
    const third = await (await line(there.pid)).socket(t, "", headers);
    third.send({ type: "clear" });
    if ((await third.next()).type === "cleared") break;
  }
});

test("guesses that both workers judge at once are counted one by one", async (t) => {
  const env = { PARLEY_API_KEY: "the-key", PARLEY_WRONG_KEYS_PER_ADDRESS: "3" };
  const { url } = await startWorkers(t, { env });
  const guess = async (key: string) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const answer = await fetch(`${url}/api/chat`, { method: "POST", headers, body: "{}" });
    await answer.text();
    return answer.status;
  };
  const statuses = await Promise.all(Array.from({ length: 60 }, (_, n) => guess(`guess-${n}`)));
  assert.equal(statuses.filter((status) => status === 401).length, 3);
  assert.equal(statuses.filter((status) => status === 429).length, 57);
});

test("a connection beyond the share of its worker is closed at once, and there is room again for the next", async (t) => {
  const { url, lines } = await startWorkers(t, { env: { PARLEY_MAX_CONNECTIONS: "6" } });
  const open: Socket[] = [];
  t.after(() => open.map((socket) => socket.destroy()));
  const dropped = new Promise((resolve) => {
    // Two of six are in use.
    for (let more = 0; more < 8; more++) {
      const socket = connect(Number(new URL(url).port), "127.0.0.1");
      open.push(socket.on("error", () => {}).once("close", resolve));
    }
  });
  await within(dropped, "the end of one connection");
  for (const socket of open) socket.destroy();
  for (const line of lines) assert.equal(await line.status("/health"), 200);
});

test("what a worker held is free when it is killed", async (t) => {
  const env = { PARLEY_MAX_RUNS: "1", PARLEY_MAX_QUEUED_RUNS: "0" };
  const { lines, line, command } = await startWorkers(t, { env });
  const [here, there] = lines;
  const run = newRun();
  const lost = new EventReader(await here.chat({ ...HOLD, run }));
  await lost.until("tool_call");
  const relayed = new EventReader(await there.ask(`/api/chat/runs/${run}`));
  await relayed.until("tool_call");
  assert.equal((await (await line(there.pid)).chat({ message: "Hello", stream: false })).statusCode, 503);
  process.kill(here.pid, "SIGKILL");
  // Whoever read it, at whichever worker, hears that the line is lost and not that the run is over.
  await assert.rejects(lost.next());
  await assert.rejects(relayed.next());
  await command.printed("stderr", /Worker \d+ ended \(SIGKILL\)/);
  const again = await line(there.pid);
  const { response } = JSON.parse(await textOf(await again.chat({ message: "Hello", stream: false, run })));
  assert.match(response, /Hello/);
  await command.printed("stderr", /Worker 3 is listening/);
  assert.equal((await line(undefined, [here.pid, there.pid])).pid > 0, true);
});
