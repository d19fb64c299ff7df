/** A property of conversations: each branch continues with its own state. `operations.test.ts` covers tabs. */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { HistoryMessage } from "../../server/protocol/chat.ts";
import { type StoredState, storedState } from "../../widget/conversations/branch-states.ts";
import {
  alternativesOf,
  canReplace,
  conversationOf,
  EMPTY_DATA,
  findMessage,
  lastAnswerOf,
  lastQuestionOf,
  stateAt,
  stateOf,
} from "../../widget/conversations/conversation.ts";
import type { Message } from "../../widget/conversations/messages.ts";
import { apply, type Operation } from "../../widget/conversations/operations.ts";
import { fromRow } from "../../widget/conversations/read-row.ts";
import { rowOf, UNREADABLE } from "../../widget/conversations/row.ts";
import type { RunEvent } from "../../widget/transport/transport.ts";
import { textsOf } from "./chat-client.ts";

const historyOf = (texts: readonly string[]): HistoryMessage[] =>
  texts.map((content, index) =>
    index % 2 === 0 ? { role: "user", content } : ({ role: "assistant", content } as HistoryMessage),
  );

const operation = fc.oneof(
  fc.constant({ do: "ask" as const }),
  fc.record({ do: fc.constant("edit" as const), at: fc.nat(20) }),
  fc.record({ do: fc.constant("again" as const), signed: fc.boolean() }),
  fc.record({ do: fc.constant("switch" as const), at: fc.nat(20), to: fc.nat(5) }),
  fc.constant({ do: "withdraw" as const }),
  fc.record({ do: fc.constant("add" as const), to: fc.constantFrom("an answer", "a failure") }),
  fc.constant({ do: "reload" as const }),
);

/** Texts that the agent knows: without those added by the page and those never answered. */
const known = (messages: readonly Message[]): string[] =>
  messages
    .filter(({ role }) => role !== "page")
    .flatMap((it, index, all) =>
      it.role === "user" && textsOf(all.slice(index + 1, index + 2))[0] ? [it, all[index + 1]] : [],
    )
    .flatMap((it) => textsOf(it ? [it] : []));

test("each branch goes on with its own state over random edits, repeats, switches, reloads and messages of the page, and none is lost", () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 30 }), (operations) => {
      let conversation = conversationOf(EMPTY_DATA);
      const given = new Set<string>();
      let count = 0;
      const next = (what: string) => `${what}${count++}`;
      const change = (it: Operation) => {
        conversation = apply(conversation, it);
      };
      const start = () => ({ run: `r${count++}`, at: 1 });
      const say = (event: RunEvent, state?: StoredState) =>
        change({
          type: "event",
          event,
          run: `${conversation.run?.run}`,
          reference: "r",
          at: 1,
          ...(state && { state }),
        });
      /** Answers like the server, from nothing but the request. */
      const answer = () => {
        const question = lastQuestionOf(conversation);
        assert.ok(question);
        const sent = stateAt(conversation, question.id);
        assert.deepEqual(sent?.conversation_history ?? [], historyOf(known(conversation.messages)));
        const said = next("answer");
        const history = [...(sent?.conversation_history ?? []), ...historyOf([question.text, said])];
        const state = storedState({ conversation_history: history, signature: said }, sent);
        say({ type: "token", data: said, id: 1 });
        say({ type: "done", data: said, finish_reason: "stop", state: {}, id: 2 }, structuredClone(state));
        given.add(said);
      };
      const ask = (replaces?: string) =>
        change({ type: "ask", message: { text: next("question"), files: [] }, replaces, ...start() });
      for (const it of operations) {
        const { messages } = conversation;
        const questions = messages.filter(({ role }) => role === "user");
        if (it.do === "ask") ask();
        else if (it.do === "edit" && questions.length > 0) {
          // Also for a hidden message, because another tab may have switched branches.
          const all = conversation.tree.filter(({ role }) => role === "user");
          const changed = all[it.at % all.length];
          assert.ok(changed && canReplace(conversation, changed.id));
          ask(changed.id);
          const { parent } = lastQuestionOf(conversation) ?? {};
          assert.equal(parent, changed.parent, "the new message stands beside the old one");
        } else if (it.do === "add") {
          if (it.to === "a failure") {
            ask();
            const run = `${conversation.run?.run}`;
            change({ type: "end", run, failure: { code: "unreadable", retryable: true }, at: 1 });
          }
          const before = conversation;
          const said = next("note");
          change({ type: "add", message: { text: said }, at: 1 });
          given.add(said);
          assert.equal(conversation.messages.at(-1)?.role, "page");
          assert.deepEqual(stateOf(conversation), stateOf(before));
          assert.deepEqual(lastQuestionOf(conversation), lastQuestionOf(before));
          assert.deepEqual(lastAnswerOf(conversation), lastAnswerOf(before));
          continue;
        } else if (it.do === "again" && questions.length > 0) change({ type: "answer_again", ...start() });
        else if (it.do === "switch" && messages.length > 0) {
          const others = alternativesOf(conversation, messages[it.at % messages.length] as Message);
          change({ type: "switch", id: others[it.to % others.length] ?? "" });
          continue;
        } else if (it.do === "withdraw") {
          ask();
          const question = lastQuestionOf(conversation);
          assert.ok(question);
          change({ type: "withdraw", run: `${conversation.run?.run}` });
          assert.equal(findMessage(conversation, question.id), undefined);
          assert.deepEqual(textsOf(conversation.messages), textsOf(messages));
          continue;
        } else if (it.do === "reload") {
          const read = fromRow(structuredClone(rowOf("c", conversation, { agent: "", kept: "tab" }, 1)));
          assert.ok(read !== UNREADABLE);
          conversation = conversationOf(read);
          assert.deepEqual(textsOf(conversation.messages), textsOf(messages));
          continue;
        } else continue;
        answer();
      }
      const kept = conversation.tree.flatMap((it) => (it.role === "user" ? [] : textsOf([it])));
      assert.deepEqual(new Set(kept.filter((said) => said !== "")), given);
    }),
    { numRuns: 200 },
  );
});
