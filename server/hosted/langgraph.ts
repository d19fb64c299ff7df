/** LangGraph: what a graph streams in the modes "messages", "tools" and "updates", alone or together, with or without namespaces. */

import { isRecord } from "../protocol/json.ts";
import type { Answer } from "./answer.ts";
import { isMessage, MessagesReader } from "./langchain-messages.ts";
import type { Shape, ShapeReader } from "./shape.ts";

const MODES = ["messages", "tools", "updates", "values", "custom", "debug", "checkpoints", "tasks"];

export const LANGGRAPH: Shape = {
  name: "LangGraph",
  fits: (item) => partOf(item) !== undefined,
  reader: (answer) => new GraphReader(answer),
};

interface Part {
  /** Of a graph within the graph; empty at the root. */
  namespace: readonly unknown[];
  mode: string;
  data: unknown;
}

/** What an item says of itself; with one mode alone, its data says which. */
function partOf(item: unknown): Part | undefined {
  if (!Array.isArray(item)) return isUpdate(item) ? { namespace: [], mode: "updates", data: item } : undefined;
  const hasNamespace = Array.isArray(item[0]) && item[0].every((name) => typeof name === "string");
  const [namespace, rest] = hasNamespace ? [item[0] as unknown[], item.slice(1)] : [[], item];
  const [first, second] = rest;
  if (rest.length === 2 && MODES.includes(first)) return { namespace, mode: first, data: second };
  if (rest.length === 2 && isMessage(first)) return { namespace, mode: "messages", data: rest };
  if (rest.length !== 1 || !hasNamespace) return undefined;
  if (Array.isArray(first) && isMessage(first[0])) return { namespace, mode: "messages", data: first };
  if (isRecord(first) && String(first.event).startsWith("on_tool_")) return { namespace, mode: "tools", data: first };
  return isUpdate(first) ? { namespace, mode: "updates", data: first } : undefined;
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
  return node === TOOL_NODE || String(namespace).includes("|");
}

class GraphReader implements ShapeReader {
  readonly #messages: MessagesReader;

  constructor(answer: Answer) {
    this.#messages = new MessagesReader(answer);
  }

  read(item: unknown, answer: Answer): boolean {
    const { namespace, mode, data } = partOf(item) as Part;
    if (mode === "messages" && Array.isArray(data) && isMessage(data[0])) {
      this.#messages.read(data[0], namespace.length > 0 || isNested(data[1]));
    } else if (mode === "tools" && isRecord(data)) {
      this.#readTool(data, answer);
    } else if (mode === "updates" && isRecord(data)) {
      refuseInterrupt(data, answer);
      for (const update of Object.values(data)) {
        for (const message of messagesOf(update)) this.#messages.readWhole(message);
      }
    }
    return true;
  }

  end(): void {
    this.#messages.sayUnsaid();
  }

  #readTool(told: Record<string, unknown>, answer: Answer): void {
    const { event, toolCallId: id, name, input, output, error } = told;
    if (event === "on_tool_start") this.#messages.begin(id, name, input);
    const open = id ?? answer.openCall(name);
    if (event === "on_tool_end") this.#messages.end(open, output);
    if (event === "on_tool_error") answer.thrown(open, error);
  }
}

/** A graph that waits for a person. @throws ApiError */
export function refuseInterrupt(data: unknown, answer: Answer): void {
  if (isRecord(data) && data.__interrupt__ !== undefined) answer.askApproval("an interrupt of LangGraph");
}
