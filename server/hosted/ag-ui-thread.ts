/** The thread of an agent that speaks AG-UI: what the agent is sent, and what is kept until the next message. */

import { createHash, randomUUID } from "node:crypto";
import { mayBeDecided } from "../agent/approvals.ts";
import {
  base64Of,
  isInPlaceOfDecisions,
  messagesUntilAsked,
  type RunAttachment,
  type RunInput,
  type TextMessage,
  textOfFile,
  textParts,
  wordsOfMessage,
} from "../agent/run-function.ts";
import { AgentNotice } from "../errors.ts";
import type { AssistantMessage, DecidedCall } from "../protocol/chat.ts";
import { asString, isRecord, records, tryParse } from "../protocol/json.ts";
import { partsOf, textOf } from "../providers/history.ts";
import { CONFIRMATION } from "./ag-ui.ts";
import { MAX_WORDS } from "./answer.ts";
import { CostlyPatch, PatchedDocument } from "./json-patch.ts";
import { givenWords, toResume } from "./to-framework.ts";

type Event = Record<string, unknown>;

/** What is kept: the agent's own state, and the ids of the conversation's texts, in order. */
interface Kept {
  ag_ui: unknown;
  ids: string[];
  /** Whether a LangGraph server keeps the thread. */
  isGraph: boolean;
  /** The agent asked again before it got the last message, which is sent after the next decisions. */
  isUnsent?: boolean;
}

export class AgUiThread {
  readonly #input: RunInput;
  readonly #document: PatchedDocument;
  /** Ids under which the agent knows the texts, in order; "" for a text without one. */
  readonly #ids: string[];
  #isGraph: boolean;
  /** Id of the agent's last message. */
  #said: string | undefined;
  /** The messages of the last `MESSAGES_SNAPSHOT`. */
  #snapshot: object[] | undefined;
  /** Results of calls, by the id of the call. */
  readonly #results = new Map<unknown, unknown>();
  /** Whether the agent asks the user. */
  #waits = false;
  /** The text of an earlier message that the agent has not been sent. */
  readonly #unsent: string = "";
  #isUnsent = false;
  /** Whether the agent may no longer wait for the decisions, and whether it has reported that. */
  #mayBeLate = false;
  #isLate = false;

  constructor(input: RunInput) {
    const { state, exchange } = input;
    const isKept = isRecord(state) && "ag_ui" in state && Array.isArray(state.ids);
    const { ag_ui, ids, isGraph, isUnsent } = (isKept ? state : { ag_ui: state, ids: [], isGraph: false }) as Kept;
    const [first] = exchange;
    if (isUnsent && first?.role === "user") this.#unsent = textOf(partsOf(first));
    this.#input = input;
    this.#document = new PatchedDocument(ag_ui ?? {});
    this.#ids = ids;
    this.#isGraph = isGraph;
  }

