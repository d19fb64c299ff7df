/** LangChain: the events of `streamEvents`, version 2. */

import { asString, isRecord } from "../protocol/json.ts";
import type { Answer } from "./answer.ts";
import { isMessage, MessagesReader } from "./langchain-messages.ts";
import { Interrupts, isNested } from "./langgraph.ts";
import type { Shape, ShapeReader } from "./shape.ts";

export const LANGCHAIN_EVENTS: Shape = {
  name: "LangChain",
  fits: (item) => isRecord(item) && /^on_[a-z_]+$/.test(asString(item.event)) && isRecord(item.data),
  reader: (answer) => new EventsReader(answer),
};

class EventsReader implements ShapeReader {
  readonly #messages: MessagesReader;
  readonly #interrupts = new Interrupts();
  /** Runs of models that have streamed. */
  readonly #streamed = new Set<unknown>();

  constructor(answer: Answer) {
    this.#messages = new MessagesReader(answer);
  }

  read(item: unknown, answer: Answer): boolean {
    const { event, data, name, run_id: id, metadata } = item as Record<string, unknown>;
    const { chunk, input, output, error } = data as Record<string, unknown>;
    const messages = this.#messages;
    if (event === "on_chat_model_stream" && isMessage(chunk)) {
      this.#streamed.add(id);
      // Which calls a model asks for is said once more by the tools that run.
      messages.read(spokenPart(chunk), isNested(metadata));
    } else if (event === "on_chat_model_end" && isMessage(output) && !this.#streamed.has(id)) {
      messages.read(spokenPart(output), isNested(metadata));
    } else if (event === "on_llm_stream" && isRecord(chunk) && !isNested(metadata)) {
      messages.say(asString(id), asString(chunk.text));
    } else if (event === "on_tool_start") {
      answer.call(id, name, input);
    } else if (event === "on_tool_end") {
      messages.end(id, output);
    } else if (event === "on_tool_error") {
      answer.thrown(id, error);
    } else if (event === "on_chain_stream") {
      this.#interrupts.read(chunk);
    }
    return true;
  }

  end(answer: Answer): void {
    this.#messages.sayUnsaid();
    this.#interrupts.ask(answer);
  }
}

function spokenPart(message: Record<string, unknown>): Record<string, unknown> {
  const { content, id, type, _getType, concat, role, additional_kwargs, usage_metadata } = message;
  const kind = typeof _getType === "function" ? _getType.call(message) : type;
  return { content, id, type: kind, concat, role, additional_kwargs, usage_metadata };
}
