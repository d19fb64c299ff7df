/** Random events and ends of hosted agents: the next message is answered, and includes what was done. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import type { RunInput } from "../../server/agent/run-function.ts";
import { readState } from "../../server/agent/state.ts";
import { AG_UI } from "../../server/hosted/ag-ui.ts";
import { AgUiThread } from "../../server/hosted/ag-ui-thread.ts";
import { ResponseEvents } from "../../server/hosted/responses.ts";
import type { ConversationState, HistoryMessage, HistoryToolCall, ToolApproval } from "../../server/protocol/chat.ts";
import type { StreamEvent } from "../../server/protocol/events.ts";
import { isRecord } from "../../server/protocol/json.ts";
import { CANCELLED, callsOf, textOf } from "../../server/providers/history.ts";
import { type ChatMessage, type Outcome, send, terminal } from "../support/chat-transports.ts";
import { type Gate, gate } from "../support/deadline.ts";
import { INTERRUPTS, type Items, RECORDED, STREAMS } from "../support/hosted-streams.ts";
import { newRun, openLine, type Wish } from "../support/run-lines.ts";
import { startServer, type TestServer } from "../support/start-server.ts";

/** `CONVERSATIONS=2000` runs more of them, `SEED` others. */
const { CONVERSATIONS = "80", SEED = "1" } = process.env;

const TRANSPORTS = ["json", "sse", "socket", "resumed"] as const;

/** The agent's next action. */
type Act =
  | { does: "says" | "thinks" | "keeps" | "uses" | "suggests" | "begins" | "finishes" | "repeats" }
  | { does: "calls" | "asks" | "results" | "fails"; id: string }
  | { does: "streams"; items: readonly unknown[] };

/** One message of a client, and the agent's actions. */
interface Step {
  transport: (typeof TRANSPORTS)[number];
  acts: Act[];
  end: "returns" | "throws" | "hangs";
  /** The client's decisions about waiting calls. */
  decides: "yes" | "no" | "mixed" | "edited" | "by message";
  refused: "nothing" | "the message" | "the answer";
  /** Whether the client continues from an earlier state. */
  goesBack: boolean;
}

const framework = fc.constantFrom(
  ...RECORDED,
  ...STREAMS.map(([, items]) => items),
  ...INTERRUPTS.flatMap((row) => [row[1], row[4]]),
);
/** Few ids, so that they occur again. */
const id = fc.constantFrom("c1", "c2", "c3");
const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ does: fc.constantFrom("says", "finishes") }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constantFrom("thinks", "keeps", "uses", "suggests") }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constantFrom("begins", "repeats") }) },
  { weight: 6, arbitrary: fc.record({ does: fc.constantFrom("calls", "asks", "results", "fails"), id }) },
  {
    weight: 1,
    arbitrary: framework.chain((items) => fc.subarray([...items])).map((items) => ({ does: "streams", items })),
  },
) as fc.Arbitrary<Act>;
const often = <Value>(usual: Value, ...others: Value[]) =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(...others) });
const stepOf = (hasHooks: boolean): fc.Arbitrary<Step> =>
  fc.record({
    transport: fc.constantFrom(...TRANSPORTS),
    acts: fc.array(act, { maxLength: 7 }),
    end: often("returns", "throws", "hangs"),
    decides: often("yes", "no", "mixed", "edited", "by message"),
    refused: hasHooks ? often("nothing", "nothing", "the message", "the answer") : fc.constant("nothing"),
    goesBack: often(false, false, true),
  });

/** Approves all waiting calls and says something. */
const USUAL: Step = {
  ...{ transport: "sse", acts: [{ does: "finishes" }, { does: "says" }], end: "returns" },
  ...{ decides: "yes", refused: "nothing", goesBack: false },
};

const streaming = (items: Items): Step => ({ ...USUAL, acts: [{ does: "streams", items }] });

/** Events that do not belong to a call. */
const EVENTS: Readonly<Record<string, (n: number) => unknown>> = {
  says: (n) => `W${n} `,
  thinks: () => ({ type: "thinking", data: "Hm." }),
  keeps: (n) => ({ type: "state", data: { n } }),
  uses: () => ({ type: "usage", data: { input_tokens: 1, output_tokens: 1 } }),
  suggests: () => ({ type: "suggestions", data: ["More?"] }),
};

