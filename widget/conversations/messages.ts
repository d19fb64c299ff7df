/** The messages of a conversation: a pure fold of a run's events. No DOM, no translated texts. */

import type { FileType } from "../../server/protocol/attachments.ts";
import {
  type ApprovalDecision,
  FINISH_REASONS,
  type FinishReason,
  type ToolApproval,
  type ToolText,
} from "../../server/protocol/chat.ts";
import type { ArgumentProblem, ErrorCode } from "../../server/protocol/errors.ts";
import { type ErrorEvent, unreachable } from "../../server/protocol/events.ts";
import type { SourceEvent } from "../../server/protocol/sources.ts";
import type { ReceivedResult, RunEvent, StartRequest, ToolImage } from "../transport/transport.ts";

/** A file as the conversation shows it. Its bytes stay with the session as long as the message can be sent again. */
export interface SentFile {
  readonly name: string;
  readonly mediaType: FileType;
  /** In bytes. */
  readonly size?: number | undefined;
  /** The size of an image, in pixels. */
  readonly width?: number | undefined;
  readonly height?: number | undefined;
  /** The image as it is shown. */
  readonly picture?: Blob | undefined;
  /** Whether the browser stores its data. Until that is read, its space is reserved. */
  readonly isKept?: boolean;
}

interface Placed {
  readonly id: string;
  /** Id of the message that it follows, or answers; absent at the beginning. */
  readonly parent?: string | undefined;
}

export interface UserMessage extends Placed {
  readonly role: "user";
  readonly text: string;
  readonly files: readonly SentFile[];
  /** When it was sent, in milliseconds. */
  readonly at?: number;
  /** Ids of the queued messages that it was made of: they are not sent again. */
  readonly queued?: readonly string[] | undefined;
}

export interface AssistantMessage extends Placed {
  readonly role: "assistant";
  /** What the agent did and said, in the order in which it happened. */
  readonly blocks: readonly Block[];
  readonly status: "streaming" | "done" | "failed";
  readonly finishReason?: FinishReason;
  /** When it ended, in milliseconds. */
  readonly at?: number;
  /** Messages that the agent suggests to send next. */
  readonly suggestions?: readonly string[] | undefined;
  readonly failure?: Failure;
  /** The agent no longer knows this answer and what came before it. */
  readonly forgotten?: boolean;
  readonly feedback?: Feedback | undefined;
  /** Id of its run, once that has ended; a rating refers to it. */
  readonly run?: string;
  /** What the answer continues with, in place of a message: sent now, or to be sent again after a failure. */
  readonly goesOn?: GoingOn | undefined;
  /** Number of its blocks when it was last continued. */
  readonly kept?: number;
  /** Length of its text at the last tool event or continuation: positions of sources count from there. */
  readonly from?: number;
}

/** What the page has added. The agent knows nothing of it. */
export interface PageMessage extends Placed {
  readonly role: "page";
  /** Markdown. */
  readonly text: string;
  /** The name of its author; absent if that is the agent. */
  readonly name?: string | undefined;
  /** When it was added, in milliseconds. */
  readonly at: number;
}

/** Maximum number of steps shown for one call, and of their nesting: a server sends no more. */
const MAX_STEPS = 200;
const MAX_LEVELS = 3;

/** What continues an answer, in place of a message. */
export type GoingOn = Pick<StartRequest, "approvals" | "continue">;

export type Message = UserMessage | AssistantMessage | PageMessage;

/** What was wrong with an answer. */
export type FeedbackReason = "incorrect" | "incomplete" | "off_topic" | "harmful";

/** The user's opinion of an answer. */
export interface Feedback {
  readonly rating: "up" | "down";
  readonly reason?: FeedbackReason;
  /** The user's own words. */
  readonly comment?: string;
}

interface Sourced {
  /**
   * The sources of the answer that arrived after this block. Unlike in the event, `at` counts in the text of all
   * blocks. Nothing has been validated: that happens where they are shown.
   */
  readonly sources?: readonly SourceEvent["data"][];
}

