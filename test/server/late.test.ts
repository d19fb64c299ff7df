import assert from "node:assert/strict";
import { test } from "node:test";
import { Late } from "../../server/node/late.ts";

test("what could not be made is made again for the next who asks, once for all who ask at a time", async () => {
  const part = {};
  let reads = 0;
  const late = new Late(async () => {
    reads += 1;
    if (reads === 1) throw new Error("not found");
    return part;
  });
  const failed = await Promise.allSettled([late.come(), late.come()]);
  assert.deepEqual(
    failed.map(({ status }) => status),
    ["rejected", "rejected"],
  );
  assert.equal(late.now, undefined);
  assert.deepEqual(await Promise.all([late.come(), late.come()]), [part, part]);
  assert.equal(late.now, part);
  assert.equal(late.part, part);
  assert.equal(reads, 2);
});
