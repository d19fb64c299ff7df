/** When a socket's bytes are read, and when not. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { WebSocket } from "ws";
import { FrameIntake } from "../../server/http/frame-intake.ts";
import { RequestMemoryBudget } from "../../server/limits/request-memory.ts";
import type { ApiError } from "../../server/protocol/api-error.ts";

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
function intakeFor(turn: (signal: AbortSignal) => Promise<() => void>, messageMs = 10_000) {
  const socket = new Paused();
  const rules = {
    large: { enter: (_address: string, signal: AbortSignal) => turn(signal) },
    memory: new RequestMemoryBudget(64 * KIB * KIB),
    messageMs,
    minRate: 0,
  };
  const stalls: string[] = [];
  const stalled = ({ code }: ApiError) => void stalls.push(code);
  const listener = { mayTake: () => true, take: async () => {}, stalled };
  return {
    socket,
    stalls,
    intake: new FrameIntake(socket as unknown as WebSocket, rules, "192.0.2.1", listener),
  };
}

test("who sends much is read on in the next turn of the event loop, so that others are heard in between", async (t) => {
  const { socket, intake } = intakeFor(async () => () => {});
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
  const { socket, intake } = intakeFor(() => turn);
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

test("a message that stalls while it waits for its turn is told so once, and waits no longer", async (t) => {
  let place: AbortSignal | undefined;
  const waits = (signal: AbortSignal) => {
    place = signal;
    return new Promise<() => void>((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  };
  const { socket, stalls, intake } = intakeFor(waits, 1);
  t.after(() => intake.close());
  for (let kib = 0; kib <= 1024; kib += 64) intake.count(64 * KIB);
  while (stalls.length === 0) await nextTurn();
  await nextTurn();
  assert.deepEqual(stalls, ["request_timeout"]);
  assert.equal(place?.aborted, true);
  // The peer's answer to the close frame is to be heard.
  assert.equal(socket.isPaused, false);
});
