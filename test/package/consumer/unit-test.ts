/** A project's own unit test of its agent, without a server. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ToolContext } from "parley-agent";
import agent, { orderStatus } from "./agent.ts";

test("the tool says where an order is", () => {
  const context = { signal: new AbortController().signal } as ToolContext;
  assert.deepEqual(orderStatus.execute({ order: "7" }, context), {
    order: "7",
    status: "on its way",
  });
  assert.equal(agent.name, "Acme Support");
});
