/** AG-UI: the events that agents send over HTTP, in any language. */

import { asString, isRecord, records } from "../protocol/json.ts";
import { type Answer, failure } from "./answer.ts";
import { type Handlers, ignored, readByType, type Shape, type ShapeReader } from "./shape.ts";

export const AG_UI: Shape = {
  name: "AG-UI",
  fits: (item) => isRecord(item) && /^[A-Z]+(?:_[A-Z]+)+$|^RAW$|^CUSTOM$/.test(asString(item.type)),
  reader: () => new AgUiReader(),
};

class AgUiReader implements ShapeReader {
  /** Calls whose arguments are still coming. */
  readonly #calls = new Map<string, { name: unknown; args: string }>();
  /** Ids of those that are waited for. */
  readonly #due = new Set<string>();
  #chunk: string | undefined;
  #messageId: unknown;

  readonly #handlers: Handlers = {
    ...ignored("RUN_STARTED", "STEP_STARTED", "STEP_FINISHED", "TEXT_MESSAGE_END", "REASONING_START", "REASONING_END"),
    ...ignored("REASONING_MESSAGE_START", "REASONING_MESSAGE_END", "REASONING_ENCRYPTED_VALUE", "RAW", "CUSTOM"),
    ...ignored("THINKING_START", "THINKING_END", "THINKING_TEXT_MESSAGE_START", "THINKING_TEXT_MESSAGE_END"),
    // They repeat what was said, draw something of their own, or are of agents that this one asks.
    ...ignored("MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "STATE_DELTA", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA"),
    ...ignored("SUBAGENT_STARTED", "SUBAGENT_FINISHED", "SUBAGENT_ERROR"),
    TEXT_MESSAGE_START: ({ messageId }, answer) => this.#beginMessage(messageId, answer),
    TEXT_MESSAGE_CONTENT: ({ delta }, answer) => answer.text(delta),
    TEXT_MESSAGE_CHUNK: ({ messageId, delta }, answer) => {
      if (messageId !== undefined) this.#beginMessage(messageId, answer);
      answer.text(delta);
    },
    REASONING_MESSAGE_CONTENT: ({ delta }, answer) => answer.thinking(delta),
    REASONING_MESSAGE_CHUNK: ({ delta }, answer) => answer.thinking(delta),
    THINKING_TEXT_MESSAGE_CONTENT: ({ delta }, answer) => answer.thinking(delta),
    TOOL_CALL_START: ({ toolCallId, toolCallName }, answer) => this.#beginCall(toolCallId, toolCallName, answer),
    TOOL_CALL_ARGS: ({ toolCallId, delta }) => this.#addArguments(asString(toolCallId), delta),
    TOOL_CALL_END: ({ toolCallId }, answer) => this.#endCall(asString(toolCallId), answer),
    TOOL_CALL_CHUNK: ({ toolCallId, toolCallName, delta }, answer) => {
      const id = asString(toolCallId) || (this.#chunk ?? "");
      if (id !== this.#chunk) {
        this.#endChunk(answer);
        this.#beginCall(id, toolCallName, answer);
        this.#chunk = id;
      }
      this.#addArguments(id, delta);
    },
    TOOL_CALL_RESULT: ({ toolCallId, content }, answer) => {
      this.#endCall(asString(toolCallId), answer);
      answer.result(toolCallId, content);
    },
    RUN_FINISHED: ({ outcome, usage }, answer) => {
      if (isRecord(outcome) && outcome.type === "interrupt") {
        for (const interrupt of records(outcome.interrupts)) ask(interrupt, answer);
      }
      for (const { inputTokens, outputTokens } of records(usage)) answer.addUsage(inputTokens, outputTokens);
    },
    RUN_ERROR: ({ message, code }) => {
      throw failure("The agent reports an error.", Object.assign(new Error(asString(message)), { code }));
    },
  };

  read(item: unknown, answer: Answer): boolean {
    if ((item as { type: string }).type !== "TOOL_CALL_CHUNK") this.#endChunk(answer);
    return readByType(this.#handlers, item, answer);
  }

  end(answer: Answer): void {
    this.#endChunk(answer);
  }

  #beginMessage(id: unknown, answer: Answer): void {
    if (id === this.#messageId) return;
    if (this.#messageId !== undefined) answer.beginAnew();
    this.#messageId = id;
    // Some agents report neither results nor the end of the arguments.
    this.#due.clear();
    answer.giveUp();
  }

  #beginCall(id: unknown, name: unknown, answer: Answer): void {
    this.#calls.set(asString(id), { name, args: "" });
    answer.expect(this.#due.add(asString(id)).size);
  }

  #addArguments(id: string, delta: unknown): void {
    const call = this.#calls.get(id);
    if (call !== undefined) call.args += asString(delta);
  }

  #endCall(id: string, answer: Answer): void {
    const call = this.#calls.get(id);
    if (call === undefined) return;
    this.#calls.delete(id);
    this.#due.delete(id);
    answer.call(id, call.name, call.args);
    answer.expect(this.#due.size);
  }

  #endChunk(answer: Answer): void {
    if (this.#chunk !== undefined) this.#endCall(this.#chunk, answer);
    this.#chunk = undefined;
  }
}

/** An interrupt is about a call, or anything else that the agent wants to know. */
function ask({ id, reason, message, toolCallId, responseSchema }: Record<string, unknown>, answer: Answer): void {
  const call = answer.openCallOf(toolCallId);
  const { properties } = isRecord(responseSchema) ? responseSchema : {};
  answer.askApproval({
    ...{ id: toolCallId ?? id, tool: call?.name ?? reason, arguments: call?.arguments, text: message },
    ...{ editable: isRecord(properties) && "editedArgs" in properties, isQuestion: toolCallId === undefined },
    kept: { interrupt: id },
  });
}
