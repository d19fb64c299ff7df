/** Whatever messages and sockets do, in whatever order: the budget holds, and nothing stays counted. */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { MemoryBudget, type MessageMemory } from "../../server/limits/memory-budget.ts";
import { ApiError } from "../../server/protocol/errors.ts";

const MAX = 1_000_000;

/** Parts of messages that are not counted. */
const FREE = 64 * 1024;

const bytes = fc.integer({ min: 1, max: MAX });
const which = fc.nat({ max: 19 });
const step = fc.oneof(
  fc.record({ do: fc.constant("begin" as const) }),
  fc.record({ do: fc.constant("grow" as const), which, bytes }),
  fc.record({ do: fc.constant("share" as const), which }),
  fc.record({ do: fc.constant("end" as const), which }),
  fc.record({ do: fc.constant("remember" as const), bytes }),
  fc.record({ do: fc.constant("forget" as const), which }),
);

interface Message {
  memory: MessageMemory;
  releases: (() => void)[];
  size: number;
}

interface Droppable {
  bytes: number;
  release: () => void;
  dropped: number;
}

test("messages and remembered states never take more than the budget, the oldest state goes first, and all of it is given back", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const budget = new MemoryBudget(MAX);
      const messages: Message[] = [];
      const droppable: Droppable[] = [];
      const counted = () =>
        messages.reduce((sum, { size, releases }) => {
          return sum + (size > FREE && releases.length > 0 ? size : 0);
        }, 0);
      const pick = <One>(from: One[], at: number) => from[at % Math.max(from.length, 1)];
      for (const one of steps) {
        if (one.do === "begin") {
          const memory = budget.openMessage();
          messages.push({ memory, releases: [memory.share()], size: 0 });
        } else if (one.do === "grow") {
          const message = pick(messages, one.which);
          if (message === undefined || message.releases.length === 0) continue;
          const others = counted() - (message.size > FREE ? message.size : 0);
          const next = message.size + one.bytes;
          const fits = next <= FREE || others + next <= MAX;
          try {
            message.memory.grow(one.bytes);
            assert.ok(fits, "refused when there is no room for all messages");
            message.size = next;
          } catch (error) {
            assert.ok(error instanceof ApiError && error.code === "overloaded");
            assert.ok(!fits, "never refused for what is only remembered");
          }
        } else if (one.do === "share") {
          const message = pick(messages, one.which);
          if (message && message.releases.length > 0) message.releases.push(message.memory.share());
        } else if (one.do === "end") {
          pick(messages, one.which)?.releases.pop()?.();
        } else if (one.do === "remember") {
          const remembered: Droppable = { bytes: one.bytes, release: () => {}, dropped: 0 };
          const release = budget.addDroppable(one.bytes, () => remembered.dropped++);
          assert.equal(release !== undefined, counted() + one.bytes <= MAX);
          if (release === undefined) continue;
          remembered.release = release;
          droppable.push(remembered);
        } else {
          const at = one.which % Math.max(droppable.length, 1);
          for (const { release } of droppable.splice(at, 1)) release();
        }
        const left = droppable.filter(({ dropped }) => dropped === 0);
        assert.ok(budget.usedBytes <= MAX);
        assert.equal(budget.usedBytes, counted() + left.reduce((sum, { bytes: size }) => sum + size, 0));
        assert.ok(droppable.every(({ dropped }) => dropped <= 1));
        assert.deepEqual(left, droppable.slice(droppable.length - left.length), "the oldest went first");
      }
      for (const { releases } of messages) for (const release of releases) release();
      for (const { release } of droppable) release();
      assert.equal(budget.usedBytes, 0);
    }),
  );
});
