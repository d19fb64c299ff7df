/** LangChain: the events of `streamEvents`, version 2. */

import { isDeepStrictEqual } from "node:util";
import { asString, isRecord, records, tryParse } from "../protocol/json.ts";
import type { ToolCall } from "../providers/provider.ts";
import { type Answer, argumentsText } from "./answer.ts";
import { type AgentAnswer, NOBODY } from "./inner-answer.ts";
import { isMessage, MessagesReader, spokenPart } from "./langchain-messages.ts";
import { Interrupts, speakerOf } from "./langgraph.ts";
import type { Shape, ShapeReader } from "./shape.ts";

export const LANGCHAIN_EVENTS: Shape = {
  name: "LangChain",
  fits: (item) => isRecord(item) && /^on_[a-z_]+$/.test(asString(item.event)) && isRecord(item.data),
  reader: (answer) => new EventsReader(answer),
};

/** A call whose tool has begun. */
interface Running {
  readonly id: string;
  /** Where in the graph it runs. */
  readonly task: string;
  /** The agent that made the call. */
  readonly answer: AgentAnswer;
  readonly messages: MessagesReader;
}

class EventsReader implements ShapeReader {
  readonly #messages: MessagesReader;
  readonly #interrupts = new Interrupts();
  /** Ids of the model runs that have streamed. */
  readonly #streamed = new Set<unknown>();
  /** Calls that models have requested and whose tools have not begun. */
  readonly #due: Record<string, unknown>[] = [];
  /** Calls by the run id of their tool, because the events of a tool do not name its call. */
  readonly #calls = new Map<unknown, Running>();

  constructor(answer: Answer) {
    this.#messages = new MessagesReader(answer);
  }

  read(item: unknown, answer: Answer): boolean {
    const { event, data, name, run_id: id, metadata } = item as Record<string, unknown>;
    const { chunk, input, output, error } = data as Record<string, unknown>;
    const messages = this.#messages;
    if (event === "on_chat_model_end" && isRecord(output)) this.#due.push(...records(output.tool_calls));
    if (event === "on_chat_model_stream" && isMessage(chunk)) {
      this.#streamed.add(id);
      // Without its calls: their tools report them when they run.
      messages.read(spokenPart(chunk), speakerOf(metadata));
    } else if (event === "on_chat_model_end" && isMessage(output) && !this.#streamed.has(id)) {
      messages.read(spokenPart(output), speakerOf(metadata));
    } else if (event === "on_llm_stream" && isRecord(chunk) && speakerOf(metadata) === "agent") {
      messages.say(asString(id), asString(chunk.text));
    } else if (event === "on_tool_start") {
      const task = taskOf(metadata);
      const by = this.#agentIn(task, answer);
      const call = by.call(this.#begin(name, input, answer) ?? id, name, input);
      this.#calls.set(id, { id: call, task, answer: by, messages: by === answer ? messages : new MessagesReader(by) });
    } else if (event === "on_tool_end") {
      const call = this.#calls.get(id);
      call?.messages.end(call.id, output);
    } else if (event === "on_tool_error") {
      const call = this.#calls.get(id);
      if (!isInterrupt(error)) call?.answer.thrown(call.id, error);
    } else if (event === "on_chain_stream") {
      this.#interrupts.read(chunk);
    }
    return true;
  }

  end(answer: Answer): void {
    this.#messages.sayUnsaid();
    // The user may be asked about calls before their tools begin.
    if (this.#interrupts.stopped) for (const { id, name, args } of this.#due) answer.call(id, name, args);
    this.#interrupts.ask(answer);
  }

  /** The agent that makes a call in this task. Within one of several calls, if nothing tells which, it is not shown. */
  #agentIn(task: string, answer: Answer): AgentAnswer {
    const around = task.slice(0, Math.max(0, task.lastIndexOf("|")));
    const isAround = (call: Running) => call.task === around && call.answer.isOpen(call.id);
    const [call, ...others] = around === "" ? [] : [...this.#calls.values()].filter(isAround);
    return call === undefined ? answer : call.answer.within(others.length === 0 ? call.id : NOBODY);
  }

  /** The id of the call that a tool begins: one with this name and these arguments, either requested or approved. */
  #begin(name: unknown, input: unknown, answer: Answer): string | undefined {
    const given = tryParse(argumentsText(input));
    const due = this.#due.findIndex((one) => one.name === name && isDeepStrictEqual(one.args, given));
    if (due >= 0) return asString(this.#due.splice(due, 1)[0]?.id) || undefined;
    const begun = new Set([...this.#calls.values()].map((call) => call.id));
    const isIt = ({ id, name: called, arguments: args }: ToolCall) =>
      !begun.has(id) && called === name && isDeepStrictEqual(tryParse(args), given);
    return answer.openCalls().find(isIt)?.id;
  }
}

/** The path to a task of a graph, without the numbers that count the graphs that one task has called. */
function taskOf(metadata: unknown): string {
  const { langgraph_checkpoint_ns: namespace } = isRecord(metadata) ? metadata : {};
  const names = asString(namespace).split("|");
  return names.filter((name) => name.includes(":")).join("|");
}

/** Whether a tool threw in order to ask the user. `error` is the error or its text. */
function isInterrupt(error: unknown): boolean {
  return isRecord(error) ? error.name === "GraphInterrupt" : /^GraphInterrupt: /m.test(asString(error));
}
