/** LangGraph: what a graph streams in the modes "messages", "tools" and "updates", alone or together, with or without namespaces. */

import { isDeepStrictEqual } from "node:util";
import { AgentNotice } from "../errors.ts";
import { asString, isRecord, records, tryParse } from "../protocol/json.ts";
import type { ToolCall } from "../providers/provider.ts";
import { type Answer, failure } from "./answer.ts";
import { isMessage, MessagesReader } from "./langchain-messages.ts";
import type { Shape, ShapeReader } from "./shape.ts";

const MODES = ["messages", "tools", "updates", "values", "custom", "debug", "checkpoints", "tasks"];

export const LANGGRAPH: Shape = {
  name: "LangGraph",
  fits: (item) => partOf(item) !== undefined,
  reader: (answer) => new GraphReader(answer),
};

interface Part {
  /** The path to a graph within the graph; empty at the root. */
  namespace: readonly unknown[];
  mode: string;
  data: unknown;
}

/** What an item says of itself; with one mode alone, its data says which. */
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

/** A part of the modes "tools" and "updates". LangChain has events of the same names, but with `data`. */
function partOfData(data: unknown, namespace: readonly unknown[]): Part | undefined {
  if (isRecord(data) && asString(data.event).startsWith("on_tool_") && !isRecord(data.data)) {
    return { namespace, mode: "tools", data };
  }
  return isUpdate(data) ? { namespace, mode: "updates", data } : undefined;
}

/** What nodes have returned, by their names. */
function isUpdate(data: unknown): data is Record<string, unknown> {
  if (!isRecord(data) || "type" in data || "event" in data) return false;
  return "__interrupt__" in data || Object.values(data).some((update) => messagesOf(update).length > 0);
}

function messagesOf(update: unknown): Record<string, unknown>[] {
  const { messages } = isRecord(update) ? update : {};
  return (Array.isArray(messages) ? messages : [messages]).filter(isMessage);
}

/** The node of LangGraph's own that runs tools. What a model says in it is the tool's business. */
const TOOL_NODE = "tools";

/** Whether a message with this metadata was said within a graph, or a tool, of the graph that answers. */
export function isNested(metadata: unknown): boolean {
  const { langgraph_node: node, langgraph_checkpoint_ns: namespace } = isRecord(metadata) ? metadata : {};
  return node === TOOL_NODE || asString(namespace).includes("|");
}

class GraphReader implements ShapeReader {
  readonly #messages: MessagesReader;
  readonly #interrupts = new Interrupts();

  constructor(answer: Answer) {
    this.#messages = new MessagesReader(answer);
  }

  read(item: unknown, answer: Answer): boolean {
    const { namespace, mode, data } = partOf(item) as Part;
    if (mode === "updates" || mode === "values") this.#interrupts.read(data);
    if (mode === "messages" && Array.isArray(data) && isMessage(data[0])) {
      this.#messages.read(data[0], namespace.length > 0 || isNested(data[1]));
    } else if (mode === "tools" && isRecord(data)) {
      this.#readTool(data, answer);
    } else if (mode === "updates" && isRecord(data)) {
      for (const update of Object.values(data)) {
        for (const message of messagesOf(update)) this.#messages.readWhole(message, namespace.length > 0);
      }
    }
    return true;
  }

  end(answer: Answer): void {
    this.#messages.sayUnsaid();
    this.#interrupts.ask(answer);
  }

  #readTool(said: Record<string, unknown>, answer: Answer): void {
    const { event, toolCallId: id, name, input, output, error } = said;
    if (event === "on_tool_start") this.#messages.begin(id, name, input);
    const open = id ?? answer.openCalls(name)[0]?.id;
    if (event === "on_tool_end") this.#messages.end(open, output);
    if (event === "on_tool_error") answer.thrown(open, error);
  }
}

const BREAKPOINT =
  "The graph stopped at a breakpoint (interruptBefore or interruptAfter), about which nobody can be asked. Call interrupt in the node or the tool instead.";

const UNNAMED = "The agent asks for several things, but one of LangGraph's interrupts has no id.";

/** Where a graph waits for a person. */
export class Interrupts {
  /** What each says, by its id: graphs within the graph report the same ones. */
  readonly #found = new Map<string, unknown>();
  readonly #more: object;
  /** Whether the graph stands still without a question. */
  #isAtBreakpoint = false;

  /** `more` is kept with each. */
  constructor(more: object = {}) {
    this.#more = more;
  }

  /** Whether the graph stands still, with a question or without one. */
  get stopped(): boolean {
    return this.#isAtBreakpoint || this.#found.size > 0;
  }

  /** @throws ApiError for an interrupt without an id beside another one: the graph could not tell their answers apart */
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

  /** The answer is over: which tools have not ended is known. */
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

/** A value names its call, in TypeScript or in Python, or shows what calls of one tool alone were made with. */
function callOf(value: unknown, calls: readonly ToolCall[]): ToolCall | undefined {
  const named = isRecord(value) ? (value.toolCallId ?? value.tool_call_id) : undefined;
  if (named !== undefined) return calls.find(({ id }) => id === named);
  const { values } = wordsAndValues(value);
  const [first, ...others] = calls.filter((call) => isDeepStrictEqual(values, tryParse(call.arguments)));
  return others.every(({ name }) => name === first?.name) ? first : undefined;
}

type Kept = { interrupt: string };

/** What a person is asked, and what it is about, of what an agent's author has written for them. */
export function wordsAndValues(value: unknown): { text?: unknown; values: object | undefined } {
  if (!isRecord(value)) return { text: value, values: undefined };
  const { question, message, description, toolCallId: _camel, tool_call_id: _snake, ...more } = value;
  const text = question ?? message ?? description;
  return { ...(text === undefined ? {} : { text }), values: Object.keys(more).length > 0 ? more : undefined };
}

/**
 * Asks with the value that `interrupt` was called with. Several at once may be about any of the calls that have not ended. A text
 * alone, about no call, wants words.
 */
function askOne(kept: Kept, value: unknown, call: ToolCall | undefined, answer: Answer): void {
  const { text, values } = wordsAndValues(value);
  const question = call === undefined && typeof value === "string";
  answer.askApproval({
    ...{ id: call?.id ?? kept.interrupt, tool: call?.name ?? "interrupt", isQuestion: call === undefined, question },
    ...{ arguments: values ?? call?.arguments, text, kept: question ? { ...kept, question } : kept },
  });
}

/** What LangChain's `humanInTheLoopMiddleware` asks: about several calls at once, none of which has begun. */
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
