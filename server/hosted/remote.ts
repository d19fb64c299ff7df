/** Agents behind HTTP, in any language: what a project imports as `agUi` and `responses`. */

import {
  isAgentObject,
  messagesUntilAsked,
  type OwnRun,
  type RunAttachment,
  type RunFunction,
  type RunInput,
} from "../agent/run-function.ts";
import { AgentNotice, ConfigError } from "../errors.ts";
import type { AssistantMessage, DecidedCall } from "../protocol/chat.ts";
import { asString, isRecord, records, tryParse } from "../protocol/json.ts";
import { UpstreamFailure, UpstreamTruncation } from "../providers/failures.ts";
import { CostlyPatch, PatchedDocument } from "./json-patch.ts";

export interface RemoteOptions {
  /** Sent with each request, such as `authorization`. */
  headers?: Record<string, string>;
}

const ADDRESS = Symbol("address");

/** What answers in a model's place, in words for the operator. */
export function wordsOfRun({ run }: OwnRun): string {
  if (isAgentObject(run)) return "an agent of the AI SDK answers";
  return (run as { [ADDRESS]?: string })[ADDRESS] ?? "the agent's run answers";
}

/** Says where the agent is, without what may be secret in its address. */
function at(url: string, protocol: string, run: RunFunction): RunFunction {
  const { origin, pathname } = new URL(url);
  return Object.assign(run, { [ADDRESS]: `the agent at ${origin}${pathname} answers, by ${protocol}` });
}

/** The `run` of an agent that speaks AG-UI at this address. */
export function agUi(url: string, { headers = {} }: RemoteOptions = {}): RunFunction {
  checkUrl("agUi", url);
  return at(url, "AG-UI", async function* (input) {
    const { message, messages, attachments, state, ctx, signal } = input;
    const own = new PatchedDocument(state ?? {});
    const { approvals } = ctx;
    const all = approvals.length === 0 ? messages : [...messagesUntilAsked(input), ...exchangeOf(input)];
    const sent = all.map((one, index) => ({ id: `${ctx.conversation}-${index}`, ...one }));
    const last = sent.at(-1);
    const body = {
      threadId: ctx.conversation,
      runId: ctx.run.id,
      state: own.document,
      messages:
        attachments.length === 0 || last === undefined
          ? sent
          : [...sent.slice(0, -1), { ...last, content: [...textParts(message, "text"), ...attachments.map(agUiPart)] }],
      tools: [],
      context: [],
      forwardedProps: {},
      ...(isResumed(input) ? { resume: approvals.map(resumeEntry) } : {}),
    };
    for await (const event of await posted(url, body, headers, signal)) {
      yield* readState(event, own);
      yield event ?? SIGN_OF_LIFE;
      if (event?.type === "RUN_FINISHED" || event?.type === "RUN_ERROR") return;
    }
    throw new UpstreamTruncation("its stream ended without RUN_FINISHED");
  });
}

/** Files have no place in what is resumed: with them, the agent gets a conversation in which nothing waits. */
function isResumed({ ctx, attachments }: RunInput): boolean {
  return ctx.approvals.length > 0 && attachments.length === 0;
}

/** What followed the message that is still being answered, with the calls that have waited. */
function exchangeOf(input: RunInput): object[] {
  const { exchange, ctx, message } = input;
  const known = exchange.slice(1).map((one) => {
    if (one.role === "tool") return { role: "tool", toolCallId: one.tool_call_id, content: outputText(one.content) };
    const { role, content, tool_calls: toolCalls } = one as AssistantMessage;
    return { role, ...(content ? { content } : {}), ...(toolCalls === undefined ? {} : { toolCalls }) };
  });
  if (isResumed(input)) return known;
  const results = ctx.approvals.map(({ id, reason }) => ({ role: "tool", toolCallId: id, content: reason }));
  return [...known, ...results, { role: "user", content: message }];
}

function resumeEntry({ kept, approved, reason, arguments: args }: DecidedCall): object {
  const edited = args === undefined ? {} : { editedArgs: tryParse(args) };
  return { interruptId: kept?.interrupt, status: "resolved", payload: { approved, reason, ...edited } };
}

/** The `run` of an agent that is served with the Responses API at this address. It gets the whole conversation each time. */
export function responses(url: string, { headers = {} }: RemoteOptions = {}): RunFunction {
  checkUrl("responses", url);
  return at(url, "the Responses API", async function* (input) {
    const body = { input: responsesInput(input), stream: true };
    for await (const event of await posted(url, body, headers, input.signal)) {
      yield SIGN_OF_LIFE;
      if (event === undefined) continue;
      yield* readResponse(event);
      if (event.type === "response.completed" || event.type === "response.incomplete") return;
    }
    throw new UpstreamTruncation("its stream ended without response.completed");
  });
}