  /** What this returns changes until the answer has ended. */
  readonly kept = (): Kept => ({
    ag_ui: this.#document.document,
    ids: [...this.#ids, ...(this.#said === undefined ? [] : [this.#said])],
    isGraph: this.#isGraph,
    ...(this.#isUnsent ? { isUnsent: true } : {}),
  });

  /** The requests, in order. A message in place of decisions is sent in a second request if they cannot carry it. */
  *requests(): Generator<object> {
    const { attachments, ctx } = this.#input;
    const { approvals } = ctx;
    const known = this.#known();
    if (approvals.length === 0) return yield this.#request(known);
    const open = exchangeOf(this.#input);
    this.#mayBeLate = approvals.some(mayBeDecided);
    const isGraph = this.#isGraph || approvals.some(({ kept }) => kept?.isGraph);
    // A LangGraph thread that no longer waits would repeat its last answer; one that still waits asks again.
    if (!this.#mayBeLate || !isGraph) {
      const beside = [...confirmationsOf(approvals), ...approvals.filter(({ kept }) => kept?.call).map(toolMessageOf)];
      yield { ...this.#request([...known, ...this.#numbered([...open, ...beside])]), ...resumption(approvals) };
      const isReason = attachments.length === 0 && approvals.every(({ kept }) => kept?.takesReason !== false);
      const isHeard = !isInPlaceOfDecisions(this.#input) || (isReason && !this.#isLate);
      if (isHeard && this.#unsent === "") return;
      this.#isUnsent = this.#waits;
      if (this.#waits) return;
    }
    const results = approvals.map(({ id, reason }) => {
      return { role: "tool", toolCallId: id, content: reason ?? this.#results.get(id) ?? "" };
    });
    const before = this.#snapshot ?? [...known, ...(isGraph ? [] : this.#numbered([...open, ...results]))];
    yield this.#request([...before, { id: randomUUID(), role: "user", content: this.#content() }]);
  }

  #request(messages: object[]): object {
    const { conversation: threadId, run } = this.#input.ctx;
    const state = this.#document.document;
    return { threadId, runId: run.id, state, messages, tools: [], context: [], forwardedProps: {} };
  }

  /** Reads what an event says about the thread. Yields the event, without messages that the agent had before. */
  *read(event: Event): Generator<object> {
    const { type, messageId, messages, snapshot, delta, outcome, name, toolCallName } = event;
    if (name === "on_interrupt" || toolCallName === CONFIRMATION) this.#waits = true;
    if (isRecord(outcome) && outcome.type === "interrupt") this.#waits = true;
    if (asString(type).startsWith("TEXT_MESSAGE_") && typeof messageId === "string") this.#said = messageId;
    if (type === "TOOL_CALL_RESULT") this.#results.set(event.toolCallId, event.content);
    if (type === "STATE_SNAPSHOT") this.#setState(snapshot);
    if (type === "STATE_DELTA") yield* this.#patch(delta);
    if (type === "RUN_ERROR" && this.#mayBeLate && !this.#isLate) {
      this.#isLate = true;
      const why = asString(event.message).slice(0, MAX_WORDS);
      const notice = new AgentNotice(`The agent did not take decisions that may be late: ${why}`);
      return yield { type: "notice", data: notice };
    }
    if (type !== "MESSAGES_SNAPSHOT") return yield event;
    this.#snapshot = records(messages);
    const known = new Set<unknown>(this.#ids);
    const unknown = records(messages).filter(({ id }) => !known.has(id));
    const last = unknown.at(-1);
    if (last?.role === "assistant") this.#said = asString(last.id);
    yield { ...event, messages: unknown };
  }

  /** Keeps a state without the thread's messages, which some agents repeat there at any length and do not need back. */
  #setState(state: unknown): void {
    const { messages } = isRecord(state) ? state : {};
    const isMessage = (one: unknown) => isRecord(one) && "content" in one && ("role" in one || "type" in one);
    const isThread = Array.isArray(messages) && messages.every(isMessage);
    this.#isGraph ||= records(messages).some((one) => "additional_kwargs" in one);
    this.#document.document = isThread ? { ...(state as object), messages: [] } : state;
  }

  /** Ignores a change that does not fit, as AG-UI's clients do. A change that costs too much ends the answer. */
  *#patch(delta: unknown): Generator<object> {
    try {
      this.#document.patch(delta);
    } catch (cause) {
      if (cause instanceof CostlyPatch) throw new Error(`a STATE_DELTA costs too much: ${cause.message}`);
      const notice = new AgentNotice("The agent sent a STATE_DELTA that does not fit its state.", { cause });
      yield { type: "notice", data: notice };
    }
  }

  /** The messages for the agent, under the ids by which it knows them; one with changed content gets another id. */
  #known(): object[] {
    const { messages, attachments, exchange, ctx } = this.#input;
    const isNew = ctx.approvals.length === 0;
    const named = (texts: TextMessage[]) =>
      texts.map((text, index) => this.#named(text, index, isNew && index === texts.length - 1));
    const sent = named(isNew ? messages : messagesUntilAsked(this.#input, this.#words(wordsOfMessage(this.#input))));
    const all = this.#unsent === "" ? sent : named(messagesUntilAsked(this.#input));
    // A message in place of decisions follows the text that came before them.
    const hasSaid =
      isInPlaceOfDecisions(this.#input) && exchange.some((one) => one.role === "assistant" && one.content);
    const between = hasSaid ? [this.#ids[all.length] ?? "", ""] : [];
    this.#ids.splice(0, this.#ids.length, ...all.map(({ id }) => id), ...between);
    // A LangGraph thread has the original of a changed message, which is not sent again.
    const isChanged = ({ role, id }: { role: string; id: string }) =>
      role === "user" && id.startsWith(ctx.conversation);
    const known = this.#isGraph ? sent.filter((one) => !isChanged(one)) : sent;
    const last = known.at(-1);
    const hasFiles = isNew && attachments.length > 0 && last !== undefined;
    return hasFiles ? [...known.slice(0, -1), { ...last, content: this.#content() }] : known;
  }

  #numbered(messages: object[]): object[] {
    return messages.map((one, index) => ({ id: `${this.#input.ctx.run.id}-${index}`, ...one }));
  }

  /** These words, after the text that the agent has not been sent yet. */
  #words(words: string): string {
    return [this.#unsent, words].filter((one) => one !== "").join("\n\n");
  }

  #content(): string | object[] {
    const { message, attachments } = this.#input;
    const text = this.#words(message);
    return attachments.length === 0 ? text : [...textParts(text), ...attachments.map(toPart)];
  }

  #named(text: TextMessage, index: number, isNew: boolean): TextMessage & { id: string } {
    const { ctx, attachments } = this.#input;
    const known = this.#ids[index];
    if (text.role === "assistant") return { id: known || `${ctx.conversation}-${index}`, ...text };
    // The id stays the same as long as the content does.
    const digest = createHash("sha256").update(text.content).digest("hex").slice(0, 8);
    if (isNew) return { id: `${randomUUID()}-${attachments.length > 0 ? "files" : digest}`, ...text };
    return { id: known?.endsWith(digest) ? known : `${ctx.conversation}-${index}-${digest}`, ...text };
  }
}

/** The messages after the one that is still being answered, with the calls that have waited. */
function exchangeOf({ exchange }: RunInput): object[] {
  return exchange.slice(1).map((one) => {
    if (one.role === "tool") return { role: "tool", toolCallId: one.tool_call_id, content: textOf(partsOf(one)) };
    const { role, content, tool_calls: toolCalls } = one as AssistantMessage;
    return { role, ...(content ? { content } : {}), ...(toolCalls === undefined ? {} : { toolCalls }) };
  });
}

/** The decisions, in the fields where the agent expects them: LangGraph's servers have one field for all decisions. */
function resumption(approvals: readonly DecidedCall[]): object {
  const graph = toResume(approvals.filter(({ kept }) => kept?.isGraph));
  // Microsoft's framework keeps asking about a declined call if another one was approved with it.
  const isMixed = approvals.some(({ kept }) => kept?.alike) && approvals.some((one) => !one.approved);
  const others = approvals.filter(({ kept }) => kept?.interrupt !== undefined && !kept.isGraph);
  const entries = others.map((one) => toEntry(isMixed ? { ...one, approved: false } : one));
  const isGraph = Object.keys(graph).length > 0;
  return {
    ...(entries.length > 0 ? { resume: entries } : {}),
    // Older versions give interrupts no id.
    ...(isGraph ? { forwardedProps: { command: { resume: "" in graph ? graph[""] : graph } } } : {}),
  };
}

function toEntry(decision: DecidedCall): object {
  const { kept, approved, reason, arguments: args } = decision;
  const why = kept.takesReason === false ? {} : { reason };
  const edited = args === undefined ? {} : { editedArgs: tryParse(args) };
  const payload = givenWords(decision) ?? { approved, ...why, ...edited };
  return { interruptId: kept.interrupt, status: "resolved", payload };
}

/** The calls by which an agent has asked, which clients do not see. It looks for them in one message. */
function confirmationsOf(approvals: readonly DecidedCall[]): object[] {
  const calls = approvals.flatMap(({ kept }) => {
    return kept?.by ? [{ id: kept.interrupt, type: "function", function: { name: kept.by, arguments: "{}" } }] : [];
  });
  return calls.length === 0 ? [] : [{ role: "assistant", toolCalls: calls }];
}

/** The result of a call that the agent left to its client, as Agno reads it. */
function toolMessageOf({ id, approved, reason }: DecidedCall): object {
  return { role: "tool", toolCallId: id, content: JSON.stringify({ accepted: approved, note: reason }) };
}

function toPart(file: RunAttachment): object {
  const { type, mimeType, data } = file;
  const text = textOfFile(file);
  if (text !== undefined) return { type: "text", text };
  const source = { type: "data", value: base64Of(data), mimeType };
  return { type: type === "image" ? "image" : "document", source };
}
