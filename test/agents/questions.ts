/** Questions for all agents, no matter how they are written. */

import assert from "node:assert/strict";
import type { NumberedEvent, StreamEvent } from "../../server/protocol/events.ts";
import { json, post, send, timeless, typesOf } from "../support/chat-transports.ts";
import type { StartedCommand } from "../support/command.ts";
import { PROCESS_MS } from "../support/deadline.ts";
import { newRun, openLine } from "../support/run-lines.ts";
import { connect } from "../support/socket-client.ts";
import type { Cleanup } from "../support/start-server.ts";
import { ANSWER, INNER_WORDS, lastAsked, lastBody, requests, saidSince, textsOf } from "./model.ts";

/** An agent behind the real command. */
export interface Row {
  name: string;
  /** Starts the agent; `env` is added to the usual environment. */
  serve(t: Cleanup, env?: Record<string, string>): Promise<StartedCommand>;
  /** Starts the variant whose model does not stream. */
  serveWhole?: Row["serve"] | undefined;
  /** Whether the model's provider stores the conversation: requests have the new message and the last answer's id. */
  isStored?: boolean | undefined;
  /** Whether the agent's model gets the reason of a refusal. */
  hearsWhy?: boolean | undefined;
  /** Whether, among parallel calls, one refused call refuses all. */
  decidesAlike?: boolean | undefined;
  /** Whether the agent asks for approval of one call at a time. */
  asksSingly?: boolean | undefined;
  /** Whether a tool of the inner agent reports progress. */
  saysProgress?: boolean | undefined;
  /** Abilities that the agent lacks, with the reasons. */
  without?: Partial<Record<Ability, string>> | undefined;
}

export type Ability = "pictures" | "earlier states" | "whole answers" | "approvals";

export interface Question {
  title: string;
  /** The question is only for agents with this ability. */
  needs?: Ability;
  ask(t: Cleanup, row: Row): Promise<void>;
}

const KEY = "k".repeat(24);

const LOOK = { message: "where is order 4711" };

const PICTURE = { type: "image", name: "a.png", mime_type: "image/png", data: "iVBORw0KGgo=" };

/** Tools and texts, without ids and times, which differ on each run. */
// biome-ignore lint/suspicious/noExplicitAny: a test reads what is left of any event.
function told(events: readonly StreamEvent[]): any[] {
  const ids = new Map<string, number>();
  return timeless(events).map((event) => {
    const { state: _state, usage: _usage, data, ...rest } = event as Record<string, unknown>;
    if (typeof data !== "object" || data === null) return { ...rest, data };
    const { id } = data as { id: string };
    if (!ids.has(id)) ids.set(id, ids.size);
    return { ...rest, data: { ...data, id: ids.get(id) } };
  });
}

/** The minimum for each agent. It is the only question for the examples, which readers copy. */
export const FIRST: Question = {
  title: "the same events over every wire, and as JSON, with its tool as a row",
  async ask(t, { serve }) {
    const server = await serve(t);
    const outcomes = {
      // The first message may load more of the framework, which takes time.
      json: await json(t, server, LOOK, { signal: AbortSignal.timeout(PROCESS_MS) }),
      sse: await send.sse(t, server, LOOK),
      socket: await send.socket(t, server, LOOK),
    };
    assert.deepEqual(told(outcomes.sse.events), told(outcomes.socket.events));
    for (const { last } of Object.values(outcomes)) {
      assert.ok(last.type === "done", JSON.stringify(last));
      assert.deepEqual([last.data, last.finish_reason], [ANSWER, "stop"]);
      assert.ok(last.state.signature);
    }
    const types = typesOf(outcomes.sse.events);
    assert.deepEqual([...new Set(types)], ["tool_call", "tool_result", "token", "done"]);
    const [call, result] = outcomes.sse.events;
    assert.ok(call?.type === "tool_call" && result?.type === "tool_result");
    assert.deepEqual([call.data.tool, JSON.parse(call.data.arguments)], ["get_order_status", { order: "4711" }]);
    assert.deepEqual([result.data.id, result.data.status], [call.data.id, "completed"]);
    assert.deepEqual(JSON.parse(result.data.output), { order: "4711", status: "on its way" });
    assert.equal(outcomes.json.toolCalls?.length, 1);
    assert.doesNotMatch(server.command.stderr, /does not know/);
  },
};