export interface TextBlock extends Sourced {
  readonly type: "text";
  readonly text: string;
  /** Whether it continues the text before it, which was cut off. See `joinedBlocks`. */
  readonly continues?: boolean;
}

export interface ThinkingBlock extends Sourced {
  readonly type: "thinking";
  readonly text: string;
  readonly startedAt: number;
  /** Absent while the model is still thinking. */
  readonly endedAt?: number;
}

/** `stopped`: the run ended before the tool did. `waiting`: the call needs the user's approval. */
export type ToolStatus = "running" | "completed" | "failed" | "stopped" | "waiting";

export interface ToolBlock extends Sourced {
  readonly type: "tool";
  /** Pairs the call with its result: parallel calls finish in any order. */
  readonly callId: string;
  readonly tool: string;
  /** What people read in place of the name: a text, or texts by language. */
  readonly title?: ToolText | undefined;
  /** One complete JSON text, as the model wrote it. */
  readonly arguments: string;
  readonly status: ToolStatus;
  /** When it was called, in milliseconds. */
  readonly startedAt?: number;
  readonly output?: string;
  /** Pictures of the result. The browser keeps their data beside the conversation. */
  readonly images?: readonly ToolImage[] | undefined;
  /** Number of further pictures that only the agent has. */
  readonly imagesOmitted?: number | undefined;
  readonly durationMs?: number;
  /** Present if the call needed approval: what the user is asked. */
  readonly approval?: Pick<ToolApproval, "text" | "expires_at" | "danger" | "editable" | "schema" | "question">;
  /** When the user was asked, in milliseconds; absent if the server has said that this is too long ago. */
  readonly askedAt?: number | undefined;
  /** The user's decision. It is sent when all waiting calls have one. */
  readonly decision?: Omit<ApprovalDecision, "id"> | undefined;
  /** When the decision was sent, in milliseconds. */
  readonly decidedAt?: number;
  /** Arguments as changed by the user, which the server has refused. */
  readonly refused?: string | undefined;
  /** Why the server refused them: its list of problems, not validated. */
  readonly problems?: readonly ArgumentProblem[] | undefined;
  /** The tool's last progress report: one line. */
  readonly progress?: string;
  /** Calls that were made within it. */
  readonly steps?: readonly ToolBlock[] | undefined;
}

export type Step = ThinkingBlock | ToolBlock;
export type Block = TextBlock | Step;

/** A code of the server, or of a connection that failed. */
export type FailureCode = ErrorCode | "connection_lost" | "unreachable" | "unreadable";

/** Why a run failed. Stored as a code, and translated while drawing. */
export interface Failure {
  readonly code: FailureCode;
  readonly retryable: boolean;
  /** The server's own message, if any; otherwise the text for the code is shown. */
  readonly detail?: string;
  /** How the server's log names the run. */
  readonly reference?: string;
  /** When it failed, in milliseconds. */
  readonly at?: number;
  /** When the server accepts a message again, in milliseconds, if it said so. */
  readonly retryAt?: number;
}

/** The codes of failures that only the owner of the server's log can explain. */
export const IN_THE_LOG = /^(internal|provider_)/;

/** Why no message can be sent. `user_unknown`: the page does not say who its user is. */
export type Refusal = Omit<Failure, "code"> & { readonly code: FailureCode | "user_unknown" };

export function emptyAnswer(id: string, parent?: string): AssistantMessage {
  return { role: "assistant", id, parent, blocks: [], status: "streaming" };
}

