/** Functions for a project's `run`, which pass a message or the user's decisions on to its framework. */

import {
  isInPlaceOfDecisions,
  messagesUntilAsked,
  type RunInput,
  textParts,
  withTexts,
} from "../agent/run-function.ts";
import { isTextType } from "../protocol/attachments.ts";
import type { DecidedCall, HistoryMessage } from "../protocol/chat.ts";
import { asString, records, tryParse } from "../protocol/json.ts";
import { partsOf, textOf } from "../providers/history.ts";

/**
 * The conversation in the form of the AI SDK: with the files of this message as parts and, after decisions, with the calls that
 * waited and what became of them.
 */
// biome-ignore lint/suspicious/noExplicitAny: each version of the AI SDK has types of its own.
export function toModelMessages(input: RunInput): any[] {
  const { messages, attachments, ctx } = input;
  const files = attachments.flatMap(({ name, mimeType, data }) => {
    // Text files are in `messages` already.
    return isTextType(mimeType) ? [] : [{ type: "file", data, mediaType: mimeType, filename: name }];
  });
  const said = (text: string) => ({ role: "user", content: [...textParts(text), ...files] });
  if (ctx.approvals.length > 0) {
    const now = isInPlaceOfDecisions(input) ? [said(withTexts(input))] : [];
    return [...messagesUntilAsked(input), ...exchangeOf(input), ...now];
  }
  const last = messages.at(-1);
  return files.length === 0 || last === undefined ? messages : [...messages.slice(0, -1), said(last.content)];
}

export type Part = Record<string, unknown>;

/** The messages after the one that is still being answered, up to the user's decisions. */
export function exchangeOf(input: RunInput): object[] {
  const { approvals } = input.ctx;
  const { kept: first } = approvals[0] ?? {};
  const kept: Part[] = Array.isArray(first) ? first : input.exchange.slice(1).map((one) => toModelMessage(one, input));
  const parts = kept.flatMap(({ content }) => records(content));
  const responses = approvals.map(({ id, tool, approved, reason }) => {
    // The SDK reads approval responses only at the end of the conversation.
    const denied = { type: "execution-denied", reason: "The user did not decide on this, and wrote something else." };
    if (isInPlaceOfDecisions(input)) return { type: "tool-result", toolCallId: id, toolName: tool, output: denied };
    const request = parts.findLast(({ type, toolCallId }) => type === REQUEST && toolCallId === id);
    return { type: "tool-approval-response", approvalId: request?.approvalId, approved, reason };
  });
  return [...kept, { role: "tool", content: responses }];
}

const REQUEST = "tool-approval-request";

/** A message of the exchange, if the SDK's own messages were not kept. */
function toModelMessage(message: HistoryMessage, { exchange, ctx }: RunInput): Part {
  if (message.role === "user") return { role: "user", content: textOf(partsOf(message)) };
  if (message.role === "tool") {
    const calls = exchange.flatMap((one) => (one.role === "assistant" ? (one.tool_calls ?? []) : []));
    const { tool_call_id: id, content } = message;
    const name = calls.find((call) => call.id === id)?.function.name;
    const output = { type: "text", value: typeof content === "string" ? content : textOf(content) };
    return { role: "tool", content: [{ type: "tool-result", toolCallId: id, toolName: name, output }] };
  }
  const text = textParts(message.content ?? "");
  const calls = (message.tool_calls ?? []).flatMap(({ id, function: { name, arguments: args } }): Part[] => {
    const call = { type: "tool-call", toolCallId: id, toolName: name, input: tryParse(args) ?? {} };
    const hasWaited = ctx.approvals.some((decision) => decision.id === id);
    return hasWaited ? [call, { type: REQUEST, approvalId: id, toolCallId: id }] : [call];
  });
  return { role: "assistant", content: [...text, ...calls] };
}

/**
 * The `resume` of LangGraph's `Command`, from the user's decisions: each `interrupt` returns `{ approved, reason }`, or the
 * user's words if it asks for them; that of `humanInTheLoopMiddleware` returns what the middleware expects.
 */
export function toResume(approvals: readonly DecidedCall[]): Record<string, unknown> {
  const resume: Record<string, unknown> = {};
  const decisions = new Map<string, object[]>();
  for (const decision of approvals) {
    const { interrupt, action } = decision.kept;
    const { approved, reason } = decision;
    if (action === undefined) resume[interrupt] = givenWords(decision) ?? { approved, reason };
    else {
      const before = decisions.get(interrupt) ?? [];
      decisions.set(interrupt, [...before, toHumanDecision(decision)]);
      resume[interrupt] = { decisions: decisions.get(interrupt) };
    }
  }
  return resume;
}

/** The user's words, possibly "", if they were asked for words and have not declined. */
export function givenWords({ approved, reason, kept }: DecidedCall): string | undefined {
  return kept.question && approved ? (reason ?? "") : undefined;
}

function toHumanDecision({ tool, approved, reason, arguments: args, kept }: DecidedCall): object {
  if (!approved) return { type: "reject", ...(reason === undefined ? {} : { message: reason }) };
  if (args === undefined) return { type: "approve" };
  return { type: "edit", [kept.isPython ? "edited_action" : "editedAction"]: { name: tool, args: tryParse(args) } };
}

/** The class of a run's state, as the SDK exports it. */
interface RunStates<Agent, State> {
  fromString(agent: Agent, text: string): Promise<State>;
}

/** A run's state in which calls wait for the user. */
interface InterruptedState {
  getInterruptions(): { rawItem: object }[];
  approve(item: never): void;
  reject(item: never, options?: { message?: string }): void;
}

/**
 * The state of the run whose calls have waited, with the user's decisions: the SDK's `run` continues from it. `undefined`
 * without decisions.
 */
export async function toRunState<Agent, State extends InterruptedState>(
  RunState: RunStates<Agent, State>,
  agent: Agent,
  approvals: readonly DecidedCall[],
): Promise<State | undefined> {
  const [first] = approvals;
  if (first === undefined) return undefined;
  const state = await RunState.fromString(agent, first.kept);
  for (const item of state.getInterruptions()) {
    const decision = approvals.find(({ id }) => id === idOf(item.rawItem as Record<string, unknown>));
    if (decision?.approved) state.approve(item as never);
    else state.reject(item as never, decision?.reason === undefined ? {} : { message: decision.reason });
  }
  return state;
}

/** The id of a call in the OpenAI Agents SDK. */
export function idOf({ callId, id }: Record<string, unknown>): string {
  return asString(callId) || asString(id);
}