/** A question for agents with an inner agent, which has two tools; one of them reports progress if it can. */
export const STEPS: Question = {
  title:
    "what the agent within its tool does stands below the call and ends before it, and what that one says is not shown",
  async ask(t, { serve, saysProgress = false }) {
    const server = await serve(t);
    const { events, last } = await send.sse(t, server, { message: "have the desk look" });
    assert.deepEqual([last.type, last.data], ["done", ANSWER], JSON.stringify(last));
    const rows = events.flatMap(({ type, data }) =>
      type === "tool_call" || type === "tool_result" ? [{ type, ...data }] : [],
    );
    const [call, ...steps] = rows.slice(0, -1);
    const end = rows.at(-1);
    assert.match(call?.tool ?? "", /^(?:ask_|agent-)desk$/);
    assert.deepEqual([end?.id, Object(end).status, Object(end).output], [call?.id, "completed", ANSWER]);
    for (const { parent } of steps) assert.equal(parent, call?.id);
    const tools = (type: string) => steps.flatMap((step) => (step.type === type ? [step.tool] : []));
    assert.deepEqual(tools("tool_call"), ["get_order_status", "ask_carrier"]);
    assert.deepEqual(tools("tool_result").toSorted(), ["ask_carrier", "get_order_status"]);
    for (const step of steps)
      assert.deepEqual(JSON.parse(Object(step).arguments ?? '{"order":"4711"}'), { order: "4711" });
    for (const step of steps) assert.notEqual(Object(step).status, "failed");
    assert.match(JSON.stringify(steps), /4711 is at the depot/);
    const asked = steps.find(({ tool }) => tool === "ask_carrier");
    const said = events.flatMap(({ type, data }) =>
      type === "tool_progress" && data.id === asked?.id ? [data.text] : [],
    );
    if (saysProgress) assert.equal(said[0], "Calling the carrier");
    assert.ok(saidSince(0).includes(INNER_WORDS));
    assert.doesNotMatch(JSON.stringify(events), new RegExp(INNER_WORDS));
    assert.doesNotMatch(server.command.stderr, /does not know/);
    const { toolCalls } = await send.json(t, server, { message: "have the desk look" });
    assert.deepEqual(
      toolCalls?.map((one) => Object(one).parent !== undefined),
      [false, true, true],
    );
  },
};

/** `python-questions.ts` asks the Python servers the same. */
export const OF_JAVASCRIPT: Question[] = [
  {
    title: "three messages in a row, of which its model knows all",
    async ask(t, { serve, isStored }) {
      const server = await serve(t);
      const first = await send.sse(t, server, LOOK);
      const second = await send.json(t, server, { message: "thanks", state: first.last.state });
      const third = await send.socket(t, server, { message: "number 3", state: second.last.state });
      assert.deepEqual([second.last.data, third.last.data], ["You are welcome.", "I am number 3."]);
      if (isStored) assert.match(JSON.stringify(second.last.state), new RegExp(`"${lastBody().previous_response_id}"`));
      else
        assert.match(lastAsked(), /where is order 4711.*Order 4711 is on its way.*thanks.*You are welcome.*number 3/);
    },
  },
  {
    title: "a picture reaches its model",
    needs: "pictures",
    async ask(t, { serve }) {
      const server = await serve(t);
      const { last } = await send.sse(t, server, { message: "number 7", attachments: [PICTURE] });
      assert.equal(last.data, "I am number 7.", JSON.stringify(last));
      assert.match(lastAsked(), /number 7.*data:image\/png;base64,iVBORw0KGgo=/);
      const next = await send.sse(t, server, { message: "thanks", state: last.state });
      assert.equal(next.last.data, "You are welcome.", JSON.stringify(next.last));
    },
  },
  {
    title: "a message that a person has changed, and another answer, go on from what is shown",
    needs: "earlier states",
    async ask(t, { serve, isStored }) {
      const server = await serve(t);
      const { last: first } = await send.sse(t, server, { message: "number 1" });
      for (const message of ["number 2", "number 3", "number 3"]) {
        const before = requests();
        const { last } = await send.sse(t, server, { message, state: first.state });
        assert.equal(last.data, `I am ${message}.`, JSON.stringify(last));
        assert.deepEqual(textsOf(before), isStored ? [message] : ["number 1", "I am number 1.", message]);
        if (isStored) assert.match(JSON.stringify(first.state), new RegExp(`"${lastBody().previous_response_id}"`));
      }
    },
  },
];