/** Adds one event to the answer. `now` is its time, in milliseconds; `reference` names a run that fails. */
export function applyEvent(
  message: AssistantMessage,
  event: RunEvent,
  now: number,
  reference?: string,
): AssistantMessage {
  const { blocks } = message;
  const parted = { ...message, from: textLength(blocks) };
  switch (event.type) {
    case "token":
      return { ...message, blocks: appendText(endThinking(blocks, now), event.data, message) };
    case "thinking":
      return { ...message, blocks: appendThinking(blocks, event.data, now) };
    case "tool_call": {
      const { id: callId, arguments: args, tool, title, parent } = event.data;
      const call = { type: "tool", callId, tool, title, arguments: args, status: "running", startedAt: now } as const;
      // A tool that was approved runs again and repeats its steps: they replace the earlier ones.
      const stepsOf = ({ steps = [] }: ToolBlock) => steps.filter((step) => step.callId !== callId);
      const withStep = changeCall(blocks, parent, (it, level, root) =>
        level < MAX_LEVELS && countSteps(root) < MAX_STEPS ? { ...it, steps: [...stepsOf(it), call] } : it,
      );
      return { ...parted, blocks: parent ? withStep : putTool(endThinking(blocks, now), call) };
    }
    case "tool_progress": {
      const { id, text: progress } = event.data;
      return { ...message, blocks: changeCall(blocks, id, (it) => ({ ...it, progress })) };
    }
    case "tool_approval": {
      const { id: callId, tool, title, arguments: args, ...approval } = event.data;
      const asked = { status: "waiting", approval, askedAt: now } as const;
      const call = { type: "tool", callId, tool, title, arguments: args, ...asked } as const;
      return { ...parted, blocks: putTool(endThinking(blocks, now), call) };
    }
    case "source": {
      const { at, ...source } = event.data;
      const placed = at === undefined ? source : { ...source, at: at + (message.from ?? 0) };
      const known = blocks.length > 0 ? blocks : appendText(blocks, "", message);
      const last = known.at(-1) as Block;
      return { ...message, blocks: known.with(-1, { ...last, sources: [...(last.sources ?? []), placed] }) };
    }
    case "tool_result":
      return { ...parted, blocks: putResult(blocks, event.data) };
    case "done": {
      const ended = appendFinalOutput(endAll(blocks, now), event.data, message);
      const { finish_reason: finishReason, suggestions } = event;
      return { ...message, blocks: ended, status: "done", finishReason, suggestions, at: now, goesOn: undefined };
    }
    case "error": {
      const { code, data: detail, retry_after: seconds } = event;
      const retryable = event.retryable || event.continue === true;
      const retryAt = seconds && now + seconds * 1_000;
      const known = { ...(detail && { detail }), ...(reference && { reference }), ...(retryAt && { retryAt }) };
      const failed = failAnswer(message, { code, retryable, ...known }, now);
      const goesOn = event.continue ? { continue: true as const } : retryable ? message.goesOn : undefined;
      return {
        ...failed,
        goesOn,
        blocks: message.goesOn?.approvals
          ? takeBack(failed.blocks, event, message.goesOn.approvals, now)
          : failed.blocks,
      };
    }
    default:
      return unreachable(event);
  }
}

/** Ends the answer with a failure; the text so far stays. Calls of an incomplete answer cannot be decided about. */
export function failAnswer(message: AssistantMessage, failure: Failure, now: number): AssistantMessage {
  const { blocks } = stopTools({ ...message, blocks: endThinking(message.blocks, now) });
  return { ...message, blocks, status: "failed", failure: { ...failure, at: now }, at: now };
}

/** Ends an answer that the user stopped, if no terminal event does so. */
export function stopAnswer(message: AssistantMessage, now: number): AssistantMessage {
  const blocks = endAll(message.blocks, now);
  return { ...message, blocks, status: "done", finishReason: "stopped", at: now, goesOn: undefined };
}

/**
 * Removes decisions that the server has refused: others may have been made in their place, or they have to be
 * corrected. Calls that were asked about too long ago can no longer be decided.
 */
