/** AG-UI: the events that agents send over HTTP, in any language. */

import { asString, isRecord, records, textsOf, tryParse } from "../protocol/json.ts";
import { sdkUsage } from "../providers/ai-sdk/usage.ts";
import type { ToolCall } from "../providers/provider.ts";
import { type Answer, failure, failureInWords } from "./answer.ts";
import { Interrupts, wordsAndValues } from "./langgraph.ts";
import { alike, type Handlers, ignored, readByType, type Shape, type ShapeReader } from "./shape.ts";

export const AG_UI: Shape = {
  name: "AG-UI",
  fits: (item) => isRecord(item) && /^[A-Z]+(?:_[A-Z]+)+$|^RAW$|^CUSTOM$/.test(asString(item.type)),
  reader: () => new AgUiReader(),
};

type Interrupt = Record<string, unknown>;

class AgUiReader implements ShapeReader {
  /** Calls whose arguments are still coming. */
  readonly #calls = new Map<string, { name: unknown; args: string }>();
  /** Ids of those calls that suspend the idle limit. */
  readonly #due = new Set<string>();
  #chunk: string | undefined;
  #messageId: unknown;
  /** The streamed text of each message, by its id. */
  readonly #streamed = new Map<unknown, string>();
  /** Ids of calls that no thinking and no text has followed. */
  readonly #last = new Set<string>();
  /** The messages of the last `MESSAGES_SNAPSHOT`. */
  #snapshot: Record<string, unknown>[] | undefined;
  /** Results whose calls were not streamed, by the id of the call. */
  readonly #results = new Map<unknown, unknown>();
  /** Questions to the user, by the id that the answer needs. Some agents send one twice, with the same id. */
  readonly #interrupts = new Map<unknown, Interrupt>();
  /** Whether the agent has reported success: then it waits for nothing. */
  #isComplete = false;

  readonly #handlers: Handlers = {
    ...ignored("RUN_STARTED", "STEP_STARTED", "STEP_FINISHED", "TEXT_MESSAGE_END", "REASONING_START", "REASONING_END"),
    ...ignored("REASONING_MESSAGE_START", "REASONING_MESSAGE_END", "REASONING_ENCRYPTED_VALUE", "RAW"),
    ...ignored("THINKING_START", "THINKING_END", "THINKING_TEXT_MESSAGE_START", "THINKING_TEXT_MESSAGE_END"),
    // The agent's own state, custom UI, and events of agents that this one asks.
    ...ignored("STATE_SNAPSHOT", "STATE_DELTA", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA"),
    ...ignored("SUBAGENT_STARTED", "SUBAGENT_FINISHED", "SUBAGENT_ERROR"),
    TEXT_MESSAGE_START: ({ messageId }, answer) => this.#beginMessage(messageId, answer),
    TEXT_MESSAGE_CONTENT: ({ messageId, delta }, answer) => this.#say(messageId, delta, answer),
    TEXT_MESSAGE_CHUNK: ({ messageId = this.#messageId, delta }, answer) => {
      this.#beginMessage(messageId, answer);
      this.#say(messageId, delta, answer);
    },
    ...alike(
      ["REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_CHUNK", "THINKING_TEXT_MESSAGE_CONTENT"],
      ({ delta }, answer) => {
        this.#last.clear();
        answer.thinking(delta);
      },
    ),
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
      if (!answer.hasCalled(asString(toolCallId))) this.#results.set(toolCallId, content);
      answer.result(toolCallId, content);
    },
    MESSAGES_SNAPSHOT: ({ messages }) => {
      this.#snapshot = records(messages);
    },
    CUSTOM: ({ name, value, rawEvent }) => {
      if (name === "on_interrupt") this.#interrupt(interruptOf(value, rawEvent));
    },
    RUN_FINISHED: ({ outcome, usage }, answer) => {
      const { type, interrupts } = isRecord(outcome) ? outcome : {};
      this.#isComplete = type === "success";
      for (const [index, one] of type === "interrupt" ? records(interrupts).entries() : []) {
        if (!one.id) throw failure(`The agent asks, but outcome.interrupts[${index}] of its RUN_FINISHED has no id.`);
        this.#interrupt(one);
      }
      for (const one of records(usage)) answer.addUsage(sdkUsage(one));
    },
    RUN_ERROR: ({ message, code }) => {
      throw failureInWords("The agent reports an error", Object.assign(new Error(asString(message)), { code }));
    },
  };

