/**
 * Random conversations with a model: tools, approvals, hidden tools, hooks, stops, failures, `continue`, old states. Requests
 * are valid, our states are accepted, no call runs twice, and nothing hidden or refused is visible.
 */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { type TestContext, test } from "node:test";
import type { RunContext } from "../../server/agent/run-context.ts";
import type { AnyToolDefinition } from "../../server/agent/tool-definition.ts";
import { ALL_MEDIA_TYPES } from "../../server/protocol/attachments.ts";
import type { ConversationState, HistoryMessage, StateKind } from "../../server/protocol/chat.ts";
import { ApiError } from "../../server/protocol/errors.ts";
import type { DoneEvent } from "../../server/protocol/events.ts";
import { createProvider } from "../../server/providers/create-provider.ts";
import { assistantMessage, callsOf, toHistoryCall } from "../../server/providers/history.ts";
import type { ModelEvent, ModelRequest, ToolCall, TurnFinish } from "../../server/providers/provider.ts";
import { endOfTurn } from "../../server/providers/stream-pieces.ts";
import { type ChatMessage, type Outcome, send, TRANSPORTS } from "../support/chat-transports.ts";
import { randomFrom } from "../support/random.ts";
import { newRun } from "../support/run-lines.ts";
import { startServer, type TestServer } from "../support/start-server.ts";
import { define } from "../support/test-tools.ts";

/** `CONVERSATIONS=10000` runs more of them, `SEED` others. Failures name their seed. */
const { CONVERSATIONS = "240", SEED = "1" } = process.env;

/** Number of concurrent conversations. */
const AT_ONCE = 8;

/** A client's data after one of its messages. */
interface Known {
  state: ConversationState;
  asked: readonly string[];
  /** Probability that the client continues the run: 1 if the server has said that it can. */
  goesOn: number;
  /** Whether decisions, or a message in their place, were sent, which is possible only once. */
  isDecided: boolean;
  /** Words and results that the client has received; a history that it keeps contains each of them once. */
  read: readonly string[];
}

/** Failures that these conversations may cause. */
const FAILURES = ["provider_truncated", "provider_overloaded", "provider_error", "provider_timeout", "approval_used"];

/** One conversation: the actions of its model, tools, hooks and client. */
class Talk {
  readonly seed: number;
  readonly faults: string[] = [];
  readonly tools: AnyToolDefinition[];
  readonly #kind: StateKind;
  readonly #isGuarded: boolean;
  readonly #random: () => number;
  readonly #trail: string[] = [];
  /** How often each call was executed. */
  readonly #done = new Map<string, number>();
  /** The calls of each response that the API stores. */
  readonly #responses = new Map<string, readonly string[]>();
  readonly #known: Known[] = [{ state: {}, asked: [], goesOn: 0.05, isDecided: false, read: [] }];
  #words = 0;
  #calls = 0;
  #server: TestServer | undefined;
  /** The current run, and the number of words or tools after which its client stops it. */
  #run = { name: "", left: Number.POSITIVE_INFINITY };
  /** The message at the end of its first request. */
  #asked: string | undefined;

