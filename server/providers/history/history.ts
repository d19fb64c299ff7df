import type { MediaType } from "../../protocol/attachments.ts";
import type { AssistantMessage, ConversationState, HistoryMessage, ToolMessage } from "../../protocol/chat.ts";
import type {
  ChatModel,
  ChatModelEvent,
  Conversation,
  ConversationSetup,
  OnAnswer,
  Provider,
  ProviderEvent,
  ProviderFacts,
  SpokenEvent,
  Tell,
  ToolAnswer,
} from "../provider.ts";
import { slimHistory } from "./slim-history.ts";
import { CANCELLED_OUTPUT, toolMessage } from "./tool-output.ts";
import { userMessage } from "./user-message.ts";

/** A provider that is told the whole conversation each time. */
export class HistoryProvider implements Provider {
  readonly stateKind = "conversation_history";
  readonly id: string;
  readonly label: string;
  readonly mediaTypes: readonly MediaType[];
  readonly models?: readonly string[];
  /** Who is asked. Any other can go on with the same history. */
  readonly chat: ChatModel;

  constructor({ id, label, mediaTypes, models }: ProviderFacts, chat: ChatModel) {
    this.id = id;
    this.label = label;
    this.mediaTypes = mediaTypes;
    if (models !== undefined) this.models = models;
    this.chat = chat;
  }

  async prepare(): Promise<void> {
    await this.chat.prepare?.();
  }

  open(setup: ConversationSetup): Conversation {
    return openHistory(this.chat, setup);
  }
}

/** The conversation of every provider that is told all of it each time. */
export function openHistory(model: ChatModel, setup: ConversationSetup): Conversation {
  return new HistoryConversation(model, setup);
}

class HistoryConversation implements Conversation {
  readonly #model: ChatModel;
  readonly #setup: ConversationSetup;
  /** As clients may see them. */
  readonly #messages: HistoryMessage[];
  /** What the model gets in this run in place of some of them, which no client may see. */
  readonly #hidden = new Map<HistoryMessage, ToolMessage>();
  /** Calls of the last turn that have no answer yet. */
  readonly #openCalls = new Set<string>();
  /** How many of the messages make a history that can be continued. */
  #settled: number;

  constructor(model: ChatModel, setup: ConversationSetup) {
    const { state } = setup;
    const past = "conversation_history" in state ? state.conversation_history : [];
    this.#model = model;
    this.#setup = setup;
    this.#messages = [...past, userMessage(setup.message, setup.attachments)];
    this.#settled = past.length;
  }

  async ask(signal: AbortSignal, tell: Tell<ProviderEvent>, onAnswer?: OnAnswer): Promise<void> {
    if (this.#openCalls.size > 0) throw new Error("a call of the last turn is not answered");
    const { instructions, tools } = this.#setup;
    const messages = this.#messagesForModel();
    const request = { instructions, tools, messages, onAnswer };
    await this.#model.stream(request, signal, (events) => tell(hasNoEnd(events) ? events : this.#keepLast(events)));
  }

  answer(answers: readonly ToolAnswer[]): void {
    for (const answer of answers) {
      if (!this.#openCalls.has(answer.id)) throw new Error(`no open call has the id ${answer.id}`);
      const { id, output, failed, shown = output } = answer;
      const message = this.#answer(id, shown, failed);
      if (shown !== output) this.#hidden.set(message, { ...message, content: output });
    }
  }

  interrupt(said: string): void {
    // At the turn limit the run may hand in the text that came with the calls, which is kept already.
    const last = this.#messages.at(-1);
    const isKept = last?.role === "assistant" && last.content === said;
    for (const id of [...this.#openCalls]) this.#answer(id, CANCELLED_OUTPUT, true);
    if (said.trim() !== "" && !isKept) this.#messages.push({ role: "assistant", content: said });
    this.#settled = this.#messages.length;
  }

  state(): ConversationState {
    const history = slimHistory(this.#messages.slice(0, this.#settled));
    return history.length === 0 ? {} : { conversation_history: history };
  }

  #messagesForModel(): readonly HistoryMessage[] {
    if (this.#hidden.size === 0) return this.#messages;
    return this.#messages.map((message) => this.#hidden.get(message) ?? message);
  }

  #keepLast(events: readonly ChatModelEvent[]): ProviderEvent[] {
    return events.map((event) => {
      if (event.type !== "end") return event;
      const { message, ...end } = event;
      this.#keep(message);
      return end;
    });
  }

  #keep(message: AssistantMessage): void {
    const calls = message.tool_calls ?? [];
    // An empty message says nothing to the model, and several APIs refuse it.
    if (calls.length > 0 || (message.content ?? "") !== "") this.#messages.push(message);
    for (const call of calls) this.#openCalls.add(call.id);
    if (calls.length === 0) this.#settled = this.#messages.length;
  }

  #answer(id: string, content: string, failed: boolean): ToolMessage {
    const message = toolMessage(id, content, failed);
    this.#messages.push(message);
    this.#openCalls.delete(id);
    return message;
  }
}

/** The end is the last event of its batch, and of the turn. */
function hasNoEnd(events: readonly ChatModelEvent[]): events is readonly SpokenEvent[] {
  return events.at(-1)?.type !== "end";
}
