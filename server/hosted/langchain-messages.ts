/** LangChain's messages, which LangGraph streams, too: class instances of any version, or their JSON. */

import { randomUUID } from "node:crypto";
import type { Usage } from "../protocol/chat.ts";
import { asString, isRecord, records } from "../protocol/json.ts";
import { plainSource } from "../providers/citations.ts";
import type { FoundSource } from "../providers/provider.ts";
import { fieldsIn, usageOf } from "../providers/usage.ts";
import { argumentsText } from "./answer.ts";
import type { AgentAnswer } from "./inner-answer.ts";

type Message = Record<string, unknown>;

/** A call that a model has requested, as far as it has been received. */
interface Asked {
  /** Whether its tool may still begin. */
  isDue: boolean;
  /** Empty until it is known. */
  id: string;
  name: string;
  args: string;
}

/** The author of a message: the agent; a nested graph, whose last text is the answer if the agent has none; a tool. */
export type Speaker = "agent" | "graph" | "tool";

/** Reads the messages of one answer. One message may come several times: in pieces, whole, and within an update. */
export class MessagesReader {
  readonly #answer: AgentAnswer;
  /** Ids of messages whose text was added to the answer. */
  readonly #said = new Set<string>();
  /** Id of the message whose text came last; `undefined` if the agent itself has said nothing. */
  #speaker: string | undefined;
  /** Whether text of the agent itself has come otherwise than by `readWhole`. */
  #hasStreamed = false;
  /** Id of the agent's own message that came last. */
  #current: string | undefined;
  /** Requested calls: in pieces by message and index, whole ones by their own ids. */
  readonly #asked = new Map<string, Asked>();
  /** Ids of calls whose tools have begun. */
  readonly #begun = new Set<string>();
  /** The last text of a nested graph, or of a message that was not streamed. */
  #unsaid: { id: string; text: string } = { id: "", text: "" };

  constructor(answer: AgentAnswer) {
    this.#answer = answer;
  }

  read(message: Message, by: Speaker): void {
    const kind = kindOf(message);
    if (kind === "tool") this.#readResult(message);
    else if (kind === "ai") this.#readSpoken(message, by);
  }

  /** Reads a whole message that may have been streamed before. Its calls begin now, after its text. */
  readWhole(message: Message, by: Speaker): void {
    const kind = kindOf(message);
    if (kind === "tool") this.#readResult(message);
    if (kind !== "ai") return;
    const [id, text] = [asString(message.id), by === "tool" ? "" : textOf(message)];
    const mayHaveStreamed = by !== "agent" || this.#hasStreamed || this.#said.has(id);
    if (text !== "" && !mayHaveStreamed && records(message.tool_calls).length > 0) {
      this.say(id || randomUUID(), text);
      this.#hasStreamed = false;
      if (id !== "") this.#said.add(id);
    } else if (text !== "") this.#unsaid = { id, text };
    this.#readCalls(message);
  }

  /** Counts the tokens of a message by an agent within a call. Its text is not part of the answer. */
  hear(message: Message): void {
    if (kindOf(message) === "ai") this.read(spokenPart(message), "tool");
  }

