/** What the conversation looks like: a pure fold of events into messages, without a DOM. */

import type { MediaType } from "../server/protocol/attachments.ts";
import type { FinishReason } from "../server/protocol/chat.ts";
import type { ErrorCode } from "../server/protocol/errors.ts";
import { type StreamEvent, unreachable } from "../server/protocol/events.ts";

/** A file as the transcript shows it: an object URL for images, never the bytes. */
export interface SentFile {
  readonly name: string;
  readonly mediaType: MediaType;
  /** In bytes. */
  readonly size?: number | undefined;
  readonly url?: string | undefined;
}

/** What the person said. */
export interface Question {
  readonly role: "user";
  readonly id: string;
  readonly text: string;
  readonly files: readonly SentFile[];
}

/** What the agent did and said, in the order in which it happened. */
export interface Reply {
  readonly role: "assistant";
  readonly id: string;
  readonly blocks: readonly Block[];
  readonly status: "streaming" | "done" | "failed";
  readonly finishReason?: FinishReason;
  readonly failure?: Failure;
  /** The agent no longer knows this answer and what came before it. */
  readonly forgotten?: boolean;
  readonly feedback?: Feedback | undefined;
}

export type Message = Question | Reply;

/** Why an answer is a bad one, of a list that is shown. */
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
  readonly id: string;
  readonly text: string;
}

export interface ThinkingBlock {
  readonly type: "thinking";
  readonly id: string;
  readonly text: string;
  readonly startedAt: number;
  /** Absent while the model is still thinking. */
  readonly endedAt?: number;
}

export interface ToolBlock {
  readonly type: "tool";
  readonly id: string;
  /** The `id` of the `tool_call` and `tool_result` events. */
  readonly callId: string;
  readonly tool: string;
  readonly arguments: string;
  /** `stopped`: the run ended before the tool did. */
  readonly status: "running" | "completed" | "failed" | "stopped";
  readonly output?: string;
  readonly durationMs?: number;
}

export type Block = TextBlock | ThinkingBlock | ToolBlock;

/** Why a run failed: a code of the server, or one of ours for a line that failed. */
export interface Failure {
  readonly code: ErrorCode | "connection_lost" | "unreachable" | "unreadable";
  readonly message: string;
  readonly retryable: boolean;
  /** What the server's log calls the run, for whoever looks there. */
  readonly reference?: string;
}

export function emptyReply(id: string): Reply {
  return { role: "assistant", id, blocks: [], status: "streaming" };
}

/** Adds what one event says. `now` in milliseconds dates the thinking; `reference` names the run, should it fail. */
export function applyEvent(reply: Reply, event: StreamEvent, now: number, reference?: string): Reply {
  switch (event.type) {
    case "token":
      return { ...reply, blocks: addText(settle(reply.blocks, now), reply.id, event.data) };
    case "thinking":
      return { ...reply, blocks: addThinking(reply, event.data, now) };
    case "tool_call": {
      const { id: callId, tool, arguments: args } = event.data;
      const blocks = settle(reply.blocks, now);
      const id = blockId(reply.id, blocks);
      const call: ToolBlock = {
        type: "tool",
        id,
        callId,
        tool,
        arguments: args,
        status: "running",
      };
      return { ...reply, blocks: [...blocks, call] };
    }
    case "tool_result":
      return { ...reply, blocks: addResult(reply, event.data) };
    case "done": {
      const blocks = addFinalOutput(endAll(reply.blocks, now), reply.id, event.data);
      return { ...reply, blocks, status: "done", finishReason: event.finish_reason };
    }
    case "error": {
      const { code, data: message, retryable } = event;
      const failure = { code, message, retryable, ...(reference && { reference }) };
      return failReply(reply, failure, now);
    }
    default:
      return unreachable(event);
  }
}

/** Ends a reply with a failure; what was said so far stays. */
export function failReply(reply: Reply, failure: Failure, now: number): Reply {
  return { ...reply, blocks: endAll(reply.blocks, now), status: "failed", failure };
}

