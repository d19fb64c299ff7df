/** A conversation that a client keeps comes back whole, or is refused. */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readState, sealState } from "../../server/agent/state.ts";
import type { HistoryMessage } from "../../server/protocol/chat.ts";
import { binding, isJudged } from "./judged.ts";

const turn = fc
  .tuple(
    fc.string(),
    fc.array(fc.tuple(fc.string(), fc.json(), fc.string()), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom("thinking_blocks", "reasoning"), fc.jsonValue()),
  )
  .map(([said, calls, extra]): HistoryMessage[] => [
    { role: "user", content: said },
    {
      ...extra,
      role: "assistant",
      content: said,
      tool_calls: calls.map(([name, args], index) => ({
        id: `c${index}`,
        type: "function",
        function: { name, arguments: args },
      })),
    },
    ...calls.map(
      ([, , content], index): HistoryMessage => ({
        role: "tool",
        tool_call_id: `c${index}`,
        content,
      }),
    ),
  ]);
const history = fc.array(turn, { minLength: 1, maxLength: 4 }).map((turns) => turns.flat());

/** As a client may have kept it. */
const stored = (value: unknown): unknown => JSON.parse(JSON.stringify(value, sortKeys));
const sortKeys = (_key: string, value: unknown) =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? 1 : -1)))
    : value;

test("any conversation comes back from a client as it was sealed, and no other way", () => {
  fc.assert(
    fc.property(history, fc.nat(), (messages, place) => {
      const sealed = sealState({ conversation_history: messages }, binding);
      const back = readState(stored(sealed), binding);
      assert.deepEqual(stored(back), stored({ conversation_history: messages }));

      const altered = structuredClone(sealed) as { conversation_history: { content: unknown }[] };
      const target = altered.conversation_history[place % messages.length];
      assert.ok(target);
      target.content = `${target.content}.`;
      assert.equal(
        isJudged(() => readState(altered, binding)),
        false,
      );
      assert.equal(
        isJudged(() => readState(sealed, { ...binding, agent: "Other" })),
        false,
      );
    }),
    { numRuns: 150 },
  );
});
