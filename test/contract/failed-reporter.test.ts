/** What is left of a run's log where only its end is kept: `test/run.ts` says it last. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { TestEvent } from "node:test/reporters";
import failed from "../support/failed-reporter.ts";

function fails(name: string, failureType: string, message: string, todo?: boolean): TestEvent {
  const cause = new Error(message);
  const error = Object.assign(new Error("a wrapper"), { cause, failureType });
  const more = todo === undefined ? {} : { todo };
  const details = { error, duration_ms: 1 };
  return { type: "test:fail", data: { name, details, nesting: 0, testNumber: 1, ...more } };
}

async function* events(): AsyncGenerator<TestEvent> {
  const details = { duration_ms: 1 };
  yield { type: "test:pass", data: { name: "a good one", details, nesting: 0, testNumber: 1 } };
  yield fails("an inner one", "testCodeFailure", "one thing\n\n  is another");
  yield fails("an outer one", "subtestsFailed", "1 subtest failed");
  const message = "HUNG: no test began for 120 s.\n";
  yield { type: "test:stderr", data: { file: "a.mjs", message: "not a failure\n" } };
  yield { type: "test:stderr", data: { file: "a.mjs", message } };
  yield fails("one that is to do", "testCodeFailure", "not yet", true);
}

test("each test that failed is named in one line with what was thrown, and so is a process that hung", async () => {
  const lines: string[] = [];
  for await (const line of failed(events())) lines.push(line);
  assert.deepEqual(lines, ["FAILED: an inner one: one thing is another\n", "HUNG: no test began for 120 s.\n"]);
});
