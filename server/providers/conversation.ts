/** The two kinds of conversations: the client keeps the whole history, or the API keeps it. */

import type { AssistantMessage, HistoryMessage, StateKind, ToolMessage } from "../protocol/chat.ts";
import { CANCELLED, slimHistory, textContent, toolMessage, userMessage } from "./history.ts";
import type { Conversation, ConversationStart, KeptResponse, Model, Provider, ProviderFacts } from "./provider.ts";

/** A provider of a model whose states are of this kind. */
export function createProvider(
  { id, label, mediaTypes, models }: ProviderFacts,
  stateKind: StateKind,
  model: Model,
): Provider {
  const open = stateKind === "conversation_history" ? openHistory : openStored;
  return { id, label, mediaTypes, models, stateKind, model, open: (start) => open(model, start) };
}

/** A conversation whose model gets all of it with each request. */
function openHistory(model: Model, { setup, state, message, attachments }: ConversationStart): Conversation {
  const past = state.conversation_history ?? [];
  const messages: HistoryMessage[] = [...past, userMessage(message, attachments)];
  /** Calls of the last turn that have no answer yet. */
  const openCalls = new Set<string>();
  /** Results that clients do not get as the model does. */
  const shownResults = new Map<HistoryMessage, ToolMessage>();
  /** How many of the messages make a history that can be continued. */
  let settled = past.length;
  /** The last answer, if it has neither text nor calls; perhaps it has thoughts, or calls that the provider ran. */
  let silent: AssistantMessage | undefined;

  function keep(message: AssistantMessage): void {
    const calls = message.tool_calls ?? [];
    const isSilent = calls.length === 0 && (message.content ?? "").trim() === "";
    // An empty message says nothing to the model, and several APIs refuse it.
    if (!isSilent) messages.push(message);
    silent = isSilent ? message : undefined;
    for (const call of calls) openCalls.add(call.id);
    if (calls.length === 0) settled = messages.length;
  }

  return {
    ask(signal, onRequestId) {
      if (openCalls.size > 0) throw new Error("a call of the last turn is not answered");
      return model({ setup, messages, keep, onRequestId }, signal);
    },

    answer(answers) {
      for (const { id, content, shown, failed } of answers) {
        if (!openCalls.delete(id)) throw new Error(`no open call has the id ${id}`);
        const result = toolMessage(id, content, failed);
        messages.push(result);
        if (shown !== undefined) shownResults.set(result, toolMessage(id, textContent(shown), failed));
      }
    },

    interrupt(said) {
      // At the turn limit the run may hand in the text that came with the calls, which is kept already.
      const last = messages.at(-1);
      const isKept = last?.role === "assistant" && last.content === said;
      for (const id of openCalls) messages.push(toolMessage(id, CANCELLED, true));
      openCalls.clear();
      if (said.trim() !== "" && !isKept) messages.push({ ...silent, role: "assistant", content: said });
      settled = messages.length;
    },

    withhold(said) {
      const { length } = past;
      for (const id of openCalls) messages.push(toolMessage(id, CANCELLED, true));
      openCalls.clear();
      messages.push(...messages.splice(length).flatMap(withoutWords));
      if (said !== "") messages.push({ role: "assistant", content: said });
      settled = messages.length;
    },

    state() {
      const history = messages.slice(0, settled).map((message) => shownResults.get(message) ?? message);
      return history.length === 0 ? {} : { conversation_history: slimHistory(history) };
    },

    stateAfterFailure: () => state,
  };
}

/** What is left of a message of the model: its calls, without thoughts and whatever else came with them. */
function withoutWords(message: HistoryMessage): HistoryMessage[] {
  if (message.role !== "assistant") return [message];
  const { tool_calls: calls = [] } = message;
  return calls.length === 0 ? [] : [{ role: "assistant", content: null, tool_calls: calls }];
}

/** A conversation that the API keeps. */
function openStored(model: Model, { setup, state, message, attachments }: ConversationStart): Conversation {
  /** What the API does not have yet. */
  let messages: HistoryMessage[] = [userMessage(message, attachments)];
  /** The response to continue from within this run; its calls may be open. */
  let previousId = state.previous_response_id;
  /** The last response that left no call open. The API refuses a new message after any other. */
  let settledId = previousId;
  /** Calls that were cut: they are not carried out, but the API wants each answered. */
  let cutCalls: readonly string[] = [];

  function keep({ tool_calls: calls = [] }: AssistantMessage, kept?: KeptResponse): void {
    previousId = kept?.id;
    cutCalls = kept?.cutCalls ?? [];
    if (calls.length === 0 && cutCalls.length === 0) settledId = previousId;
  }

  return {
    ask: (signal, onRequestId) => model({ setup, messages, previousId, keep, onRequestId }, signal),

    answer(answers) {
      messages = [
        ...answers.map(({ id, content, failed }) => toolMessage(id, content, failed)),
        ...cutCalls.map((id) => toolMessage(id, CANCELLED, false)),
      ];
    },

    /**
     * The API does not keep a response that was cut, and one with open calls is never handed out: the conversation goes on
     * from the last response that was complete.
     */
    interrupt() {
      messages = [];
    },

    withhold() {
      messages = [];
    },

    state: () => (settledId === undefined ? {} : { previous_response_id: settledId }),
    stateAfterFailure: () => state,
  };
}
