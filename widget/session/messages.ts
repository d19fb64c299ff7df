/** What a conversation looks like: a pure fold of events into messages. No DOM, no texts. */

import type { MediaType } from "../../server/protocol/attachments.ts";
import type { ConversationState, EndReason, FinishedToolCall, ToolApproval } from "../../server/protocol/chat.ts";
import type { ErrorCode } from "../../server/protocol/errors.ts";
import { unreachable } from "../../server/protocol/events.ts";
import type { RunEvent } from "../transport/transport.ts";

/** A file as the conversation shows it. Its bytes stay with the session as long as the message can be sent again. */
export interface SentFile {
  readonly name: string;
  readonly mediaType: MediaType;
  /** In bytes. */
  readonly size?: number | undefined;
  /** What is shown of an image of this page load. */
  readonly picture?: Blob | undefined;
}

/**
 * The state before a message. What a later state begins with is not kept twice: of a history, its length is enough. A
 * history whose files were left out meanwhile is used as it is now.
 */
export type StateSnapshot = Omit<ConversationState, "conversation_history"> & {
  readonly conversation_history?: number;
};

export interface UserMessage {
  readonly role: "user";
  readonly id: string;
  readonly text: string;
  readonly files: readonly SentFile[];
  /** What it was sent with; absent where that is not known. */
  readonly stateBefore?: StateSnapshot | undefined;
}

export interface AssistantMessage {
  readonly role: "assistant";
  readonly id: string;
  /** What the agent did and said, in the order in which it happened. */
  readonly blocks: readonly Block[];
  readonly status: "streaming" | "done" | "failed";
  readonly finishReason?: EndReason;
  readonly failure?: Failure;
  /** The agent no longer knows this answer and what came before it. */
  readonly forgotten?: boolean;
  readonly feedback?: Feedback | undefined;
  /** Id of its run, once that has ended: a rating names it. */
  readonly run?: string;
}

export type Message = UserMessage | AssistantMessage;

/** What was wrong with an answer. */
export type FeedbackReason = "incorrect" | "incomplete" | "off_topic" | "harmful";

/** What the person thinks of an answer. */
export interface Feedback {
  readonly rating: "up" | "down";
  readonly reason?: FeedbackReason;
  /** The person's own words. */
  readonly comment?: string;
}

export interface TextBlock {
  readonly type: "text";
  readonly text: string;
}

export interface ThinkingBlock {
  readonly type: "thinking";
  readonly text: string;
  readonly startedAt: number;
  /** Absent while the model is still thinking. */
  readonly endedAt?: number;
}

/** `stopped`: the run ended before the tool did. `waiting`: the call needs the person's approval. */
export type ToolStatus = "running" | "completed" | "failed" | "stopped" | "waiting";

export interface ToolBlock {
  readonly type: "tool";
  /** Pairs the call with its result: parallel calls finish in any order. */
  readonly callId: string;
  readonly tool: string;
  /** One complete JSON text, as the model wrote it. */
  readonly arguments: string;
  readonly status: ToolStatus;
  /** When it was called, in milliseconds. */
  readonly startedAt?: number;
  readonly output?: string;
  readonly durationMs?: number;
  /** Present where the call needed approval: what the person is asked. */
  readonly approval?: Pick<ToolApproval, "text" | "expires_at">;
}

export type Step = ThinkingBlock | ToolBlock;
export type Block = TextBlock | Step;

/** A code of the server, or of a connection that failed. */
export type FailureCode = ErrorCode | "connection_lost" | "unreachable" | "unreadable";

/** Why a run failed. Stored as a code, and translated while drawing. */
export interface Failure {
  readonly code: FailureCode;
  readonly retryable: boolean;
  /** The server's own sentence, if it said one. The text of the code stands in for an absent one. */
  readonly detail?: string;
  /** How the server's log names the run. */
  readonly reference?: string;
  /** When it failed, in milliseconds. */
  readonly at?: number;
  /** When the server takes a message again, in milliseconds, where it said so. */
  readonly retryAt?: number;
}

/** Why no message can be sent. `user_unknown`: the page does not say who its user is. */
export type Refusal = Omit<Failure, "code"> & { readonly code: FailureCode | "user_unknown" };

export function emptyAnswer(id: string): AssistantMessage {
  return { role: "assistant", id, blocks: [], status: "streaming" };
}

/** Adds one event to the answer. `now` dates the thinking, in milliseconds; `reference` names a run that fails. */
export function applyEvent(
  message: AssistantMessage,
  event: RunEvent,
  now: number,
  reference?: string,
): AssistantMessage {
  const { blocks } = message;
  switch (event.type) {
    case "token":
      return { ...message, blocks: appendText(endThinking(blocks, now), event.data) };
    case "thinking":
      return { ...message, blocks: appendThinking(blocks, event.data, now) };
    case "tool_call": {
      const { id: callId, tool, arguments: args } = event.data;
      const call = { type: "tool", callId, tool, arguments: args, status: "running", startedAt: now } as const;
      return { ...message, blocks: putTool(endThinking(blocks, now), call) };
    }
    case "tool_approval": {
      const { id: callId, tool, arguments: args, text, expires_at } = event.data;
      const approval = { text, expires_at };
      const call = { type: "tool", callId, tool, arguments: args, status: "waiting", approval } as const;
      return { ...message, blocks: putTool(endThinking(blocks, now), call) };
    }
    case "tool_result":
      return { ...message, blocks: putResult(blocks, event.data) };
    case "done": {
      const ended = appendFinalOutput(endAll(blocks, now), event.data);
      return { ...message, blocks: ended, status: "done", finishReason: event.finish_reason };
    }
    case "error": {
      const { code, retryable, data: detail, retry_after: seconds } = event;
      const retryAt = seconds && now + seconds * 1_000;
      const known = { ...(detail && { detail }), ...(reference && { reference }), ...(retryAt && { retryAt }) };
      return failAnswer(message, { code, retryable, ...known }, now);
    }
    default:
      return unreachable(event);
  }
}

