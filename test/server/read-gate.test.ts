/** A body that comes as quickly as it is read leaves room for others, and a large one still waits for its turn. */

import assert from "node:assert/strict";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { withBody } from "../../server/http/body.ts";
import { ReadGate } from "../../server/http/read-gate.ts";
import { RequestMemoryBudget } from "../../server/limits/request-memory.ts";
import { ApiError } from "../../server/protocol/api-error.ts";

const PIECE = 64 * 1024;
const MIB = 1024 * 1024;

/** A body in pieces of these sizes, all of which are there; and what `withBody` makes of it. */
function read(
  pieces: readonly number[],
  enter: (address: string, signal: AbortSignal) => Promise<() => void>,
  { limit = 2 * MIB, ends = true } = {},
) {
  const req = new IncomingMessage(new Socket());
  req.headers = { "content-type": "application/json" };
  for (const size of pieces) req.push(Buffer.alloc(size));
  if (ends) req.push(null);
  const memory = new RequestMemoryBudget(2 * MIB).hold();
  const rules = { limit, large: { enter }, minRate: 0, address: "192.0.2.1", memory };
  const size = withBody(req, new ServerResponse(req), rules, async (blocks) => blocks.size);
  return { req, size };
}

async function turnsUntil(isOver: () => boolean): Promise<number> {
  let turns = 0;
  for (; !isOver(); turns++) await nextTurn();
  return turns;
}

test("of a body that is all there, a part is read in each turn of the event loop", async () => {
  const { req, size } = read(Array<number>(15).fill(PIECE), async () => () => {});
  const turns = await turnsUntil(() => req.readableEnded);
  assert.equal(await size, 15 * PIECE);
  assert.ok(turns >= 3, `${turns} turns for 15 pieces`);
});

test("a body whose last bytes make it large waits for its turn, and gives it back", async () => {
  let come: (leave: () => void) => void = () => {};
  const turn = new Promise<() => void>((resolve) => {
    come = resolve;
  });
  let left = 0;
  const { req, size } = read([...Array<number>(16).fill(PIECE), 100], () => turn);
  let isUsed = false;
  void size.then(() => {
    isUsed = true;
  });
  await turnsUntil(() => req.readableEnded);
  await nextTurn();
  assert.equal(isUsed, false);
  come(() => left++);
  assert.equal(await size, MIB + 100);
  assert.equal(left, 1);
});

test("a body that is refused while it waits for its turn gives that back when it comes", async () => {
  let come: (leave: () => void) => void = () => {};
  const turn = new Promise<() => void>((resolve) => {
    come = resolve;
  });
  const { req, size } = read([MIB + 1], () => turn, { ends: false });
  await turnsUntil(() => req.isPaused());
  req.destroy();
  await assert.rejects(size, ApiError);
  let left = 0;
  come(() => left++);
  await nextTurn();
  assert.equal(left, 1);
});

test("what is over the limit is thrown away to its end", async () => {
  const { req, size } = read(Array<number>(20).fill(PIECE), async () => () => {}, {
    limit: 4 * PIECE,
  });
  await assert.rejects(size, { code: "request_too_large" });
  await turnsUntil(() => req.readableEnded);
});

test("once a gate is released, nothing that was under way stops or begins to read", async () => {
  const source = new IncomingMessage(new Socket());
  const gate = new ReadGate(source);
  gate.count(MIB);
  assert.equal(source.isPaused(), true);
  gate.release();
  assert.equal(source.isPaused(), false);
  gate.close();
  gate.count(MIB);
  assert.equal(source.isPaused(), false);
  source.pause();
  gate.open();
  await nextTurn();
  assert.equal(source.isPaused(), true);
});
