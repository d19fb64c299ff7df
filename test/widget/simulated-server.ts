/** A chat server for a `SimulatedBrowser`, whose agent answers by the seed; it records all requests. */

import type { ApprovalDecision, ConversationState, FinishReason, HistoryMessage } from "../../server/protocol/chat.ts";
import type { StreamEvent } from "../../server/protocol/events.ts";
import { INFO } from "./scripted-server.ts";
import type { Connection, SimulatedBrowser, SimulatedServer } from "./simulated-browser.ts";

/** A request to the agent. */
export interface Asked {
  readonly run: string;
  /** The user, as the server knows them. */
  readonly user: string;
  readonly message: string;
  readonly state: ConversationState;
  readonly approvals?: readonly ApprovalDecision[];
  readonly continue?: true;
}

interface Run {
  readonly asked: Asked;
  readonly events: object[];
  /** Events that are still to be sent. */
  rest: StreamEvent[];
  said: string;
  connection: Connection | undefined;
  hasEnded: boolean;
}

/** Kinds of answers; most are normal. */
const MANNERS = [
  ...Array.from({ length: 9 }, () => "stop" as const),
  ...["length", "length", "approval", "approval", "failed", "failed, goes on", "lost", "refused"],
] as const;

/** The user's texts in either kind of state. */
export function questionsIn({ conversation_history: history = [], open }: ConversationState): string[] {
  return [...history, ...(open?.messages ?? [])].flatMap((it) => (it.role === "user" ? [String(it.content)] : []));
}

export class AskedServer implements SimulatedServer {
  isDown = false;
  readonly asked: Asked[] = [];
  readonly #browser: SimulatedBrowser;
  readonly #onAsked: (asked: Asked) => void;
  readonly #runs = new Map<string, Run>();
  /** Decisions are accepted once: the run that brought them, by the name of what waited. */
  readonly #decided = new Map<string, Run>();
  #count = 0;

  constructor(browser: SimulatedBrowser, onAsked: (asked: Asked) => void) {
    this.#browser = browser;
    this.#onAsked = onAsked;
  }

  /** Whether a run has arrived, even if it was refused. */
  knows(run: string): boolean {
    return this.asked.some((it) => it.run === run);
  }

  info(user = ""): object {
    return { ...INFO, feedback: true, ...(user && { user }) };
  }

  receive(body: Record<string, unknown>, connection: Connection): void {
    const own = [...this.#runs.values()].filter(
      (it) => it.connection === connection || it.connection?.write === connection.write,
    );
    if (body.type === "stop") for (const run of own) this.#stop(run);
    else if (body.type === "clear") {
      for (const { asked } of own) this.#runs.delete(asked.run);
      connection.write({ type: "cleared", data: "" });
    } else if (body.type === "resume") {
      const run = this.#runs.get(String(body.run));
      if (run) this.#attach(run, connection, Number(body.after));
      else connection.write({ type: "error", data: "", code: "run_not_found", retryable: false });
    } else this.#begin(body as never, connection);
  }

  cancel(id: string): boolean {
    const run = this.#runs.get(id);
    if (run) this.#stop(run);
    return run !== undefined;
  }