/** Ends the answer with a failure; the text so far stays. */
export function failAnswer(message: AssistantMessage, failure: Failure, now: number): AssistantMessage {
  return { ...message, blocks: endAll(message.blocks, now), status: "failed", failure: { ...failure, at: now } };
}

/** Ends an answer that the person stopped, where no terminal event says so. */
export function stopAnswer(message: AssistantMessage, now: number): AssistantMessage {
  return { ...message, blocks: endAll(message.blocks, now), status: "done", finishReason: "stopped" };
}

/**
 * To be applied when the person stops the run, or sends a message in place of a decision: a tool that breaks off then
 * has not failed. One that is quicker is completed.
 */
export function stopTools(message: AssistantMessage): AssistantMessage {
  return { ...message, blocks: endTools(message.blocks, ["running", "waiting"]) };
}

/** Everything that the agent said, as Markdown. */
export function answerText({ blocks }: AssistantMessage): string {
  return blocks.flatMap((block) => (block.type === "text" ? [block.text.trim()] : [])).join("\n\n");
}

/** The calls that wait for the person's approval. */
export function waitingCalls({ blocks }: AssistantMessage): readonly ToolBlock[] {
  return blocks.filter((block) => block.type === "tool").filter(({ status }) => status === "waiting");
}

/** A message of the person with its answer. A conversation that was cut may begin with an answer. */
export interface Exchange {
  readonly id: string;
  /** The place of its first message in the conversation. */
  readonly first: number;
  readonly messages: readonly Message[];
}

export function exchangesOf(messages: readonly Message[]): readonly Exchange[] {
  const exchanges: { id: string; first: number; messages: Message[] }[] = [];
  messages.forEach((message, first) => {
    const exchange = exchanges.at(-1);
    if (exchange && message.role !== "user") exchange.messages.push(message);
    else exchanges.push({ id: message.id, first, messages: [message] });
  });
  return exchanges;
}

function appendText(blocks: readonly Block[], text: string): readonly Block[] {
  const last = blocks.at(-1);
  if (last?.type === "text") return blocks.with(-1, { ...last, text: last.text + text });
  return [...blocks, { type: "text", text }];
}

function appendThinking(blocks: readonly Block[], text: string, now: number): readonly Block[] {
  const last = blocks.at(-1);
  if (isThinking(last)) return blocks.with(-1, { ...last, text: last.text + text });
  // The server learned afterwards that what it sent as the answer was thinking, and says all of it again as that.
  const before = last?.type === "text" && last.text === text ? blocks.slice(0, -1) : blocks;
  return [...before, { type: "thinking", text, startedAt: now }];
}

/** A call has one row: an approved one goes on in the row in which it waited. */
function putTool(blocks: readonly Block[], call: ToolBlock): readonly Block[] {
  const index = blocks.findIndex((block) => isCall(block, call.callId) && block.approval !== undefined);
  return index === -1 ? [...blocks, call] : blocks.with(index, { ...blocks[index], ...call });
}

function putResult(blocks: readonly Block[], result: FinishedToolCall): readonly Block[] {
  const { id: callId, tool, output, status, duration_ms: durationMs } = result;
  const index = blocks.findIndex((block) => isCall(block, callId));
  const call = blocks[index] as ToolBlock | undefined;
  // The call was lost, for example in an event of a kind that this version does not know: the result still has its row.
  if (!call) return [...blocks, { type: "tool", callId, tool, arguments: "", output, status, durationMs }];
  const wasStopped = call.status === "stopped" && status === "failed";
  return blocks.with(index, { ...call, output, durationMs, status: wasStopped ? "stopped" : status });
}

function isCall(block: Block, callId: string): block is ToolBlock {
  return block.type === "tool" && block.callId === callId;
}

/** Whether the model is still thinking. */
function isThinking(block: Block | undefined): block is ThinkingBlock {
  return block?.type === "thinking" && block.endedAt === undefined;
}

/** Ends the thinking that another kind of event follows. */
function endThinking(blocks: readonly Block[], now: number): readonly Block[] {
  const last = blocks.at(-1);
  return isThinking(last) ? blocks.with(-1, { ...last, endedAt: now }) : blocks;
}

function endTools(blocks: readonly Block[], open: readonly ToolStatus[]): readonly Block[] {
  return blocks.map((block) =>
    block.type === "tool" && open.includes(block.status) ? { ...block, status: "stopped" } : block,
  );
}

function endAll(blocks: readonly Block[], now: number): readonly Block[] {
  return endTools(endThinking(blocks, now), ["running"]);
}

/**
 * `done` repeats the text of the last model request. It was streamed already, as one block or as several with thinking
 * between; only a provider that does not stream, or a server that corrects the text, leaves something to add.
 */
function appendFinalOutput(blocks: readonly Block[], output: string): readonly Block[] {
  const texts = blocks.flatMap((block) => (block.type === "text" ? [block.text] : []));
  const wasStreamed = texts.some((_, index) => texts.slice(index).join("") === output);
  if (output === "" || wasStreamed) return blocks;
  const afterLastTool = blocks.findLastIndex((block) => block.type === "tool") + 1;
  const kept = blocks.filter((block, index) => index < afterLastTool || block.type !== "text");
  return [...kept, { type: "text", text: output }];
}
