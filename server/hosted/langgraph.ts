/**
 * LangGraph: what a graph streams in the modes "messages", "tools", "updates", "custom" and "tasks", alone or together, with or
 * without namespaces.
 */

import { isDeepStrictEqual } from "node:util";
import { AgentNotice } from "../errors.ts";
import { asString, isRecord, records, tryParse } from "../protocol/json.ts";
import type { ToolCall } from "../providers/provider.ts";
import { type Answer, failure } from "./answer.ts";
import { type AgentAnswer, NOBODY, statusOf } from "./inner-answer.ts";
import { isMessage, MessagesReader, type Speaker } from "./langchain-messages.ts";
import type { Shape, ShapeReader } from "./shape.ts";

const MODES = ["messages", "tools", "updates", "values", "custom", "debug", "checkpoints", "tasks"];

export const LANGGRAPH: Shape = {
  name: "LangGraph",
  fits: (item) => partOf(item) !== undefined,
  reader: (answer) => new GraphReader(answer),
};

interface Part {
  /** The path to a nested graph; empty at the root. */
  namespace: readonly unknown[];
  mode: string;
  data: unknown;
}

/** The parts of an item. If a graph streams only one mode, items are bare data, which tells the mode. */
function partOf(item: unknown): Part | undefined {
  if (!Array.isArray(item)) return partOfData(item, []);
  const hasNamespace = Array.isArray(item[0]) && item[0].every((name) => typeof name === "string");
  const [namespace, rest] = hasNamespace ? [item[0] as unknown[], item.slice(1)] : [[], item];
  const [first, second] = rest;
  if (rest.length === 2 && MODES.includes(first)) return { namespace, mode: first, data: second };
  if (rest.length === 2 && isMessage(first)) return { namespace, mode: "messages", data: rest };
  if (rest.length !== 1 || !hasNamespace) return undefined;
  if (Array.isArray(first) && isMessage(first[0])) return { namespace, mode: "messages", data: first };
  return partOfData(first, namespace);
}

/** Recognises data of the modes "tools" and "updates". LangChain's events of the same names have a `data` object. */
function partOfData(data: unknown, namespace: readonly unknown[]): Part | undefined {
  if (isRecord(data) && asString(data.event).startsWith("on_tool_") && !isRecord(data.data)) {
    return { namespace, mode: "tools", data };
  }
  return isUpdate(data) ? { namespace, mode: "updates", data } : undefined;
}

/** Whether this is what nodes have returned, by their names. */
function isUpdate(data: unknown): data is Record<string, unknown> {
  if (!isRecord(data) || "type" in data || "event" in data) return false;
  return "__interrupt__" in data || Object.values(data).some((update) => messagesOf(update).length > 0);
}

function messagesOf(update: unknown): Record<string, unknown>[] {
  const { messages } = isRecord(update) ? update : {};
  return (Array.isArray(messages) ? messages : [messages]).filter(isMessage);
}

/** LangGraph's own node that runs tools. Messages in it belong to a tool, not to the answer. */
const TOOL_NODE = "tools";

/** The speaker of a message with this metadata. */
export function speakerOf(metadata: unknown, path: readonly unknown[] = []): Speaker {
  const { langgraph_node: node, langgraph_checkpoint_ns: namespace } = isRecord(metadata) ? metadata : {};
  const graphs = [...path, ...asString(namespace).split("|").slice(0, -1)];
  if (node === TOOL_NODE || graphs.some((name) => asString(name).startsWith(`${TOOL_NODE}:`))) return "tool";
  return graphs.length > 0 ? "graph" : "agent";
}

/** The graph that answers, or one within a call. */
interface Scope {
  readonly answer: AgentAnswer;
  readonly messages: MessagesReader;
}

class GraphReader implements ShapeReader {
  readonly #root: Scope;
  readonly #interrupts = new Interrupts();
  /** Graphs within calls, by their paths of task names. */
  readonly #within = new Map<string, Scope>();
  /** Ids of calls by the id of their task, for graphs that run each call in a task of its own. */
  readonly #tasks = new Map<string, unknown>();

  constructor(answer: Answer) {
    this.#root = { answer, messages: new MessagesReader(answer) };
  }

