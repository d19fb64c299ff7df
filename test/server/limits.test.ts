/** The time that is given to what is not ours: the code of a project, and other servers. */

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { Late, within } from "../../server/config/within.ts";
import { gate, turns } from "../support/deadline.ts";
import { throwing } from "../support/test-tools.ts";

const never = () => new Promise<never>(() => {});

const rejectWhenAborted = (signal: AbortSignal) =>
  new Promise<never>((_resolve, reject) =>
    signal.addEventListener("abort", () => setImmediate(reject, "late"), { once: true }),
  );

const WORK: [what: string, work: (signal: AbortSignal) => unknown, ms: number, outcome: unknown][] = [
  ["returns at once", () => "value", 1000, "value"],
  ["resolves in time", async () => "value", 1000, "value"],
  ["throws", throwing("fault"), 1000, "fault"],
  ["rejects", () => Promise.reject("fault"), 1000, "fault"],
  ["never answers", never, 20, new Late(20)],
  ["rejects because it is late", rejectWhenAborted, 20, new Late(20)],
];

for (const [what, work, ms, outcome] of WORK) {
  test(`work that ${what} within its time leaves no timer, listener or rejection behind`, async () => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
    const outer = new AbortController();
    const before = timers();
    let own: AbortSignal | undefined;
    const watched = (signal: AbortSignal) => {
      own = signal;
      return work(signal);
    };
    assert.deepEqual(await within(watched, ms, outer.signal).catch((thrown: unknown) => thrown), outcome);
    assert.equal(own?.aborted, outcome instanceof Late);
    assert.deepEqual(
      [getEventListeners(outer.signal, "abort"), getEventListeners(own as AbortSignal, "abort")],
      [[], []],
    );
    // A rejection that nobody handles would fail the test.
    await turns();
    assert.equal(timers(), before);
  });
}

test("an abort from outside ends the wait with its reason, aborts the work's signal, and begins no work later", async () => {
  const outer = new AbortController();
  const begun = gate();
  let calls = 0;
  const work = (signal: AbortSignal) => {
    calls += 1;
    begun.open();
    return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(new Error("mine"))));
  };
  const waiting = within(work, 60_000, outer.signal);
  await begun.opened;
  outer.abort(new Error("stopped"));
  await assert.rejects(waiting, /stopped/);
  await assert.rejects(within(work, 60_000, outer.signal), /stopped/);
  await turns();
  assert.equal(calls, 1);
});

test("while the event loop is busy no time-out passes: an answer that is there in the meantime counts", async () => {
  const answer = within(() => new Promise((resolve) => setTimeout(resolve, 10, "value")), 100);
  const until = performance.now() + 200;
  while (performance.now() < until);
  assert.equal(await answer, "value");
});