/** The data of the agent and its hooks about the current step. */
class Stage {
  step: Step | undefined;
  readonly inputs: RunInput[] = [];
  hanging: Gate = gate();
  /** The `kept` values of calls that ran after approval. */
  readonly done = new Set<string>();
  /** Texts that a state must contain now. */
  readonly due = new Set<string>();
  /** Ids of known calls without a result. */
  #open = new Set<string>();
  /** Numbers words, outputs and questions, so that each is unique. */
  #count = 0;

  next(step: Step): void {
    this.step = step;
    this.inputs.length = 0;
    this.due.clear();
    this.hanging = gate();
  }

  readonly run = async function* (this: Stage, input: RunInput): AsyncGenerator<unknown> {
    this.inputs.push(input);
    this.#open = new Set(input.message === "" ? openIn(input) : []);
    const { acts = [], end } = this.step ?? {};
    for (const act of acts) yield* this.#items(act, input);
    if (end === "throws") throw new Error("down");
    if (end !== "hangs") return;
    this.hanging.open();
    await new Promise((resolve) => input.signal.addEventListener("abort", resolve));
  }.bind(this);

  readonly hooks = {
    onMessage: () => (this.step?.refused === "the message" ? { refuse: "Not this." } : undefined),
    onAnswer: () => (this.step?.refused === "the answer" ? { refuse: "Not that." } : undefined),
  };

  *#items(act: Act, input: RunInput): Generator<unknown> {
    const { ctx, exchange } = input;
    const n = ++this.#count;
    if (act.does in EVENTS) yield EVENTS[act.does]?.(n);
    else if (act.does === "calls") yield { type: "tool_call", data: { id: act.id, tool: "look", arguments: { n } } };
    else if (act.does === "begins") yield* this.#begin(n);
    else if (act.does === "asks") {
      this.#open.delete(act.id);
      const question = n % 4 === 0;
      const kept = `${question ? "Q" : "K"}${n}`;
      const data = { id: act.id, tool: "pay", arguments: { n }, editable: true, question, kept };
      yield { type: "tool_approval", data };
    } else if (act.does === "streams" || act.does === "repeats") {
      this.#open.clear();
      const used = this.step?.acts.flatMap((one) => ("id" in one ? [one.id] : [])) ?? [];
      yield* act.does === "streams" ? asRead(act.items, input) : eventsOf(exchange, used);
    } else {
      const approved = ctx.approvals.filter((one) => one.approved).map((one) => one.id);
      for (const one of "id" in act ? [act.id] : approved) {
        const output = `R${n}-${one} `;
        this.#end(one, output, ctx);
        yield { type: "tool_result", data: { id: one, output, ...(act.does === "fails" ? { status: "failed" } : {}) } };
      }
    }
  }

  /** A call in a framework's format, told to clients possibly later. It may have begun if the answer is stopped. */
  #begin(n: number): object[] {
    if (this.step?.end === "hangs") this.due.add(`B${n} `);
    return [{ type: "tool-call", toolCallId: `B${n} `, toolName: "look", input: {} }];
  }

  #end(id: string, output: string, { approvals }: RunInput["ctx"]): void {
    if (!this.#open.delete(id)) return;
    this.due.add(output);
    const kept = approvals.find((one) => one.id === id)?.kept;
    if (typeof kept === "string") this.done.add(kept);
  }
}

/** Events of the Responses API as read by `responses`, and those of AG-UI as read by `agUi`. */
function* asRead(items: Items, input: RunInput): Generator<unknown> {
  const responses = new ResponseEvents();
  const thread = new AgUiThread(input);
  // The thread can be read only after its requests.
  thread.requests().next();
  for (const item of items) {
    const isItsOwn = isRecord(item) && (item.type === undefined ? "error" in item : /^response\./.test(`${item.type}`));
    if (isItsOwn) yield* responses.read(item);
    else if (isRecord(item) && AG_UI.fits(item)) {
      yield { type: "changing_state", data: thread.kept };
      yield* thread.read(item);
    } else yield item;
  }
}

