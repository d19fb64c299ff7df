/** When a socket's bytes are read, and when not. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { WebSocket } from "ws";
import { FrameIntake } from "../../server/http/frame-intake.ts";
import { RequestMemoryBudget } from "../../server/limits/request-memory.ts";

const KIB = 1024;

class Paused {
  isPaused = false;
  pause(): void {
    this.isPaused = true;
  }
  resume(): void {
    this.isPaused = false;
  }
}

/** An intake whose large messages wait for `turn`, and what it makes of its socket. */
function intakeFor(turn: Promise<() => void>) {
  const socket = new Paused();
  const rules = {
    large: { enter: () => turn },
    memory: new RequestMemoryBudget(64 * KIB * KIB),
    messageMs: 10_000,
    minRate: 0,
  };
  const listener = { mayTake: () => true, take: async () => {}, stalled: () => {} };
  return {
    socket,
    intake: new FrameIntake(socket as unknown as WebSocket, rules, "192.0.2.1", listener),
  };
}

test("who sends much is read on in the next turn of the event loop, so that others are heard in between", async (t) => {
  const { socket, intake } = intakeFor(Promise.resolve(() => {}));
  t.after(() => intake.close());
  intake.count(64 * KIB);
  assert.equal(socket.isPaused, false);
  intake.count(192 * KIB);
  assert.equal(socket.isPaused, true);
  await nextTurn();
  assert.equal(socket.isPaused, false);
});

test("a large message that waits for its turn is not read on before, however many turns of the event loop pass", async (t) => {
  let come: (leave: () => void) => void = () => {};
  const turn = new Promise<() => void>((resolve) => {
    come = resolve;
  });
  const { socket, intake } = intakeFor(turn);
  t.after(() => intake.close());
  for (let kib = 0; kib <= 1024; kib += 64) intake.count(64 * KIB);
  for (let turns = 0; turns < 3; turns++) {
    await nextTurn();
    assert.equal(socket.isPaused, true);
  }
  come(() => {});
  await nextTurn();
  assert.equal(socket.isPaused, false);
});