function takeBack(
  blocks: readonly Block[],
  { code, param, problems }: ErrorEvent,
  decisions: readonly ApprovalDecision[],
  now: number,
): readonly Block[] {
  if (!/^(approval_|invalid_request$)/.test(code)) return blocks;
  const status = code === "approval_used" ? "stopped" : "waiting";
  const late = code === "approval_expired" && { expires_at: new Date(now).toISOString() };
  return mapCalls(blocks, (call) => {
    const { approval, decision, output } = call;
    if (!approval || !decision || output !== undefined) return call;
    const askedAt = late ? undefined : call.askedAt;
    const refused = decision.arguments;
    const why = decisions[Number(`${param}`.split("/")[2])]?.id === call.callId ? problems : undefined;
    return {
      ...call,
      status,
      decision: undefined,
      refused,
      problems: why,
      askedAt,
      approval: { ...approval, ...late },
    };
  });
}

/** Reopens an answer that is continued: approved calls are running from now on, declined ones have failed. */
export function reopenAnswer(message: AssistantMessage, goesOn: GoingOn, now: number): AssistantMessage {
  const { finishReason, failure, run: _, suggestions: __, kept = 0, ...rest } = message;
  // After a failure, the model repeats what followed its last call; at the limit of turns, nothing follows that.
  const lastCall = rest.blocks.findLastIndex(({ type }) => type === "tool");
  const isSaidAgain = failure || finishReason === "max_turns";
  const blocks = isSaidAgain ? rest.blocks.slice(0, Math.max(kept, lastCall + 1)) : rest.blocks;
  const reopened = mapCalls(blocks, (call) => {
    const decision = goesOn.approvals?.find(({ id }) => id === call.callId);
    return decision ? { ...call, decision, decidedAt: now, status: decision.approved ? "running" : "failed" } : call;
  });
  return { ...rest, blocks: reopened, status: "streaming", goesOn, kept: reopened.length, from: textLength(reopened) };
}

/** The answer with the user's decision about one of its calls. */
export function markCall(message: AssistantMessage, callId: string, decision: ToolBlock["decision"]): AssistantMessage {
  const blocks = mapCalls(message.blocks, (call) => (call.callId === callId ? { ...call, decision } : call));
  return { ...message, blocks };
}

/** The answer with all its waiting calls undecided again. */
export function withoutDecisions(message: AssistantMessage): AssistantMessage {
  return waitingCalls(message).reduce((answer, { callId }) => markCall(answer, callId, undefined), message);
}

/** Whether the answer was cut off, and the server knows where. */
export function isCut({ status, finishReason, blocks, run }: AssistantMessage): boolean {
  return status === "done" && run !== undefined && blocks.length > 0 && FINISH_REASONS[finishReason ?? "stop"];
}

/**
 * To be applied when the user stops the run, or sends a message instead of a decision: a tool that is interrupted then
 * is `stopped`, not `failed`. One that ends sooner is `completed`.
 */
export function stopTools(message: AssistantMessage): AssistantMessage {
  return { ...message, blocks: endTools(message.blocks, ["running", "waiting"]) };
}

/** To be applied when a message that was sent instead of decisions is withdrawn: the calls wait again. */
export function askAgain(message: AssistantMessage): AssistantMessage {
  if (message.finishReason !== "approval_required") return message;
  const blocks = mapCalls(message.blocks, (call) =>
    call.approval && !call.decision && call.status === "stopped" ? { ...call, status: "waiting" } : call,
  );
  return { ...message, blocks };
}

/** Everything that the agent said, as Markdown. */
export function answerText({ blocks }: AssistantMessage): string {
  return joinedBlocks(blocks)
    .flatMap((block) => (block.type === "text" ? [block.text.trim()] : []))
    .join("\n\n");
}

/** The sources of the answer, once for each place that they belong to. */
export const sourcesIn = ({ blocks }: Pick<AssistantMessage, "blocks">): readonly SourceEvent["data"][] =>
  blocks.flatMap(({ sources = [] }) => sources);

