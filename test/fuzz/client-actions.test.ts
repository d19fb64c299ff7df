/** A client that does anything in any order, against a real server: what every reader of a socket may rely on. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";
import type { SocketEvent } from "../../server/protocol/events.ts";
import { newRun } from "../support/run-lines.ts";
import { say, type Turn, wait } from "../support/scripted-provider.ts";
import { connect, type SocketClient } from "../support/socket-client.ts";
import { type Cleanup, startServer, type TestServer } from "../support/start-server.ts";

const SEQUENCES = 40;
const ACTIONS = ["send", "send", "stop", "clear", "resume", "read", "read", "cut"] as const;
type Action = (typeof ACTIONS)[number];

/** What may answer a command that does not suit; a run goes on beside it. */
const ANSWERS = ["run_in_progress", "invalid_request", "run_not_found", "run_expired"];

/** A short answer, with the process doing other things in between. */
function* turn(): Generator<Turn extends Iterable<infer Step> ? Step : never, void> {
  for (let word = 0; word < 6; word++) {
    yield say(`${word} `);
    yield wait(nextTurn());
  }
}

/** One client on one line after another. Judges each event by those before it. */
class Client {
  readonly #t: Cleanup;
  readonly #server: TestServer;
  #line: SocketClient | undefined;
  /** Number of the newest event, and whether it was the last of its run. */
  #last = 0;
  #isOver = true;
  /** Of the run that was named last. */
  #run = newRun();
  /** Where a resumed run may go on. */
  readonly #resumed = new Set<number>();

  constructor(t: Cleanup, server: TestServer) {
    this.#t = t;
    this.#server = server;
  }

  async act(action: Action): Promise<void> {
    this.#line ??= await connect(this.#t, this.#server.socketUrl);
    switch (action) {
      case "send":
        this.#run = newRun();
        return this.#line.send({ message: "Hi", run: this.#run });
      case "stop":
        return this.#line.send({ type: "stop" });
      case "clear":
        return this.#line.send({ type: "clear" });
      case "resume":
        this.#resumed.add(this.#last + 1);
        return this.#line.send({ type: "resume", run: this.#run, after: this.#last });
      case "read":
        for (let round = 0; round < 4; round++) await nextTurn();
        return this.#readArrived();
      case "cut":
        this.#readArrived();
        this.#line.socket.terminate();
        this.#line = undefined;
        // The new line begins with nothing, or in the middle of a run that is resumed.
        this.#isOver = true;
    }
  }

  /** Ends whatever runs, and proves that the socket serves on. */
  async finish(): Promise<void> {
    await this.act("clear");
    const line = this.#line;
    assert.ok(line);
    // What was sent before is answered before this, which is no JSON.
    line.socket.send("{");
    for (;;) {
      const event = await line.next();
      if (event.type === "error" && event.code === "invalid_json") break;
      this.#judge(event);
    }
    const events = await line.run({ message: "Hi" });
    const told = events.filter((event) => "id" in event);
    assert.deepEqual(
      told.map((event) => event.id),
      [1, 2, 3, 4, 5, 6, 7],
    );
    assert.equal(told.at(-1)?.type, "done");
    line.socket.terminate();
  }

  #readArrived(): void {
    const line = this.#line;
    // Taking an event that is there already needs no waiting, and what is taken is judged in order.
    for (const event of line?.takeArrived() ?? []) this.#judge(event);
  }

  #judge(event: SocketEvent): void {
    if (event.type === "cleared") {
      this.#isOver = true;
      return;
    }
    if (!("id" in event)) {
      assert.ok(event.type === "error" && ANSWERS.includes(event.code), JSON.stringify(event));
      return;
    }
    const id = event.id as number;
    const goesOn = !this.#isOver && id === this.#last + 1;
    const begins = this.#isOver && (id === 1 || this.#resumed.has(id));
    assert.ok(goesOn || begins, `event ${id} after ${this.#last}, run over: ${this.#isOver}`);
    this.#last = id;
    this.#isOver = event.type === "done" || event.type === "error";
  }
}

test("whatever a client does, a run's events have no gap, one end, and one run is answered at a time", async (t) => {
  const turns = Array.from({ length: SEQUENCES * 60 }, turn);
  const env = {
    PARLEY_RATE_PER_ADDRESS: "0",
    PARLEY_RATE_PER_SOCKET: "0",
    PARLEY_MAX_RUNS_PER_ADDRESS: "0",
    PARLEY_RESUME_SECONDS: "1",
  };
  const server = await startServer(t, { turns, env });
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...ACTIONS), { maxLength: 14 }), async (actions) => {
      const client = new Client(t, server);
      for (const action of actions) await client.act(action);
      await client.finish();
    }),
    { numRuns: SEQUENCES, interruptAfterTimeLimit: 60_000, markInterruptAsFailure: true },
  );
  assert.doesNotMatch(server.log.join("\n"), /internal|Error:/);
});