  read(item: unknown, answer: Answer): boolean {
    if ((item as { type: string }).type !== "TOOL_CALL_CHUNK") this.#endChunk(answer);
    return readByType(this.#handlers, item, answer);
  }

  /** Called when the answer has ended: only then it is known what was not streamed and which calls are open. */
  end(answer: Answer): void {
    this.#endChunk(answer);
    this.#sayUnstreamed(answer);
    const graph = new Interrupts({ isGraph: true });
    const ofGraph: object[] = [];
    const open = answer.openCalls();
    for (const one of this.#interrupts.values()) {
      const { metadata } = one;
      const { langgraph } = isRecord(metadata) ? metadata : {};
      if (isRecord(langgraph)) ofGraph.push({ id: one.id, value: langgraph.raw });
      else ask(one, this.#interrupts.size === 1 && open.length === 1 ? open[0] : undefined, answer);
    }
    if (ofGraph.length > 0) graph.read({ __interrupt__: ofGraph });
    graph.ask(answer);
    // AG-UI does not mark calls that the client has to answer: the run ends with them, without a result. If the run
    // asks, reports success or lists its messages, that tells what has become of its calls.
    if (this.#interrupts.size > 0 || this.#isComplete || this.#snapshot !== undefined) return;
    const left = open.filter(({ id }) => this.#last.has(id));
    for (const call of left) answer.askApproval({ ...call, tool: call.name, kept: { call: call.id } });
  }

  #interrupt(interrupt: Interrupt): void {
    const key = interrupt.id || interrupt;
    this.#interrupts.set(key, { ...this.#interrupts.get(key), ...interrupt });
  }

  #say(id: unknown, delta: unknown, answer: Answer): void {
    if (asString(delta) === "") return;
    this.#streamed.set(id, `${this.#streamed.get(id) ?? ""}${delta}`);
    this.#last.clear();
    answer.text(delta);
  }

  /**
   * Adds what was not streamed: calls that have a result, or none in the thread while the agent asks; results; and the last
   * message of the thread, which is the answer then.
   */
  #sayUnstreamed(answer: Answer): void {
    const messages = this.#snapshot ?? [];
    const answered = new Set(messages.map(({ toolCallId }) => toolCallId));
    const current =
      this.#interrupts.size > 0 ? messages.slice(messages.findLastIndex((one) => one.role === "user")) : [];
    const waiting = new Set(current.flatMap(({ toolCalls }) => records(toolCalls)));
    for (const call of messages.flatMap(({ toolCalls }) => records(toolCalls))) {
      const { id, function: called } = call;
      if (!isRecord(called)) continue;
      const { name, arguments: args } = called;
      const isAsking = confirmationOf(asString(id), { name, args: asString(args) }) !== undefined;
      const isWaiting = waiting.has(call) && !answered.has(id) && !isAsking;
      if (isWaiting || this.#results.has(id)) answer.call(id, name, args);
      if (this.#results.has(id)) answer.result(id, this.#results.get(id));
    }
    for (const { toolCallId, content } of messages) {
      if (answer.isOpen(asString(toolCallId))) answer.result(toolCallId, textOf(content));
    }
    const { role, id, content } = messages.at(-1) ?? {};
    // A message without an id is recognised by its text.
    const isStreamed = (one: unknown) => one !== undefined && this.#streamed.has(one);
    if (role !== "assistant" || isStreamed(id)) return;
    const text = textOf(content).trim();
    // Some agents list streamed messages under other ids: then the text tells whether this one was streamed last.
    const [lastId, last = ""] = [...this.#streamed].at(-1) ?? [];
    const isLast = lastId === undefined ? last.trim().endsWith(text) : last.trim() === text;
    if (isLast && !messages.some((one) => isStreamed(one.id))) return;
    this.#beginMessage(id, answer);
    this.#say(id, textOf(content), answer);
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
    this.#last.add(asString(id));
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
    const asked = confirmationOf(id, call);
    if (asked === undefined) answer.call(id, call.name, call.args);
    else if (asked !== "known") this.#interrupt(asked);
    answer.expect(this.#due.size);
  }

  #endChunk(answer: Answer): void {
    if (this.#chunk !== undefined) this.#endCall(this.#chunk, answer);
    this.#chunk = undefined;
  }
}

/** LangGraph sends the value as a text, with the interrupt in `rawEvent`; CrewAI sends an interrupt as AG-UI has it. */
function interruptOf(value: unknown, rawEvent: unknown): Interrupt {
  const known = tryParse(asString(value)) ?? value;
  if (!isRecord(rawEvent) && isRecord(known) && typeof known.id === "string") return known;
  const { id, value: raw = known } = isRecord(rawEvent) ? rawEvent : {};
  return { id: asString(id), metadata: { langgraph: { raw } } };
}

/** The call by which Google's Agent Development Kit asks for confirmation. */
export const CONFIRMATION = "adk_request_confirmation";

/** For calls that ask whether another call may be made. "known": Microsoft's framework has it in the outcome, too. */
function confirmationOf(id: string, { name, args }: { name: unknown; args: string }): Interrupt | "known" | undefined {
  const given = tryParse(args);
  if (!isRecord(given)) return undefined;
  if (name === "confirm_changes" && "function_call_id" in given) return "known";
  return name === CONFIRMATION ? { id, metadata: { adk: given } } : undefined;
}

/** Asks about a call, or anything else that the agent wants to know. Without a message, `metadata` has the question. */
function ask(interrupt: Interrupt, only: ToolCall | undefined, answer: Answer): void {
  const { id, reason, message, toolCallId, responseSchema, metadata } = interrupt;
  const { adk, crewai, agent_framework: microsoft, reason: ofStrands } = isRecord(metadata) ? metadata : {};
  if (isRecord(adk)) {
    askOfGoogle(id, adk, answer);
    return;
  }
  const { properties, type, enum: choices } = isRecord(responseSchema) ? responseSchema : {};
  const wantsWords = type === "string" || isRecord(crewai);
  const about = wantsWords ? undefined : only;
  const call = toolCallId === undefined ? about : answer.openCallOf(toolCallId);
  const details = isRecord(crewai) ? { output: crewai.output } : message === undefined ? metadata : undefined;
  const { text, values } = wordsAndValues(ofStrands ?? details);
  const isQuestion = toolCallId === undefined && call === undefined;
  const takesWords = wantsWords || (responseSchema === undefined && values === undefined);
  const question = isQuestion && takesWords && reason !== "confirmation";
  const asked = asString(message ?? text);
  answer.askApproval({
    ...{ id: call?.id ?? toolCallId ?? id, tool: call?.name ?? reason, arguments: values ?? call?.arguments },
    ...{ text: Array.isArray(choices) ? `${asked} (${choices.join(", ")})`.trim() : asked, isQuestion, question },
    editable: isRecord(properties) && "editedArgs" in properties,
    kept: {
      ...{ interrupt: id, ...(question ? { question } : {}) },
      ...(isRecord(properties) && !("reason" in properties) ? { takesReason: false } : {}),
      ...(microsoft === undefined ? {} : { alike: true }),
    },
  });
}

/** The hint of Google's kit if the tool's author gave none: it is meant for programmers, so it is not shown. */
const STANDARD_HINT = /^Please approve or reject the tool call /;

function askOfGoogle(id: unknown, { originalFunctionCall, toolConfirmation }: Record<string, unknown>, answer: Answer) {
  const { id: callId, name, args } = isRecord(originalFunctionCall) ? originalFunctionCall : {};
  const { hint } = isRecord(toolConfirmation) ? toolConfirmation : {};
  const text = STANDARD_HINT.test(asString(hint)) ? undefined : hint;
  const kept = { interrupt: id, takesReason: false, by: CONFIRMATION };
  answer.askApproval({ id: callId ?? id, tool: name, arguments: args, text, kept });
}

/** A text, or the texts of its parts. */
function textOf(content: unknown): string {
  return asString(content) || textsOf(content, "text");
}