  constructor(seed: number, kind: StateKind, isGuarded: boolean) {
    this.seed = seed;
    this.#kind = kind;
    this.#isGuarded = isGuarded;
    this.#random = randomFrom(seed);
    const rule = this.chance(0.5) ? true : () => this.chance(0.6);
    const hidden = [
      define("quiet", this.#hiddenTool, { expose: "none" }),
      define("quietly_asked", this.#hiddenTool, { expose: "title", title: "Something", needsApproval: true }),
    ];
    this.tools = [
      define("plain", this.#tool),
      define("asked", this.#tool, { needsApproval: rule, editable: true }),
      ...(this.chance(0.3) ? hidden : []),
    ];
  }

  chance(share: number): boolean {
    return this.#random() < share;
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.#random() * items.length)] as Item;
  }

  async converse(t: TestContext, server: TestServer): Promise<void> {
    this.#server = server;
    for (let n = 0; n < 6 && this.faults.length === 0; n++) await this.#message(t, server);
    assert.deepEqual(this.faults, [], [`SEED=${this.seed}`, ...this.#trail].join("\n"));
  }

  onMessage(): unknown {
    if (this.chance(0.05)) throw new Error("hook");
    return this.chance(0.05) ? { refuse: "Not this." } : this.chance(0.2) ? { message: "Another message." } : undefined;
  }

  onAnswer(): unknown {
    if (this.chance(0.15)) throw new Error("hook");
    return this.chance(0.3) ? { refuse: "Not that." } : undefined;
  }

  /** One turn of the model. */
  async *answer(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent[]> {
    this.#checkRequest(request);
    const said: string[] = [];
    for (let left = Math.floor(this.#random() * 4); left > 0; left--) {
      said.push(this.chance(0.1) ? " \n" : `W${++this.#words} `);
      yield [{ type: "text", delta: said.at(-1) ?? "" }];
      await this.#step(signal, 0.03);
      if (this.chance(0.05)) throw new ApiError("provider_truncated", "Cut.");
    }
    if (this.chance(0.08)) throw new ApiError("provider_overloaded", "Busy.");
    const finish: TurnFinish = this.chance(0.12) ? "length" : this.chance(0.03) ? "content_filter" : "stop";
    const calls = this.chance(0.55)
      ? Array.from({ length: 1 + Math.floor(this.#random() * 4) }, () => this.#call())
      : [];
    const id = `resp_${randomUUID()}`;
    const cutCalls = finish === "length" && this.chance(0.4) ? [`cut of ${id}`] : [];
    this.#responses.set(id, [...calls.map((call) => call.id), ...cutCalls]);
    this.#trail.push(
      `  said ${said.join("")}called ${calls.map((call) => `${call.id}:${call.name}`)} ${finish} ${cutCalls}`,
    );
    const message = assistantMessage(said.join(""), calls.map(toHistoryCall));
    request.keep(message, { id, cutCalls });
    yield endOfTurn(message, finish, undefined);
  }

  #call(): ToolCall {
    const id = `c${++this.#calls}`;
    const name = this.pick([...this.tools.map((tool) => tool.name), "plain", "unknown"]);
    return { id, name, arguments: JSON.stringify({ secret: name.startsWith("quiet") ? `HIDDEN-${id}` : id }) };
  }

  readonly #tool: AnyToolDefinition["execute"] = async (_args, { callId, signal }) => {
    const times = (this.#done.get(callId) ?? 0) + 1;
    this.#done.set(callId, times);
    if (times > 1) this.faults.push(`${callId} was carried out twice`);
    await this.#step(signal, 0);
    if (this.chance(0.15)) throw new Error("tool");
    return `result of ${callId}.`;
  };

  readonly #hiddenTool: AnyToolDefinition["execute"] = async (args, context) => {
    await this.#tool(args, context);
    return "HIDDEN-RESULT";
  };

  /** Here the client may stop the run or leave, or the model may pause until it is stopped. */
  async #step(signal: AbortSignal, silence: number): Promise<void> {
    const isSilent = this.chance(silence);
    if (isSilent || --this.#run.left === 0) {
      this.#trail.push(isSilent ? "  silent" : "  stopped");
      await fetch(`${this.#server?.url}/api/chat/runs/${this.#run.name}/cancel`, { method: "POST" });
    }
    if (isSilent)
      await new Promise((resolve) => (signal.aborted ? resolve(0) : signal.addEventListener("abort", resolve)));
    if (isSilent) throw signal.reason;
  }

  /** Records requests that an API would reject. */
  #checkRequest({ messages, previousId }: ModelRequest): void {
    const roles = JSON.stringify(messages.map(({ role }) => role));
    const faults =
      this.#kind === "conversation_history" ? faultsOf(messages) : this.#faultsOfStored(messages, previousId);
    for (const fault of faults) this.faults.push(`a request ${fault}: ${roles}`);
    const last = messages.at(-1);
    const isThere = last?.role === "user" && last.content === this.#asked;
    if (this.#asked !== undefined && !isThere) this.faults.push(`a request without its message: ${roles}`);
    this.#asked = undefined;
  }

  *#faultsOfStored(messages: readonly HistoryMessage[], previousId: string | undefined): Generator<string> {
    const due = previousId === undefined ? [] : this.#responses.get(previousId);
    const given = messages.flatMap((message) => (message.role === "tool" ? [message.tool_call_id] : []));
    if (messages.length === 0) yield "without anything new";
    if (due === undefined) yield "after an unknown response";
    else if (due.toSorted().join() !== given.toSorted().join()) yield `with results of ${given}, not of ${due}`;
  }

  async #message(t: TestContext, server: TestServer): Promise<void> {
    const known = this.chance(0.15) ? this.pick(this.#known) : (this.#known.at(-1) as Known);
    const message = this.#messageAfter(known);
    const run = newRun();
    this.#run = { name: run, left: this.chance(0.2) ? 1 + Math.floor(this.#random() * 4) : Number.POSITIVE_INFINITY };
    // A hook may have changed the message.
    this.#asked = this.#isGuarded ? undefined : message.message;
    const [words, calls] = [this.#words, this.#calls];
    const { state: _state, ...shown } = message;
    this.#trail.push(`${JSON.stringify(shown)}${known === this.#known.at(-1) ? "" : " after an old state"}`);
    const metadata = { talk: String(this.seed) };
    const outcome = await send[this.pick(TRANSPORTS)](t, server, { ...message, run, metadata });
    const { last } = outcome;
    this.#trail.push(`  ${last.type} ${last.type === "done" ? last.finish_reason : `${last.code} ${last.data}`}`);
    this.#checkOutcome(outcome, words, message, known);
    const isFailure = last.type === "error" && last.code.startsWith("provider_");
    if (isFailure && (this.#calls > calls || message.approvals)) {
      if (last.code === "provider_error") this.faults.push("silence after calls is an error");
      if (!last.continue) this.faults.push("nothing can go on after calls");
    }
    known.isDecided ||= known.asked.length > 0;
    if (last.state === undefined) return;
    const reason = last.type === "done" ? last.finish_reason : "";
    const asked = last.type === "done" ? (last.approvals ?? []).map(({ id }) => id) : [];
    const isCut = ["length", "stopped", "max_turns"].includes(reason);
    const goesOn = last.type === "error" && last.continue ? 1 : isCut ? 0.6 : 0.05;
    const read = [...known.read, ...this.#readOf(outcome)];
    const kept = JSON.stringify(last.state);
    const isReadable = this.#kind === "conversation_history" && !kept.includes('"sealed"');
    const lost = isReadable ? read.filter((what) => kept.split(what).length !== 2) : [];
    for (const what of lost) this.faults.push(`${what} is forgotten, or kept twice`);
    this.#known.push({ state: last.state, asked, goesOn, isDecided: false, read });
  }

  /** Words of a complete answer, and tool results in any case, as a client receives them. */
  #readOf({ last, events, toolCalls }: Outcome): string[] {
    const results = [events.filter(({ type }) => type === "tool_result"), toolCalls];
    return JSON.stringify([results, last.type === "done" ? last.data : ""]).match(/W\d+ |result of c\d+\./g) ?? [];
  }

  #messageAfter({ state, asked, goesOn, isDecided }: Known): ChatMessage {
    if (asked.length > 0 && this.chance(isDecided ? 0.1 : 0.75)) {
      const approvals = asked.map((id) => ({ id, approved: this.chance(0.6) }));
      return { state, approvals, ...(this.chance(0.25) ? { message: "And this." } : {}) };
    }
    if (asked.length === 0 && this.chance(Math.min(goesOn, 0.75))) return { state, continue: true };
    return { state, message: "A message." };
  }

  #checkOutcome({ events, last, toolCalls }: Outcome, words: number, message: ChatMessage, known: Known): void {
    const seen = JSON.stringify([events, toolCalls]);
    const hidden = /.{60}(?:HIDDEN|Go on exactly).{30}/.exec(seen);
    if (hidden !== null) this.faults.push(`something hidden is seen: ${hidden[0]}`);
    if (last.type === "error") {
      const isMeant = message.continue === true && known.goesOn < 1 && last.code === "invalid_request";
      const isUsed = last.code === "approval_used" && !known.isDecided;
      const isKnown = [...FAILURES, ...(this.#isGuarded ? ["internal"] : [])].includes(last.code);
      if (isUsed || !(isMeant || isKnown)) this.faults.push(`${last.code}: ${last.data}`);
    } else {
      if (last.finish_reason === "stop" && last.state.open !== undefined)
        this.faults.push("an answer leaves what is open");
      if (last.finish_reason !== "stopped" && last.data.trim() === "") this.faults.push("an answer is empty");
      this.#checkEnd(last, events);
    }
    const isWithheld = last.type === "error" || ["stopped", "refused"].includes(last.finish_reason);
    if (!this.#isGuarded || !isWithheld) return;
    for (let word = words + 1; word <= this.#words; word++) {
      if (seen.includes(`W${word} `)) this.faults.push(`W${word} was not let pass, and is seen`);
    }
  }

  /** The last text of an answer must also be in tokens, and be the last message of the history. */
  #checkEnd({ data, state, finish_reason }: DoneEvent, events: Outcome["events"]): void {
    if (finish_reason === "stopped" || finish_reason === "approval_required") return;
    const tokens = events.flatMap((event) => (event.type === "token" ? [event.data] : [])).join("");
    if (events.length > 1 && !tokens.endsWith(data)) this.faults.push(`${data} is in no tokens`);
    const last = state.conversation_history?.at(-1);
    if (last?.role === "assistant" && data !== "Not this." && !last.content?.endsWith(data))
      this.faults.push(`${data} is not kept`);
  }
}

/** Mistakes in a history that is sent as a whole. */
function* faultsOf(messages: readonly HistoryMessage[]): Generator<string> {
  let due: string[] = [];
  for (const message of messages) {
    if (message.role === "tool") {
      if (!due.includes(message.tool_call_id)) yield "with a result without its call";
      due = due.filter((id) => id !== message.tool_call_id);
      continue;
    }
    if (due.length > 0) yield "with a call without its result";
    due = callsOf([message]).map(({ id }) => id);
    if (message.role === "assistant" && due.length === 0 && !message.content?.trim()) yield "with an empty message";
  }
  if (due.length > 0) yield "that ends with a call";
  if (messages.at(-1)?.role === "assistant") yield "that ends with an answer";
}

const talks = new Map<string, Talk>();
const talkOf = ({ metadata }: RunContext): Talk => talks.get(metadata.talk ?? "") as Talk;

const env = {
  PARLEY_MAX_TOOL_CALLS: "3",
  PARLEY_RATE_PER_ADDRESS: "0",
  PARLEY_MAX_RUNS_PER_ADDRESS: "64",
};
const SERVERS = (["conversation_history", "previous_response_id"] as const).flatMap((kind) => [
  { kind, name: kind, isGuarded: false, settings: {} },
  { kind, name: `${kind}, signed`, isGuarded: false, settings: { PARLEY_STATE_SECRET: "a-secret-of-a-test" } },
  { kind, name: `${kind}, with hooks`, isGuarded: true, settings: {} },
]);

for (const [at, { kind, name, isGuarded, settings }] of SERVERS.entries()) {
  test(`nothing is done twice, refused or seen that must not be, whatever happens (${name})`, async (t) => {
    const facts = { id: "random", label: "A random model", mediaTypes: ALL_MEDIA_TYPES };
    const provider = createProvider(facts, kind, (request, signal) => {
      return (talks.get(request.setup.instructions) as Talk).answer(request, signal);
    });
    const hooks = {
      onMessage: (_message: unknown, ctx: RunContext) => talkOf(ctx).onMessage(),
      onAnswer: (_answer: unknown, ctx: RunContext) => talkOf(ctx).onAnswer(),
    };
    const agent = {
      instructions: (ctx: RunContext) => ctx.metadata.talk ?? "",
      tools: (ctx: RunContext) => talkOf(ctx).tools,
      maxTurns: 3,
      ...(isGuarded ? hooks : {}),
    } as never;
    const server = await startServer(t, { agent, provider, env: { ...env, ...settings } });
    const count = Math.ceil(Number(CONVERSATIONS) / SERVERS.length);
    let seed = Number(SEED) + (process.env.SEED === undefined ? at * count : 0);
    const last = seed + count;
    const converse = async () => {
      while (seed < last) {
        const talk = new Talk(seed++, kind, isGuarded);
        talks.set(String(talk.seed), talk);
        await talk.converse(t, server);
        talks.delete(String(talk.seed));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, converse));
  });
}