/** The person stops the run: a tool that then breaks off has not failed. One that is quicker is completed. */
export function stopTools(reply: Reply): Reply {
  return { ...reply, blocks: endTools(reply.blocks) };
}

/** Ends a reply that the person stopped on a transport that then says no more. */
export function stopReply(reply: Reply, now: number): Reply {
  const blocks = endAll(reply.blocks, now);
  return { ...reply, blocks, status: "done", finishReason: "stopped" };
}

export function filesOf(message: Message): readonly SentFile[] {
  return message.role === "user" ? message.files : [];
}

/** Everything that the agent said, as Markdown. */
export function replyText(reply: Reply): string {
  return reply.blocks.flatMap((block) => (block.type === "text" ? [block.text.trim()] : [])).join("\n\n");
}

function blockId(replyId: string, blocks: readonly Block[]): string {
  return `${replyId}.${blocks.length}`;
}

function addText(blocks: readonly Block[], replyId: string, text: string): readonly Block[] {
  const last = blocks.at(-1);
  if (last?.type === "text") return [...blocks.slice(0, -1), { ...last, text: last.text + text }];
  return [...blocks, { type: "text", id: blockId(replyId, blocks), text }];
}

function addThinking(reply: Reply, text: string, now: number): readonly Block[] {
  const { blocks } = reply;
  const last = blocks.at(-1);
  if (last?.type === "thinking" && last.endedAt === undefined) {
    return [...blocks.slice(0, -1), { ...last, text: last.text + text }];
  }
  return [...blocks, { type: "thinking", id: blockId(reply.id, blocks), text, startedAt: now }];
}

function addResult(
  reply: Reply,
  { id, tool, output, status, duration_ms }: Extract<StreamEvent, { type: "tool_result" }>["data"],
): readonly Block[] {
  const { blocks } = reply;
  const result = { status, output, durationMs: duration_ms };
  const known = blocks.some((block) => block.type === "tool" && block.callId === id);
  if (known) {
    return blocks.map((block) => {
      if (block.type !== "tool" || block.callId !== id) return block;
      const stopped = block.status === "stopped" && status === "failed";
      return { ...block, ...result, ...(stopped && { status: "stopped" }) };
    });
  }
  const blockIdOfResult = blockId(reply.id, blocks);
  const row = { type: "tool", id: blockIdOfResult, callId: id, tool, arguments: "" } as const;
  return [...blocks, { ...row, ...result }];
}

/** Ends the thinking that another kind of event follows. */
function settle(blocks: readonly Block[], now: number): readonly Block[] {
  const last = blocks.at(-1);
  if (last?.type !== "thinking" || last.endedAt !== undefined) return blocks;
  return [...blocks.slice(0, -1), { ...last, endedAt: now }];
}

function endAll(blocks: readonly Block[], now: number): readonly Block[] {
  return endTools(settle(blocks, now));
}

function endTools(blocks: readonly Block[]): readonly Block[] {
  return blocks.map((block) =>
    block.type === "tool" && block.status === "running" ? { ...block, status: "stopped" } : block,
  );
}

/**
 * `done` carries the text of the last model turn. It was streamed already, as one block or as several
 * with thinking between; only a provider that did not stream it leaves something to add.
 */
function addFinalOutput(blocks: readonly Block[], replyId: string, output: string): readonly Block[] {
  const texts = blocks.filter((block) => block.type === "text").map((block) => block.text);
  const streamed = texts.some((_, index) => texts.slice(index).join("") === output);
  if (output === "" || streamed) return blocks;
  const afterLastTool = blocks.findLastIndex((block) => block.type === "tool") + 1;
  const kept = blocks.filter((block, index) => index < afterLastTool || block.type !== "text");
  return [...kept, { type: "text", id: blockId(replyId, kept), text: output }];
}
