/** The log of one run: what its readers get, when the run has to wait, and what is dropped. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { StreamEvent } from "../../server/protocol/events.ts";
import { EventLog, LogBudget, type Reader } from "../../server/runs/event-log.ts";
import { within } from "../support/deadline.ts";

const KIB = 1024;

const token = (chars: number): StreamEvent => ({ type: "token", data: "x".repeat(chars) });

function createLog({ maxBytes = 100 * KIB, keptBytes = 0, budget = new LogBudget(1000 * KIB) } = {}): EventLog {
  return new EventLog({ maxBytes, keptBytes, budget });
}

/** The numbers of the next batch. */
async function next(reader: Reader): Promise<number[]> {
  const { value = [] } = await within(reader.next(), "the next batch");
  return value.map(({ id }) => id);
}

test("a reader gets what is there at once, then each batch as it is written, and then the end", async () => {
  const log = createLog();
  log.append([token(1), token(1)]);
  const reader = log.read(0, () => {});
  assert.deepEqual(await next(reader), [1, 2]);
  const waiting = next(reader);
  log.append([token(1)]);
  assert.deepEqual(await waiting, [3]);
  assert.equal(reader.isAtEnd, false);
  log.end();
  assert.equal(reader.isAtEnd, true);
  assert.equal((await reader.next()).done, true);
});

test("a reader that is closed while it waits ends, and tells so once", async () => {
  const log = createLog();
  let closed = 0;
  const reader = log.read(0, () => closed++);
  const waiting = reader.next();
  reader.close();
  reader.close();
  assert.equal((await within(waiting, "the end")).done, true);
  assert.equal(closed, 1);
});

test("the run waits when its quickest reader is 64 KiB behind, whatever the others do", async () => {
  const log = createLog({ maxBytes: 1000 * KIB });
  const [quick] = [log.read(0, () => {}), log.read(0, () => {})];
  assert.ok(quick);
  log.append([token(63 * KIB)]);
  assert.equal(log.isFull, false);
  log.append([token(2 * KIB)]);
  assert.equal(log.isFull, true);
  const changed = log.change();
  assert.deepEqual(await next(quick), [1]);
  await within(changed, "room for more");
  assert.equal(log.isFull, false);
});

test("without a reader the run waits when the log is full, and drops nothing", async () => {
  const log = createLog({ maxBytes: 10 * KIB, keptBytes: 5 * KIB });
  log.append([token(6 * KIB)]);
  assert.equal(log.isFull, false);
  log.append([token(6 * KIB)]);
  assert.equal(log.isFull, true);
  assert.deepEqual(await next(log.read(0, () => {})), [1, 2]);
});

test("what all readers have is dropped beyond the part that is kept, but never the newest event", async () => {
  const log = createLog({ maxBytes: 10 * KIB, keptBytes: 5 * KIB });
  const reader = log.read(0, () => {});
  for (let id = 1; id <= 10; id++) {
    log.append([token(2 * KIB)]);
    assert.deepEqual(await next(reader), [id]);
  }
  assert.throws(() => log.read(0, () => {}), { code: "run_expired" });
  assert.throws(() => log.read(11, () => {}), { code: "invalid_request" });
  const kept = await next(log.read("oldest", () => {}));
  assert.ok(kept.length >= 1 && kept.length <= 4, `${kept}`);
  log.append([token(50 * KIB)]);
  assert.deepEqual(await next(reader), [11]);
  assert.deepEqual(await next(log.read("oldest", () => {})), [11]);
});

test("a reader that is slower than the log can wait for fails with run_expired, and the others read on", async () => {
  const log = createLog({ maxBytes: 10 * KIB, keptBytes: 5 * KIB });
  const [quick, slow] = [log.read(0, () => {}), log.read(0, () => {})];
  for (let id = 1; id <= 10; id++) {
    log.append([token(2 * KIB)]);
    assert.deepEqual(await next(quick), [id]);
  }
  await assert.rejects(slow.next(), { code: "run_expired" });
});

test("the memory of all logs is bounded: old logs are dropped for new events, and else the run waits", async () => {
  const budget = new LogBudget(20 * KIB);
  const old = createLog({ maxBytes: 50 * KIB, budget });
  old.append([token(15 * KIB)]);
  old.end();
  let dropped = 0;
  budget.offer(() => {
    dropped++;
    old.forget();
  });
  const log = createLog({ maxBytes: 50 * KIB, budget });
  log.append([token(10 * KIB)]);
  assert.equal(dropped, 1);
  assert.equal(log.isFull, false);
  log.append([token(10 * KIB)]);
  assert.equal(log.isFull, true);
  const changed = log.change();
  const reader = log.read(0, () => {});
  await next(reader);
  await within(changed, "room for more");
});
