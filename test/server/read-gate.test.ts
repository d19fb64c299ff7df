/** A body that comes as quickly as it is read leaves room for others. */

import assert from "node:assert/strict";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { withBody } from "../../server/http/body.ts";
import { RequestMemoryBudget } from "../../server/limits/request-memory.ts";

const PIECE = 64 * 1024;
const PIECES = 12;

test("of a body that is all there, a part is read in each turn of the event loop", async () => {
  const req = new IncomingMessage(new Socket());
  req.headers = { "content-type": "application/json" };
  for (let piece = 0; piece < PIECES; piece++) req.push(Buffer.alloc(PIECE));
  req.push(null);
  const rules = {
    limit: PIECES * PIECE,
    large: { enter: async () => () => {} },
    minRate: 0,
    address: "192.0.2.1",
    memory: new RequestMemoryBudget(PIECES * PIECE).hold(),
  };
  const size = withBody(req, new ServerResponse(req), rules, async (blocks) => blocks.size);
  let turns = 0;
  const count = async () => {
    while (!req.readableEnded) {
      turns++;
      await nextTurn();
    }
  };
  await count();
  assert.equal(await size, PIECES * PIECE);
  assert.ok(turns > 2, `${turns} turns for ${PIECES} pieces`);
});