  /** Adds a piece of the answer. `speaker` is the id of its message. */
  say(speaker: string, text: string): void {
    if (this.#speaker !== undefined && this.#speaker !== speaker) this.#answer.beginAnew();
    this.#speaker = speaker;
    this.#hasStreamed = true;
    this.#answer.text(text);
  }

  /** Begins a tool's call. Without an id, it is the first requested call of this name that has not begun. */
  begin(id: unknown, name: unknown, input: unknown): void {
    const asked =
      this.#find((one) => one.id !== "" && one.id === id) ??
      this.#find((one) => one.name === name && (one.id === "" || (!id && !this.#begun.has(one.id))));
    const call = this.#answer.call(id || asked?.id, name, input ?? asked?.args);
    if (asked !== undefined) asked.id = call;
    this.#begun.add(call);
    this.#expect();
  }

  /** Ends a call with what its tool returned: a message, a change of the graph's state with a message, or any value. */
  end(id: unknown, output: unknown): void {
    const commands = [output].flat().filter(isCommand);
    const message = commands.length > 0 ? commands.flatMap(toolMessagesOf)[0] : output;
    if (commands.length > 0 && message === undefined) this.#answer.result(id, "");
    else if (!isRecord(message) || kindOf(message) !== "tool") this.#answer.result(id, message);
    else if (message.status === "error") this.#answer.thrown(id, new Error(textOf(message)));
    else this.#answer.result(id, textOf(message));
  }

  /** If the agent itself has streamed nothing, the last text within it becomes the answer. */
  sayUnsaid(): void {
    if (this.#hasStreamed) return;
    this.#answer.beginAnew();
    this.#answer.text(this.#unsaid.text);
  }

  #readSpoken(message: Message, by: Speaker): void {
    const id = asString(message.id);
    const isPiece = typeof message.concat === "function" || asString(message.type).endsWith("Chunk");
    if (!isPiece && id !== "" && this.#said.has(id)) return;
    this.#answer.addUsage(usageIn(message));
    if (by === "agent" && id !== this.#current) this.#goOn(id);
    const text = by === "tool" ? "" : textOf(message);
    if (by !== "agent") this.#keepUnsaid(id, text, isPiece);
    else {
      this.#answer.thinking(thoughtOf(message));
      // Whole messages without an id are separate messages.
      if (text !== "") this.say(isPiece || id !== "" ? id : randomUUID(), text);
      if (text !== "") this.#said.add(id);
      for (const source of sourcesOf(message)) this.#answer.source(source);
    }
    for (const piece of records(message.tool_call_chunks)) this.#addPiece(id, piece);
    if (!isPiece) this.#readCalls(message);
  }

  #keepUnsaid(id: string, text: string, isPiece: boolean): void {
    if (text === "") return;
    const isMore = isPiece && this.#unsaid.id === id;
    this.#unsaid = { id, text: isMore ? this.#unsaid.text + text : text };
  }

  /** The agent asks its model again, so calls that have not begun will not begin. */
  #goOn(message: string): void {
    this.#current = message;
    for (const asked of this.#asked.values()) asked.isDue = false;
    this.#answer.giveUp(this.#begun);
  }

  #addPiece(message: string, { index, id, name, args }: Record<string, unknown>): void {
    const key = `${message}:${index}`;
    const asked = this.#asked.get(key) ?? { isDue: true, id: "", name: "", args: "" };
    asked.id ||= asString(id);
    asked.name ||= asString(name);
    asked.args += asString(args);
    asked.isDue = true;
    this.#asked.set(key, asked);
    this.#expect();
  }

  /** Begins the calls of a whole message. Known ones are recognised by id, or else by name and arguments. */
  #readCalls(message: Message): void {
    const known = new Set<Asked>();
    for (const { id, name, args } of records(message.tool_calls)) {
      const text = argumentsText(args);
      const isIt = (one: Asked) =>
        id ? one.id === id : one.name === name && (one.id === "" || (one.args === text && this.#answer.isOpen(one.id)));
      const asked = this.#find((one) => !known.has(one) && isIt(one));
      const call = this.#answer.call(id || asked?.id, name, args);
      if (asked !== undefined) asked.id = call;
      const now = asked ?? { isDue: true, id: call, name: asString(name), args: text };
      if (asked === undefined) this.#asked.set(call, now);
      known.add(now);
    }
    this.#expect();
  }

  #readResult(message: Message): void {
    const given = asString(message.tool_call_id);
    if (given !== "" && !this.#answer.hasCalled(given)) {
      this.begin(given, this.#find(({ id }) => id === given)?.name ?? message.name, undefined);
    }
    this.end(given || this.#answer.openCalls(message.name)[0]?.id, message);
  }

  #find(isIt: (asked: Asked) => boolean): Asked | undefined {
    for (const asked of this.#asked.values()) if (isIt(asked)) return asked;
    return undefined;
  }

  /** Counts requested calls whose tools have not begun: they suspend the idle limit. Ended calls are forgotten. */
  #expect(): void {
    let due = 0;
    for (const [key, { id, isDue }] of this.#asked) {
      if (!this.#answer.hasCalled(id)) due += isDue ? 1 : 0;
      else if (!this.#answer.isOpen(id)) this.#asked.delete(key);
    }
    this.#answer.expect(due);
  }
}

/** Whether this is LangGraph's `Command`, by which a tool changes the state of its graph. */
function isCommand(value: unknown): value is Record<string, unknown> {
  return isRecord(value) && value.lg_name === "Command";
}

/** The tool messages in a command's `update`, which is an object or a list of names with values. */
function toolMessagesOf({ update }: Record<string, unknown>): Message[] {
  const changes = Array.isArray(update) ? update : Object.entries(isRecord(update) ? update : {});
  const changed = changes.flatMap(([name, value]) => (name === "messages" ? [value].flat() : []));
  return changed.filter((one): one is Message => isRecord(one) && kindOf(one) === "tool");
}

export function isMessage(value: unknown): value is Message {
  return isRecord(value) && "content" in value && kindOf(value) !== undefined;
}

const KINDS: Readonly<Record<string, "ai" | "tool" | "other">> = {
  ai: "ai",
  AIMessageChunk: "ai",
  tool: "tool",
  ToolMessageChunk: "tool",
  human: "other",
  HumanMessageChunk: "other",
  system: "other",
  SystemMessageChunk: "other",
  developer: "other",
  remove: "other",
  function: "other",
};

const ROLES = ["assistant", "user", "human", "system", "developer", "tool"];

/** `undefined` if this is no message. A "generic" message, or one without a type, has a role instead. */
function kindOf(message: Message): "ai" | "tool" | "other" | undefined {
  const named = typeof message._getType === "function" ? message._getType() : message.type;
  const type = asString(named);
  const role = asString(message.role);
  if (type === "generic" || type === "ChatMessageChunk" || (named === undefined && ROLES.includes(role))) {
    if (role === "tool") return "tool";
    return ["user", "human", "system", "developer"].includes(role) ? "other" : "ai";
  }
  return Object.hasOwn(KINDS, type) ? KINDS[type] : undefined;
}

/** A copy of a message without its calls. */
export function spokenPart(message: Message): Message {
  const { content, id, type, _getType, concat, role, additional_kwargs, usage_metadata } = message;
  const kind = typeof _getType === "function" ? _getType.call(message) : type;
  return { content, id, type: kind, concat, role, additional_kwargs, usage_metadata };
}

function textOf({ content }: Message): string {
  if (typeof content === "string") return content;
  const texts = records(content).filter(({ type }) => type === "text" || type === "text_delta");
  return texts.map(({ text }) => asString(text)).join("");
}

/** The sources of a message. Pieces have them apart from the text that they belong to, so their place is unknown. */
function sourcesOf({ content }: Message): FoundSource[] {
  return records(content).flatMap((block) => records(block.citations ?? block.annotations).map(plainSource));
}

/** Thinking, in the forms of several providers. */
function thoughtOf({ content, additional_kwargs: more }: Message): string {
  const blocks = records(content).map(({ thinking, reasoning }) => asString(thinking) || asString(reasoning));
  const beside = isRecord(more) ? asString(more.reasoning_content) : "";
  return blocks.join("") || beside;
}

function usageIn({ usage_metadata: usage }: Message): Usage | undefined {
  const { input_tokens: input, output_tokens: output, input_token_details, output_token_details } = fieldsIn(usage);
  const { cache_read: cached, cache_creation: written } = fieldsIn(input_token_details);
  return usageOf({ input, output, cached, written, reasoning: fieldsIn(output_token_details).reasoning });
}