  read(item: unknown): boolean {
    const { namespace, mode, data } = partOf(item) as Part;
    const scope = this.#scopeOf(namespace);
    if (mode === "updates" || mode === "values") this.#interrupts.read(data);
    if (mode === "messages" && Array.isArray(data) && isMessage(data[0])) {
      const [message, metadata] = data as [Record<string, unknown>, unknown];
      if (scope !== this.#root) this.#root.messages.hear(message);
      scope.messages.read(message, speakerOf(metadata, namespace));
    } else if (mode === "tools" && isRecord(data)) {
      readTool(data, scope);
    } else if (mode === "updates" && isRecord(data)) {
      for (const message of Object.values(data).flatMap(messagesOf)) {
        scope.messages.readWhole(message, speakerOf(undefined, namespace));
      }
    } else if (mode === "custom") {
      this.#readCustom(data, scope.answer);
    } else if (mode === "tasks" && isRecord(data) && isRecord(data.input)) {
      const { lg_tool_call: call } = data.input;
      if (isRecord(call)) this.#tasks.set(asString(data.id), call.id);
    }
    return true;
  }

  end(answer: Answer): void {
    this.#root.messages.sayUnsaid();
    this.#interrupts.ask(answer);
  }

  /**
   * Reads what a tool writes with `config.writer`: about the call that it names, or else about the only running one. A tool of
   * a nested graph may write as if it belonged to the graph around it.
   */
  #readCustom(data: unknown, answer: AgentAnswer): void {
    const { toolCallId, tool_call_id: named = toolCallId, id = named } = isRecord(data) ? data : {};
    const [only, ...others] = named === undefined ? answer.openCalls() : [];
    const all = [answer, ...[...this.#within.values()].map((scope) => scope.answer)];
    const by = all.find((one) => one.isOpen(asString(named ?? id)));
    if (by !== undefined) by.progress(named ?? id, statusOf(data));
    else if (others.length === 0) answer.progress(only?.id, statusOf(data));
  }

  /** The graph at a path. If it runs within one of several calls, and nothing tells which, it is not shown. */
  #scopeOf(namespace: readonly unknown[]): Scope {
    let scope = this.#root;
    for (const [index, name] of namespace.entries()) {
      const [node, task = ""] = asString(name).split(":");
      const open = scope.answer.openCalls();
      // Graphs that are nodes belong to the graph around them. Other elements of a path are numbers.
      if (node !== TOOL_NODE) continue;
      const path = namespace.slice(0, index + 1).join("|");
      const isAlone = !this.#tasks.has(task) && open.length === 1;
      const call = isAlone ? open[0] : open.find(({ id }) => id === this.#tasks.get(task));
      const known = this.#within.get(path);
      if (known === undefined && call === undefined && open.length === 0) continue;
      const answer = known?.answer ?? scope.answer.within(call?.id ?? NOBODY);
      scope = known ?? { answer, messages: new MessagesReader(answer) };
      if (call !== undefined) this.#within.set(path, scope);
    }
    return scope;
  }
}

function readTool({ event, toolCallId: id, name, input, output, error, data }: Record<string, unknown>, scope: Scope) {
  const { answer, messages } = scope;
  if (event === "on_tool_start") messages.begin(id, name, input);
  const open = id ?? answer.openCalls(name)[0]?.id;
  if (event === "on_tool_end") messages.end(open, output);
  if (event === "on_tool_error") answer.thrown(open, error);
  if (event === "on_tool_event") answer.progress(open, statusOf(data));
}

const BREAKPOINT =
  "The graph stopped at a breakpoint (interruptBefore or interruptAfter), about which nobody can be asked. Call interrupt in the node or the tool instead.";

const UNNAMED = "The agent asks for several things, but one of LangGraph's interrupts has no id.";

/** The interrupts at which a graph waits for the user. */
export class Interrupts {
  /** The value of each interrupt, by its id: nested graphs report the same ones again. */
  readonly #found = new Map<string, unknown>();
  readonly #more: object;
  /** Whether the graph has stopped without a question. */
  #isAtBreakpoint = false;

  /** `more` is added to what is kept for each interrupt. */
  constructor(more: object = {}) {
    this.#more = more;
  }

  /** Whether the graph has stopped, with a question or without one. */
  get stopped(): boolean {
    return this.#isAtBreakpoint || this.#found.size > 0;
  }

  /** @throws ApiError for an interrupt without an id beside another one: the graph could not assign their answers */
  read(data: unknown): void {
    const interrupts = isRecord(data) ? data.__interrupt__ : undefined;
    this.#isAtBreakpoint ||= Array.isArray(interrupts) && interrupts.length === 0;
    const all = records(interrupts);
    for (const { id, value } of all) {
      const key = asString(id);
      const isOther = this.#found.has(key) && !isDeepStrictEqual(this.#found.get(key), value);
      if (key === "" && (isOther || all.length > 1)) throw failure(UNNAMED);
      this.#found.set(key, value);
    }
  }

  /** Called when the answer has ended: only then it is known which tools have not. */
  ask(answer: Answer): void {
    const open = answer.openCalls();
    if (this.#isAtBreakpoint && this.#found.size === 0) {
      answer.notice(new AgentNotice(BREAKPOINT));
      for (const { id } of open) answer.result(id, "It was not carried out.", true);
      return;
    }
    const only = this.#found.size === 1 && open.length === 1 ? open[0] : undefined;
    for (const [interrupt, value] of this.#found) {
      const kept = { interrupt, ...this.#more };
      const human = isRecord(value) ? (value.actionRequests ?? value.action_requests) : undefined;
      if (isRecord(value) && Array.isArray(human)) askHuman(kept, value, human, answer);
      else askOne(kept, value, only ?? callOf(value, answer.openCalls()), answer);
    }
  }
}

/** The call that a value names, or the first with the same arguments, if all such calls are of one tool. */
function callOf(value: unknown, calls: readonly ToolCall[]): ToolCall | undefined {
  const named = isRecord(value) ? (value.toolCallId ?? value.tool_call_id) : undefined;
  if (named !== undefined) return calls.find(({ id }) => id === named);
  const { values } = wordsAndValues(value);
  const [first, ...others] = calls.filter((call) => isDeepStrictEqual(values, tryParse(call.arguments)));
  return others.every(({ name }) => name === first?.name) ? first : undefined;
}

type Kept = { interrupt: string };

/** Splits what an agent's author has written for the user into the question and the values that it is about. */
export function wordsAndValues(value: unknown): { text?: unknown; values: object | undefined } {
  if (!isRecord(value)) return { text: value, values: undefined };
  const { question, message, description, toolCallId: _camel, tool_call_id: _snake, ...more } = value;
  const text = question ?? message ?? description;
  return { ...(text === undefined ? {} : { text }), values: Object.keys(more).length > 0 ? more : undefined };
}

/**
 * Asks with the value that `interrupt` was called with. `call` is the call that it is about, if known. A plain string that is
 * about no call asks for text.
 */
function askOne(kept: Kept, value: unknown, call: ToolCall | undefined, answer: Answer): void {
  const { text, values } = wordsAndValues(value);
  const question = call === undefined && typeof value === "string";
  answer.askApproval({
    ...{ id: call?.id ?? kept.interrupt, tool: call?.name ?? "interrupt", isQuestion: call === undefined, question },
    ...{ arguments: values ?? call?.arguments, text, kept: question ? { ...kept, question } : kept },
  });
}

/** Asks what LangChain's `humanInTheLoopMiddleware` asks: about several calls at once, none of which has begun. */
function askHuman(kept: Kept, value: Record<string, unknown>, requests: unknown[], answer: Answer): void {
  const isPython = "action_requests" in value;
  const reviews = records(isPython ? value.review_configs : value.reviewConfigs);
  for (const [action, { name, args, description }] of records(requests).entries()) {
    const calls = answer.openCalls();
    const call = calls.find((one) => one.name === name && isDeepStrictEqual(tryParse(one.arguments), args));
    const review = reviews.find(({ actionName, action_name }) => (actionName ?? action_name) === name);
    const allowed = review?.allowedDecisions ?? review?.allowed_decisions;
    answer.askApproval({
      ...{ id: call?.id ?? `${kept.interrupt}.${action}`, tool: name, arguments: args, text: description },
      ...{ editable: Array.isArray(allowed) && allowed.includes("edit"), isQuestion: call === undefined },
      kept: { ...kept, action, ...(isPython ? { isPython } : {}) },
    });
  }
}