/** The agent's own approved calls, and unfinished ones next to them. A question ends with its answer. */
function openIn({ exchange, ctx }: RunInput): string[] {
  const approved = ctx.approvals.filter((one) => one.approved && /^K/.test(one.kept)).map((one) => one.id);
  const last = new Map(
    exchange.flatMap((one) => (one.role === "tool" ? [[one.tool_call_id, one.content] as const] : [])),
  );
  return [...approved, ...[...last].flatMap(([call, content]) => (content === textOf(CANCELLED) ? [call] : []))];
}

/** Replays the exchange, without ids that are used twice, whose results could belong to either call. */
function eventsOf(exchange: readonly HistoryMessage[], used: readonly string[]): object[] {
  const ids = [...callsOf(exchange).map((call) => call.id), ...used];
  const isOnce = (call: string) => ids.indexOf(call) === ids.lastIndexOf(call);
  return exchange.flatMap((message): object[] => {
    if (message.role === "tool") {
      const { tool_call_id: call, content: output } = message;
      return isOnce(call) ? [{ type: "tool_result", data: { id: call, output } }] : [];
    }
    const calls = callsOf([message]).filter((call) => isOnce(call.id));
    return calls.map(({ id: call, function: { name: tool, arguments: args } }) => {
      return { type: "tool_call", data: { id: call, tool, arguments: args } };
    });
  });
}

/** A client's data after one of its messages. */
interface Known {
  state: ConversationState;
  approvals: readonly ToolApproval[];
  /** Whether the agent got decisions, or a message in their place, which is possible only once. */
  isDecided: boolean;
}

const SECRETS = { secrets: ["a-secret-of-a-test"], ownSecrets: ["a-secret-of-a-test"] };
const LIMITS = { limits: { maxHistoryItems: 2000, maxHistoryBytes: 10_000_000 } };

/** Reads a state of the server like the server does. */
function opened(state: ConversationState): ConversationState {
  const bound = { kind: "conversation_history", agent: "Acme Support", provider: "run", user: undefined } as const;
  return readState(structuredClone(state), { ...bound, ...SECRETS, ...LIMITS });
}

const messagesOf = ({ conversation_history: past = [], open }: ConversationState) => [
  ...past,
  ...(open?.messages ?? []),
];

/** Asserts that each call occurs once, directly followed by its result; only waiting calls, at the end, have none. */
function assertInOrder(state: ConversationState): void {
  const messages = messagesOf(state);
  const waiting = state.open?.waiting?.calls.map((call) => call.id) ?? [];
  let due: string[] = [];
  for (const message of messages) {
    if (message.role === "tool") {
      assert.ok(due.includes(message.tool_call_id), `${message.tool_call_id} has no call before it`);
      due = due.filter((one) => one !== message.tool_call_id);
      continue;
    }
    assert.deepEqual(due, [], "these come without a result before another message");
    due = callsOf([message]).map((call) => call.id);
    assert.equal(new Set(due).size, due.length, "one message has a call twice");
  }
  assert.deepEqual(due.toSorted(), waiting.toSorted(), "the calls that wait, and no others, have no result");
}

/** Asserts that new calls after decisions share no message with earlier ones. Own calls have a number. */
function assertOwnSteps(before: ConversationState, { conversation_history: past = [], open }: ConversationState): void {
  const numbersOf = (calls: readonly HistoryToolCall[]) =>
    calls.map((call) => call.function.arguments).filter((args) => args.includes('"n":'));
  const known = new Set(numbersOf(callsOf(before.open?.messages ?? [])));
  const waiting = new Set(open?.waiting?.calls.map((call) => call.id));
  for (const message of open?.messages ?? past) {
    const calls = numbersOf(callsOf([message]).filter((call) => !waiting.has(call.id)));
    const old = calls.filter((number) => known.has(number));
    assert.ok(old.length === 0 || old.length === calls.length, "a call after decisions is in a step of before");
  }
}

type Rows = Map<string, { now: "open" | "declined" | "done"; called: string }[]>;