/** The text of a message, as Markdown. */
export function textOf(message: Message): string {
  return message.role === "assistant" ? answerText(message) : message.text;
}

/** The blocks as they are shown: a text that was cut off is joined with its continuation. */
export function joinedBlocks(blocks: readonly Block[]): readonly Block[] {
  if (!blocks.some((block) => block.type === "text" && block.continues)) return blocks;
  const joined: Block[] = [];
  for (const block of blocks) {
    const at = joined.findLastIndex(({ type }) => type === "text");
    const before = joined[at];
    if (before?.type !== "text" || block.type !== "text" || !block.continues) joined.push(block);
    else joined[at] = { ...before, text: before.text + continuationOf(before.text, block.text) };
  }
  return joined;
}

/** Models often reopen a code block that was cut off. In Markdown that would close it: the second fence is removed. */
function continuationOf(before: string, after: string): string {
  const fences = before.match(/^[^\S\n]*(```|~~~).*/gm) ?? [];
  if (fences.length % 2 === 0) return after;
  const hasLanguage = /[^`~\s]/.test(fences.at(-1) ?? "");
  return after.replace(hasLanguage ? /^\s*(```|~~~).*[^`~\s].*\n?/ : /^\s*(```|~~~).*\n?/, "");
}

export function toolCalls({ blocks }: Pick<AssistantMessage, "blocks">): readonly ToolBlock[] {
  return blocks.filter((block) => block.type === "tool");
}

/** The calls that wait for the user's approval. */
export function waitingCalls(answer: Pick<AssistantMessage, "blocks">): readonly ToolBlock[] {
  return toolCalls(answer).filter(({ status }) => status === "waiting");
}

/** What the user is asked about waiting calls. */
export function questionsOf(calls: readonly ToolBlock[], between = " "): string {
  return calls.map(({ tool, approval }) => approval?.text || tool).join(between);
}

/** A message of the user with its answer and messages of the page. The first one may have no message of the user. */
export interface Exchange {
  readonly id: string;
  /** The index of its first message in the conversation. */
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

function appendText(blocks: readonly Block[], text: string, { kept = 0, goesOn }: AssistantMessage): readonly Block[] {
  const last = blocks.at(-1);
  if (last?.type === "text" && blocks.length > kept) return blocks.with(-1, { ...last, text: last.text + text });
  const before = blocks.findLastIndex(({ type }) => type !== "thinking");
  const continues = goesOn?.continue && before < kept && blocks[before]?.type === "text";
  return [...blocks, { type: "text", text, ...(continues && { continues }) }];
}

function appendThinking(blocks: readonly Block[], text: string, now: number): readonly Block[] {
  const last = blocks.at(-1);
  if (isThinking(last)) return blocks.with(-1, { ...last, text: last.text + text });
  // The server noticed late that the text it sent was thinking, and sends all of it again as thinking.
  const before = last?.type === "text" && last.text === text ? blocks.slice(0, -1) : blocks;
  return [...before, { type: "thinking", text, startedAt: now }];
}

/** A call keeps one row: an approved one runs in the row where it waited, and one that needs approval late waits in its row. */
function putTool(blocks: readonly Block[], call: ToolBlock): readonly Block[] {
  const goesOn = (block: Block) => isCall(block, call.callId) && (block.approval ?? call.approval) !== undefined;
  const index = blocks.findIndex(goesOn);
  return index === -1 ? [...blocks, call] : blocks.with(index, { ...blocks[index], ...call });
}

function putResult(blocks: readonly Block[], result: ReceivedResult["data"]): readonly Block[] {
  const { id: callId, declined, status, duration_ms: durationMs, ...shown } = result;
  const ended = changeCall(blocks, callId, (call) => {
    const wasStopped = call.status === "stopped" && status === "failed";
    return { ...call, title: undefined, ...shown, durationMs, status: wasStopped ? "stopped" : status };
  });
  // The call is missing, for example if its event was of a kind that this version does not know: the result gets a row.
  if (ended !== blocks || declined || result.parent) return ended;
  return [...blocks, { type: "tool", callId, arguments: "", ...shown, status, durationMs }];
}

function isCall(block: Block, callId: string): block is ToolBlock {
  return block.type === "tool" && block.callId === callId;
}

/** Whether the model is still thinking. */
function isThinking(block: Block | undefined): block is ThinkingBlock {
  return block?.type === "thinking" && block.endedAt === undefined;
}

/** Ends the thinking when another kind of event follows. */
function endThinking(blocks: readonly Block[], now: number): readonly Block[] {
  const last = blocks.at(-1);
  return isThinking(last) ? blocks.with(-1, { ...last, endedAt: now }) : blocks;
}

function endTools(blocks: readonly Block[], open: readonly ToolStatus[]): readonly Block[] {
  // A decision about a waiting call was not sent.
  return mapCalls(blocks, (call) =>
    open.includes(call.status)
      ? { ...call, status: "stopped", decision: call.status === "waiting" ? undefined : call.decision }
      : call,
  );
}

/** Changes calls and their steps. */
function mapCalls<It extends Block>(blocks: readonly It[], change: (call: ToolBlock) => ToolBlock): readonly It[] {
  return blocks.map((block: Block) => {
    if (block.type !== "tool") return block;
    return change(block.steps ? { ...block, steps: mapCalls(block.steps, change) } : block);
  }) as unknown as readonly It[];
}

const textLength = (blocks: readonly Block[]): number =>
  blocks.reduce((sum, it) => (it.type === "text" ? sum + it.text.length : sum), 0);

const countSteps = ({ steps = [] }: ToolBlock): number => steps.reduce((sum, it) => sum + 1 + countSteps(it), 0);

/** Changes the last call or step with this id, as some models use an id again. Without one, returns the same list. */
function changeCall<It extends Block>(
  blocks: readonly It[],
  id: string | undefined,
  change: (call: ToolBlock, level: number, root: ToolBlock) => ToolBlock,
  level = 0,
  outer?: ToolBlock,
): readonly It[] {
  const has = (block: Block): unknown => block.type === "tool" && (block.callId === id || block.steps?.some(has));
  const index = blocks.findLastIndex(has);
  const call = blocks[index] as unknown as ToolBlock | undefined;
  if (!call) return blocks;
  const { steps = [] } = call;
  const root = outer ?? call;
  const changed =
    call.callId === id ? change(call, level, root) : { ...call, steps: changeCall(steps, id, change, level + 1, root) };
  return blocks.with(index, changed as unknown as It);
}

function endAll(blocks: readonly Block[], now: number): readonly Block[] {
  return endTools(endThinking(blocks, now), ["running"]);
}

/**
 * `done` repeats the text of the last model request. It was streamed already, as one block or as several with thinking
 * between; only a provider that does not stream, or a server that corrects the text, leaves something to add.
 */
function appendFinalOutput(blocks: readonly Block[], output: string, message: AssistantMessage): readonly Block[] {
  const { kept = 0 } = message;
  const texts = blocks.slice(kept).flatMap((block) => (block.type === "text" ? [block.text] : []));
  const wasStreamed = texts.some((_, index) => texts.slice(index).join("") === output);
  // The questions to the user are shown with the waiting calls.
  const questions = questionsOf(waitingCalls({ blocks }), "\n");
  // If a tool is not shown, only empty lines separate the text before and after it.
  const isPart = wasStreamed || texts.at(-1)?.endsWith(`\n\n${output}`);
  if (output === "" || isPart || output === questions) return blocks;
  const first = Math.max(kept, blocks.findLastIndex(({ type }) => type === "tool") + 1);
  return appendText(
    blocks.filter(({ type }, index) => index < first || type !== "text"),
    output,
    message,
  );
}