export const SHARED: Question[] = [
  {
    title: "a run whose connection is cut after any of its events is resumed without a gap or a double",
    async ask(t, { serve }) {
      const server = await serve(t);
      const whole = await (await openLine.sse(t, server, LOOK)).rest();
      for (let seen = 1; seen < whole.length; seen++) {
        const run = newRun();
        const first = await openLine.socket(t, server, { ...LOOK, run });
        const events: NumberedEvent[] = [];
        while (events.length < seen) events.push(await first.next());
        await first.cut();
        events.push(...(await (await openLine.sse(t, server, { resume: run, after: seen })).rest()));
        assert.deepEqual(told(events), told(whole));
      }
    },
  },
  {
    title: "it is stopped at once, its model, too, and the conversation goes on",
    async ask(t, { serve }) {
      const server = await serve(t);
      const client = await connect(t, server.socketUrl);
      client.send({ message: "slowly" });
      const [first] = await client.until("token");
      client.send({ type: "stop" });
      const done = (await client.until("done")).at(-1);
      assert.ok(done?.type === "done" && first?.type === "token");
      assert.equal(done.finish_reason, "stopped");
      assert.ok(done.data.startsWith("word ") && done.data.length < 300);
      const next = (await client.run({ message: "thanks" })).at(-1);
      assert.equal(next?.data, "You are welcome.");
      assert.doesNotMatch(server.command.stderr, /goes on although/);
    },
  },
  {
    title: "a failure of its model is one error, whose causes stay in the log",
    async ask(t, { serve }) {
      const server = await serve(t, { PARLEY_API_KEY: KEY });
      const headers = { authorization: `Bearer ${KEY}` };
      const before = requests();
      const answer = await post(server, { message: "fail", stream: false }, { headers });
      const text = await answer.text();
      assert.deepEqual([answer.status, JSON.parse(text).error.code], [502, "provider_error"]);
      assert.doesNotMatch(text, /secret/);
      assert.equal(requests(), before + 1);
      const next = await post(server, { message: "thanks", stream: false }, { headers });
      assert.equal(JSON.parse(await next.text()).response, "You are welcome.");
    },
  },
  {
    title: "fifty conversations at once keep apart",
    async ask(t, { serve }) {
      const server = await serve(t);
      const numbers = Array.from({ length: 50 }, (_, n) => n);
      const answers = await Promise.all(numbers.map((n) => send.sse(t, server, { message: `number ${n}` })));
      assert.deepEqual(
        answers.map(({ last }) => last.data),
        numbers.map((n) => `I am number ${n}.`),
      );
    },
  },
];

/** A question for models that answer in one piece. */
export const WHOLE: Question = {
  title: "a model that is not streamed: its answer is one piece, its tool is a row, and a person is asked",
  needs: "whole answers",
  async ask(t, row) {
    const serve = row.serveWhole ?? assert.fail("it has no such agent, and no reason");
    const server = await serve(t);
    const before = requests();
    const { events } = await send.sse(t, server, LOOK);
    assert.deepEqual(typesOf(events), ["tool_call", "tool_result", "token", "done"]);
    assert.doesNotMatch(saidSince(before), /"stream":true/);
    for (const question of [FIRST, ...APPROVALS.slice(0, 1)]) await question.ask(t, { ...row, serve });
  },
};

/** Makes the agent ask for approval of two cancellations. */
async function askBoth(t: Cleanup, { serve, asksSingly }: Row, env: Record<string, string> = {}) {
  const server = await serve(t, env);
  const { last } = await send.sse(t, server, { message: "cancel them" });
  assert.ok(last.type === "done" && last.finish_reason === "approval_required", JSON.stringify(last));
  const asked = last.approvals?.map((one) => [one.tool, JSON.parse(one.arguments)]);
  const orders = asksSingly ? ["A1"] : ["A1", "B2"];
  assert.deepEqual(
    asked,
    orders.map((order) => ["cancel_order", { order }]),
  );
  const [one = "", two = ""] = last.approvals?.map(({ id }) => id) ?? [];
  const yes = { id: one, approved: true };
  const no = { id: two, approved: false, reason: "Too late" };
  return { server, state: last.state, approvals: asksSingly ? [yes] : [yes, no] };
}

/** The calls of a second answer and their outcomes, in short. */
const rowsOf = (events: readonly StreamEvent[]) =>
  told(events)
    .filter(({ type }) => type === "tool_call" || type === "tool_result")
    .map(({ type, data }) => [type, data.status, data.declined]);