/** The calls of a state by id: open ones may still end, unless a message closes them. */
function rowsOf({ conversation_history: past = [], open }: ConversationState, isClosed: boolean): Rows {
  const rows: Rows = new Map();
  for (const [at, message] of [...past, ...(open?.messages ?? [])].entries()) {
    const isPast = at < past.length;
    for (const { id: call, function: one } of callsOf([message])) {
      const called = isPast ? "" : `${one.name}${one.arguments}`;
      const row = { now: isPast || isClosed ? "done" : "open", called } as const;
      rows.set(call, [...(rows.get(call) ?? []), row]);
    }
    if (message.role !== "tool" || message.content === textOf(CANCELLED)) continue;
    const row = rows.get(message.tool_call_id)?.at(-1);
    if (row !== undefined) row.now = "done";
  }
  return rows;
}

/** Applies an event: a call that has a result and begins or is asked about again is a new call. */
function see(rows: Rows, event: StreamEvent): void {
  if (event.type !== "tool_call" && event.type !== "tool_result" && event.type !== "tool_approval") return;
  const known = rows.get(event.data.id) ?? [];
  rows.set(event.data.id, known);
  const last = known.at(-1);
  if (event.type === "tool_result") {
    const isOpen = event.data.output === "It was not finished.";
    if (last !== undefined && !isOpen) last.now = event.data.declined ? "declined" : "done";
    return;
  }
  const called = `${event.data.tool}${event.data.arguments}`;
  const isOther =
    last?.called !== called && (last?.now === "done" || last?.called.startsWith(event.data.tool) === false);
  const isAnother = event.type === "tool_call" ? last?.now !== "open" && isOther : last?.now !== "open";
  if (last === undefined || isAnother) known.push({ now: "open", called });
}

class Client {
  readonly #t: TestContext;
  readonly #server: TestServer;
  readonly #stage: Stage;
  #known: Known[] = [{ state: {}, approvals: [], isDecided: false }];

  constructor(t: TestContext, server: TestServer, stage: Stage) {
    this.#t = t;
    this.#server = server;
    this.#stage = stage;
  }