function responsesInput(input: RunInput): object[] {
  const { message, messages, attachments, ctx } = input;
  const decided = ctx.approvals.flatMap(({ id, approved, reason, kept }) => [
    kept,
    { type: "mcp_approval_response", approval_request_id: id, approve: approved, reason },
  ]);
  if (decided.length > 0) return [...messagesUntilAsked(input), ...decided];
  if (attachments.length === 0) return messages;
  const content = [...textParts(message, "input_text"), ...attachments.map(responsesPart)];
  return [...messages.slice(0, -1), { role: "user", content }];
}

/** An empty text. Comments and events that say nothing count for the limits, as they do of a model. */
const SIGN_OF_LIFE = "";

/** Only where it is used: most agents are no further than an import. */
async function posted(...request: Parameters<typeof import("./upstream.ts").postForEvents>) {
  const { postForEvents } = await import("./upstream.ts");
  return postForEvents(...request);
}

/** @throws ConfigError */
function checkUrl(name: string, url: unknown): void {
  if (typeof url === "string" && /^https?:\/\//.test(url) && URL.canParse(url)) return;
  throw new ConfigError(`${name} needs the agent's address, such as ${name}("http://127.0.0.1:8000/").`);
}

function textParts(text: string, type: string): object[] {
  return text === "" ? [] : [{ type, text }];
}

function base64(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
}

function agUiPart({ type, mimeType, data }: RunAttachment): object {
  return { type: type === "image" ? "image" : "document", source: { type: "data", value: base64(data), mimeType } };
}

function responsesPart({ type, name, mimeType, data }: RunAttachment): object {
  const url = `data:${mimeType};base64,${base64(data)}`;
  return type === "image"
    ? { type: "input_image", image_url: url }
    : { type: "input_file", filename: name, file_data: url };
}

/** The agent's own state, as its events change it. A change that does not fit is left out, as clients of AG-UI do; one that costs too much ends the answer. */
function* readState(event: Record<string, unknown> | undefined, own: PatchedDocument): Generator<object> {
  if (event?.type === "STATE_SNAPSHOT") own.document = event.snapshot;
  else if (event?.type !== "STATE_DELTA") return;
  else {
    try {
      own.patch(event.delta);
    } catch (cause) {
      if (cause instanceof CostlyPatch) throw new Error(`a STATE_DELTA costs too much: ${cause.message}`);
      yield {
        type: "notice",
        data: new AgentNotice("The agent sent a STATE_DELTA that does not fit its state.", { cause }),
      };
    }
  }
  yield { type: "state", data: own };
}

/** An event of a response, as events of ours. */
function* readResponse({ type, delta, item, response, ...rest }: Record<string, unknown>): Generator<object> {
  if (type === "response.output_text.delta" || type === "response.refusal.delta") {
    yield { type: "token", data: asString(delta) };
  } else if (type === "response.reasoning_summary_text.delta" || type === "response.reasoning_text.delta") {
    yield { type: "thinking", data: asString(delta) };
  } else if (type === "response.output_item.done" && isRecord(item)) {
    yield* readItem(item);
  } else if (type === "response.failed" || type === "error") {
    throw new UpstreamFailure(isRecord(response) ? response.error : { type, ...rest });
  } else if (type === "response.completed" || type === "response.incomplete") {
    const { usage, incomplete_details: details } = isRecord(response) ? response : {};
    if (isRecord(usage)) yield { type: "usage", data: usage };
    const isCut = isRecord(details) && details.reason === "max_output_tokens";
    if (isCut) yield { type: "finish_reason", data: "length" };
  }
}

/** Tools of the agent's own: a call with its result beside it, or in another item. */
function* readItem(item: Record<string, unknown>): Generator<object> {
  const { type, id, call_id: callId, name, arguments: args, output, error, status } = item;
  if (type === "function_call") {
    yield { type: "tool_call", data: { id: asString(callId), tool: asString(name), arguments: args } };
  } else if (type === "function_call_output") {
    yield { type: "tool_result", data: { id: callId, output: outputText(output) } };
  } else if (type === "mcp_approval_request") {
    yield { type: "tool_approval", data: { id: asString(id), tool: asString(name), arguments: args, kept: item } };
  } else if (asString(type).endsWith("_call") && typeof id === "string") {
    const tool = asString(name) || asString(type).replace(/_call$/, "");
    // An approved call goes on in the row of its request.
    const row = asString(item.approval_request_id) || id;
    yield { type: "tool_call", data: { id: row, tool, arguments: args ?? item.action ?? {} } };
    const failed = Boolean(error) || status === "failed";
    const shown = failed ? "The tool failed." : outputText(output);
    yield { type: "tool_result", data: { id: row, output: shown, status: failed ? "failed" : "completed" } };
  }
}

function outputText(output: unknown): unknown {
  return Array.isArray(output)
    ? records(output)
        .map(({ text }) => asString(text))
        .join("\n")
    : (output ?? "");
}