const DECLINED = ["tool_result", "failed", true];
const BEGUN = ["tool_call", "running", undefined];
const DONE = ["tool_result", "completed", undefined];

export const APPROVALS: Question[] = (["json", "sse", "socket"] as const).map((transport) => ({
  title: `of two calls one is approved and one is declined with a reason, once (${transport})`,
  needs: "approvals",
  async ask(t, row) {
    const { hearsWhy = true, decidesAlike = false, asksSingly = false } = row;
    const { server, state, approvals } = await askBoth(t, row);
    let outcome = await send[transport](t, server, { approvals, state });
    if (asksSingly) {
      const { last } = outcome;
      assert.ok(last.type === "done" && last.finish_reason === "approval_required", JSON.stringify(last));
      if (transport !== "json") assert.deepEqual(rowsOf(outcome.events), [BEGUN, DONE]);
      const no = { id: last.approvals?.[0]?.id, approved: false, reason: "Too late" };
      outcome = await send[transport](t, server, { approvals: [no], state: last.state });
    }
    assert.deepEqual([outcome.last.type, outcome.last.data], ["done", ANSWER]);
    if (hearsWhy) assert.match(lastAsked(), /Too late/);
    if (decidesAlike) assert.doesNotMatch(lastAsked(), /cancelled A1/);
    else assert.match(lastAsked(), /cancelled A1/);
    assert.doesNotMatch(lastAsked(), /cancelled B2/);
    if (transport !== "json") {
      const [no, begun, end] = rowsOf(outcome.events);
      assert.deepEqual([no, begun], [DECLINED, BEGUN]);
      // If one refusal refuses all calls, the other call ends as its framework reports it.
      if (decidesAlike) assert.equal(end?.[0], "tool_result");
      else assert.deepEqual(end, DONE);
    }
    const again = await send[transport](t, server, { approvals, state });
    assert.equal(again.last.type === "error" && again.last.code, "approval_used");
    const { last } = await send[transport](t, server, { message: "thanks", state: outcome.last.state });
    assert.equal(last.data, "You are welcome.");
  },
}));

APPROVALS.push(
  {
    title: "whatever is decided, another tool may follow it, and the conversation goes on",
    needs: "approvals",
    async ask(t, { serve }) {
      const server = await serve(t);
      for (const decided of [
        { approved: true },
        { approved: false, reason: "then look" },
        { message: "look instead" },
      ]) {
        const { last } = await send.sse(t, server, { message: "cancel, then look" });
        assert.ok(last.type === "done" && last.finish_reason === "approval_required", JSON.stringify(last));
        const { state, approvals: [asked] = [] } = last;
        const sent = decided.message === undefined ? { approvals: [{ id: asked?.id, ...decided }] } : decided;
        const second = await send.sse(t, server, { ...sent, state });
        assert.deepEqual(
          [second.last.type, second.last.data],
          ["done", ANSWER],
          JSON.stringify([decided, second.last]),
        );
        const rows = told(second.events).filter(({ data }) => data.tool === "get_order_status");
        assert.deepEqual(typesOf(rows), ["tool_call", "tool_result"]);
        const third = await send.json(t, server, { message: "thanks", state: second.last.state });
        assert.equal(third.last.data, "You are welcome.", JSON.stringify([decided, third.last]));
      }
    },
  },
  {
    title: "a message in place of decisions reaches its model, and nothing is carried out",
    needs: "approvals",
    async ask(t, row) {
      const { server, state, approvals } = await askBoth(t, row);
      const { last } = await send.sse(t, server, { message: "never mind", state });
      assert.ok(last.type === "done" && last.finish_reason === "stop", JSON.stringify(last));
      assert.match(lastAsked(), /never mind/);
      assert.doesNotMatch(lastAsked(), /cancelled (A1|B2)/);
      const again = await send.json(t, server, { approvals, state });
      assert.equal(again.last.type === "error" && again.last.code, "approval_used");
    },
  },
  {
    title: "a decision that is late is approval_expired, and the conversation goes on",
    needs: "approvals",
    async ask(t, row) {
      const { server, state, approvals } = await askBoth(t, row, { PARLEY_APPROVAL_SECONDS: "0.001" });
      const { last } = await send.json(t, server, { approvals, state });
      assert.equal(last.type === "error" && last.code, "approval_expired");
      assert.equal((await send.json(t, server, { message: "never mind", state })).last.type, "done");
    },
  },
);