  async take(step: Step): Promise<void> {
    const from = (step.goesBack ? this.#known[Math.floor(this.#known.length / 2)] : this.#known.at(-1)) as Known;
    const message = messageOf(step, from);
    this.#stage.next(step);
    const outcome = await this.#send(message, step);
    const { last } = outcome;
    assert.ok(
      last.type === "done" || last.code === "provider_error" || last.code === "approval_used",
      JSON.stringify(last),
    );
    const isAsked =
      !(last.type === "error" && last.code === "approval_used") && !(message.message && step.refused === "the message");
    assert.equal(this.#stage.inputs.length, isAsked ? 1 : 0, "run is called once");
    assert.equal(
      last.type === "error" && last.code === "approval_used",
      message.approvals !== undefined && from.isDecided,
    );
    if (isAsked) this.#assertRemembered(from);
    if (isAsked) from.isDecided = true;
    const before = opened(from.state);
    const state = last.state ?? from.state;
    const after = opened(state);
    assertInOrder(after);
    if (isAsked) assertKept(outcome, step, before, after, message);
    for (const what of this.#stage.due)
      assert.ok(JSON.stringify(messagesOf(after)).includes(what), `${what}is forgotten`);
    if (last.state !== undefined && isAsked) {
      this.#known.push({ state, approvals: last.type === "done" ? (last.approvals ?? []) : [], isDecided: false });
    }
  }

  /** A call that ran after approval must not be declined later, unless the client goes back: then it may have run. */
  #assertRemembered({ isDecided }: Known): void {
    for (const { kept, approved, reason = "" } of this.#stage.inputs[0]?.ctx.approvals ?? []) {
      if (isDecided)
        assert.match(reason, /not carried out, unless they had approved it elsewhere\. They wrote: And\?$/);
      else assert.ok(approved || !this.#stage.done.has(kept), `${kept} was approved, and ran`);
    }
  }

  async #send(message: ChatMessage, { transport, end }: Step): Promise<Outcome> {
    const run = newRun();
    const named = { ...message, run };
    const answer = transport === "resumed" ? this.#resumed(named, run) : send[transport](this.#t, this.#server, named);
    if (end === "hangs") {
      await Promise.race([this.#stage.hanging.opened, answer]);
      await fetch(`${this.#server.url}/api/chat/runs/${run}/cancel`, { method: "POST" });
    }
    return answer;
  }

  /** Cuts the connection after the first event, if more follow, and reads the rest over another one. */
  async #resumed(message: ChatMessage, run: string): Promise<Outcome> {
    const line = await openLine.sse(this.#t, this.#server, message as Wish);
    const first = await line.next();
    await line.cut();
    const isOver = first.type === "done" || first.type === "error";
    const rest = isOver ? [] : await (await openLine.socket(this.#t, this.#server, { resume: run, after: 1 })).rest();
    const events: StreamEvent[] = [first, ...rest];
    return { status: 200, events, last: terminal(events), headers: new Headers() };
  }
}

function messageOf({ decides }: Step, { state, approvals, isDecided }: Known): ChatMessage {
  if (approvals.length === 0 || decides === "by message" || (isDecided && decides !== "mixed"))
    return { message: "And?", state };
  const decisions = approvals.map((asked, at) => ({
    id: asked.id,
    approved: decides === "mixed" ? at % 2 === 0 : decides !== "no",
    ...(decides === "edited" && asked.editable ? { arguments: '{"n":0}' } : {}),
  }));
  return { approvals: decisions, state };
}

/** Asserts that the state contains all received words, calls and outputs, each once. */
function assertKept(
  { events, last, toolCalls }: Outcome,
  step: Step,
  before: ConversationState,
  after: ConversationState,
  sent: ChatMessage,
): void {
  const messages = messagesOf(after);
  const texts = JSON.stringify(messages.map((message) => (message.role === "assistant" ? message.content : "")));
  const shown = JSON.stringify([events.filter(({ type }) => type === "token"), last.type === "done" ? last.data : ""]);
  for (const word of new Set(shown.match(/W\d+ /g))) assert.equal(texts.split(word).length, 2, `${word}stands once`);
  const results = JSON.stringify(messages.filter(({ role }) => role === "tool"));
  const outputs = JSON.stringify([events.filter(({ type }) => type === "tool_result"), toolCalls]);
  for (const output of new Set(outputs.match(/R[\w-]+ /g)))
    assert.equal(results.split(output).length, 2, `${output}stands once`);
  if (last.type === "error" || !["stop", "approval_required"].includes(last.finish_reason)) return;
  const known = JSON.stringify(messagesOf(before)) + outputs;
  for (const output of results.match(/R[\w-]+ /g) ?? [])
    assert.ok(known.includes(output), `a client knows of ${output}`);
  if (step.transport === "json") return;
  if (sent.approvals !== undefined) assertOwnSteps(before, after);
  const rows = rowsOf(before, sent.approvals === undefined);
  for (const event of events) see(rows, event);
  const count = (all: Rows) => Object.fromEntries([...all].map(([call, known]) => [call, known.length]));
  assert.deepEqual(count(rowsOf(after, true)), count(rows), "each call stands once");
}

for (const hasHooks of [false, true]) {
  test(`whatever run yields, its history is one that the next message may bring${hasHooks ? ", with hooks" : ""}`, async (t) => {
    const stage = new Stage();
    const agent = { model: undefined, run: stage.run, ...(hasHooks ? stage.hooks : {}) } as never;
    const env = {
      PARLEY_STATE_SECRET: SECRETS.secrets[0],
      PARLEY_RATE_PER_ADDRESS: "0",
      PARLEY_MAX_RUNS_PER_ADDRESS: "64",
    };
    const server = await startServer(t, { agent, env });
    const property = fc.asyncProperty(fc.array(stepOf(hasHooks), { minLength: 2, maxLength: 6 }), async (steps) => {
      const client = new Client(t, server, stage);
      for (const one of steps) await client.take(one);
    });
    const examples: [Step[]][] = hasHooks ? [] : RECORDED.map((items) => [[streaming(items), USUAL, USUAL]]);
    await fc.assert(property, {
      examples,
      numRuns: examples.length + Number(CONVERSATIONS),
      includeErrorInReport: true,
      seed: Number(SEED),
    });
    assert.doesNotMatch(server.log.join(""), /does not know/);
  });
}