  #attach(run: Run, connection: Connection, after: number): void {
    run.connection = connection;
    for (const event of run.events.slice(after)) connection.write(event);
  }

  #begin({ run: id, message, state, approvals, continue: goesOn }: Asked, connection: Connection): void {
    const known = this.#runs.get(id);
    const asked = {
      run: id,
      user: connection.token() ?? "",
      message,
      state,
      ...(approvals && { approvals }),
      ...(goesOn && { continue: goesOn }),
    };
    if (known) {
      const isSame = JSON.stringify(known.asked) === JSON.stringify(asked);
      if (!isSame) throw new Error(`one run asks twice: ${JSON.stringify([known.asked, asked])}`);
      this.#attach(known, connection, 0);
      return;
    }
    this.asked.push(asked);
    this.#onAsked(asked);
    const manner = this.#browser.pick(MANNERS);
    if (manner === "refused") {
      connection.write({ type: "error", data: "", code: "rate_limited", retryable: true });
      return;
    }
    const run: Run = { asked, events: [], rest: [], said: "", connection, hasEnded: false };
    if (approvals) this.#decide(run);
    this.#runs.set(id, run);
    this.#count += 1;
    const words = Array.from(
      { length: 1 + Math.floor(this.#browser.random() * 3) },
      (_, at) => `a${this.#count}.${at} `,
    );
    run.rest = [
      ...this.#resultsOf(asked),
      ...words.map((data) => ({ type: "token" as const, data })),
      ...this.#endOf(run, manner, words.join("")),
    ];
    this.#goOn(run);
  }

  #decide(run: Run): void {
    const { state, approvals = [] } = run.asked;
    const { calls, nonce } = state.open?.waiting ?? { calls: [], nonce: "" };
    const [waiting, decided] = [calls, approvals].map((list) =>
      list
        .map(({ id }) => id)
        .toSorted()
        .join(),
    );
    if (waiting !== decided) throw new Error(`decisions about ${decided} with a state that waits for ${waiting}`);
    const before = this.#decided.get(nonce);
    if (before && !before.events.some((it) => JSON.stringify(it).includes('"retryable":true')))
      throw new Error(`decided twice: ${decided}`);
    this.#decided.set(nonce, run);
  }

  #resultsOf({ approvals = [] }: Asked): StreamEvent[] {
    return approvals.flatMap(({ id, approved }): StreamEvent[] => {
      const result = { id, tool: "pay", output: "", duration_ms: 1 };
      if (!approved) return [{ type: "tool_result", data: { ...result, status: "failed", declined: true } }];
      return [
        { type: "tool_call", data: { id, tool: "pay", arguments: "{}", status: "running" } },
        { type: "tool_result", data: { ...result, status: "completed" } },
      ];
    });
  }

  /** The state after the text of a run. */
  #stateOf({ asked }: Run, said: string): ConversationState {
    const { conversation_history: history = [], open, ...rest } = asked.state;
    const before = [...history, ...(open?.messages ?? [])];
    const last = before.at(-1);
    if (asked.continue && last?.role === "assistant")
      return {
        ...rest,
        conversation_history: before.with(-1, { role: "assistant", content: `${last.content}${said}` }),
      };
    const question: HistoryMessage[] = asked.message ? [{ role: "user", content: asked.message }] : [];
    return {
      ...rest,
      conversation_history: [...before, ...question, { role: "assistant", content: said }],
      signature: asked.run,
    };
  }

  #endOf(run: Run, manner: (typeof MANNERS)[number], said: string): StreamEvent[] {
    const { state, message } = run.asked;
    const { conversation_history: history = [], open } = state;
    const question: HistoryMessage[] = message ? [{ role: "user", content: message }] : [];
    const begun = [...(open?.messages ?? []), ...question];
    if (manner === "failed")
      return [{ type: "error", data: "busy", code: "provider_error" as never, retryable: true, state }];
    if (manner === "lost") return [{ type: "error", data: "", code: "internal", retryable: false }];
    if (manner === "failed, goes on" && begun.length > 0) {
      const next = { conversation_history: history, open: { messages: begun, sealed: "" } };
      return [
        { type: "error", data: "busy", code: "provider_error" as never, retryable: true, state: next, continue: true },
      ];
    }
    if (manner === "approval") {
      const calls = Array.from({ length: 1 + Math.floor(this.#browser.random() * 2) }, (_, at) => ({
        id: `c${this.#count}.${at}`,
        name: "pay",
        arguments: "{}",
      }));
      const asks = calls.map(({ id }) => ({
        type: "tool_approval" as const,
        data: { id, tool: "pay", arguments: "{}", text: "Pay?", expires_at: "2099-01-01T00:00:00Z" },
      }));
      const waiting = { calls, nonce: `n${this.#count}`, ledger: "", expires_at: "2099-01-01T00:00:00Z" };
      const messages = [...begun, { role: "assistant" as const, content: said }];
      const next = { conversation_history: history, open: { messages, waiting, sealed: "" } };
      return [...asks, this.#done(said, next, "approval_required")];
    }
    return [this.#done(said, this.#stateOf(run, said), manner === "length" ? "length" : "stop")];
  }

  #done(data: string, state: ConversationState, finish_reason: FinishReason): StreamEvent {
    return { type: "done", data, state, finish_reason };
  }

  #stop(run: Run): void {
    if (run.hasEnded) return;
    run.rest = [this.#done(run.said, this.#stateOf(run, run.said), "stopped")];
    this.#say(run);
  }

  /** Sends the next event: at once, soon or late. */
  #goOn(run: Run): void {
    if (run.hasEnded) return;
    const next = () => {
      this.#say(run);
      this.#goOn(run);
    };
    const delay = this.#browser.pick([0, 0, 0, 50, 500, 3_000]);
    const lane = `answer ${run.asked.run}`;
    if (delay === 0) this.#browser.later(lane, next, null);
    else this.#browser.in(undefined, () => setTimeout(() => this.#browser.later(lane, next, null), delay));
  }

  #say(run: Run): void {
    const event = run.rest.shift();
    if (!event || run.hasEnded) return;
    const numbered = { ...event, id: run.events.length + 1 };
    run.events.push(numbered);
    if (event.type === "token") run.said += event.data;
    run.hasEnded = event.type === "done" || event.type === "error";
    run.connection?.write(numbered);
    // An answer that asks for approval ends.
    if (event.type === "tool_approval") this.#say(run);
  }
}
