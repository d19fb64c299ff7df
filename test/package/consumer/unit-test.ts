/** A project's own unit test of its agent: it needs no server. */

import assert from "node:assert/strict";
import { test } from "node:test";
import agent, { orderStatus } from "./agent.ts";

test("the tool says where an order is", () => {
  const context = { signal: new AbortController().signal, callId: "call_1" };
  assert.deepEqual(orderStatus.execute({ order: "7" }, context), {
    order: "7",
    status: "on its way",
  });
  assert.equal(agent.name, "Acme Support");
});
