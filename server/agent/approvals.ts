/**
 * Tool calls that need a person's approval: which calls need it, what the person is asked, and what each decision does.
 * The invariants are in docs/internals/approvals.md.
 */

import { randomUUID } from "node:crypto";
import type { Settings } from "../config/settings.ts";
import type { RunEvent, RunObserver } from "../observe/run-observer.ts";
import type { ApprovalDecision, ToolApproval, ToolMessage, WaitingCall, WaitingCalls } from "../protocol/chat.ts";
import { ApiError, invalidRequest } from "../protocol/errors.ts";
import { toJson } from "../protocol/json.ts";
import { textContent, textOf } from "../providers/history.ts";
import type { AskedCall, ToolAnswer, ToolCall } from "../providers/provider.ts";
import type { Agent } from "./define.ts";
import { plainText } from "./plain-text.ts";
import type { Tool } from "./tool-definition.ts";
import { describeProblems } from "./tool-schema.ts";
import { type Asking, hiddenBy, hiderOf, madeBy, shownCall, shownId, titleText } from "./tool-words.ts";
import { type Calling, checkedArguments, fittingArguments } from "./tools.ts";

/** Remembers which decisions were used, so that no call is carried out twice. */
export interface ApprovalLedger {
  /** Name of a ledger that remembers nonces for `ms` milliseconds from now, by its own clock, which never goes back. */
  name(ms: number): Promise<string>;
  /** Marks a nonce as used. "lost": the ledger is gone or has expired. @throws ApiError while that cannot be known */
  use(nonce: string, ledger: string): Promise<"new" | "known" | "lost">;
}

/** The run that asks for approval, or the one that brings the decisions. */
export interface ApprovingRun {
  readonly served: { readonly agent: Pick<Agent, "ownRun"> };
  readonly settings: Pick<Settings, "approvalSeconds">;
  readonly ledger: ApprovalLedger;
  /** `approvals` is absent if the user sent a message instead of decisions. */
  readonly request: { readonly approvals?: readonly ApprovalDecision[] };
}

/** The calls of a turn that need approval. A call with invalid arguments is left out, because it would not run. */
export async function callsToApprove(calls: readonly ToolCall[], calling: Calling): Promise<ToolCall[]> {
  const candidates = calls.slice(0, calling.limits.maxToolCalls);
  const isHeld = await Promise.all(candidates.map((call) => needsApproval(call, calling)));
  return candidates.filter((_, index) => isHeld[index]);
}

async function needsApproval(call: ToolCall, calling: Calling): Promise<boolean> {
  const tool = calling.tools.get(call.name);
  const fitting = tool?.approval && (await fittingArguments(tool, call, calling));
  if (fitting === undefined) return false;
  const ask = (signal: AbortSignal) =>
    tool?.approval?.isNeeded(fitting.value, { ...calling.context, signal, callId: call.id, progress: () => {} });
  return madeBy(`needsApproval of the tool "${call.name}"`, ask, NEEDS_APPROVAL, calling);
}

const NEEDS_APPROVAL = {
  /** Only an explicit `false` skips the approval. */
  read(given: unknown): boolean {
    if (typeof given === "boolean") return given;
    throw new TypeError(`It must return true or false, but returned ${typeof given}.`);
  },
  otherwise: true,
  consequence: "The person is asked, as where it returns true.",
};

/** The questions for the person, and what the state keeps of the calls until the person has decided. */
export async function askApproval(
  asked: readonly AskedCall[],
  { settings, ledger }: ApprovingRun,
): Promise<{ waiting: WaitingCalls; approvals: ToolApproval[] }> {
  const ms = settings.approvalSeconds * 1000;
  const name = await ledger.name(ms);
  const expires_at = new Date(Date.now() + ms).toISOString();
  const calls = asked.map(({ call, shown, editable, isQuestion, question, kept }): WaitingCall => {
    const { id, name, arguments: args } = call;
    return {
      ...{ id, name, arguments: args },
      ...(editable ? { editable } : {}),
      ...(shown === undefined || shown.id === id ? {} : { shownId: shown.id }),
      ...(isQuestion ? { isQuestion } : {}),
      ...(question ? { question } : {}),
      ...(kept === undefined ? {} : { kept }),
    };
  });
  const approvals = asked.map((one) => approvalOf(one, expires_at));
  return { waiting: { calls, nonce: randomUUID(), ledger: name, expires_at }, approvals };
}

function approvalOf(
  { call, shown, text = "", danger, editable, schema, question }: AskedCall,
  expires_at: string,
): ToolApproval {
  return {
    ...(shown ?? { id: call.id, tool: call.name, arguments: call.arguments }),
    text: plainText(text) || `The assistant wants to use "${call.name}".`,
    ...(danger ? { danger } : {}),
    ...(editable ? { editable } : {}),
    ...(schema ? { schema } : {}),
    ...(question ? { question } : {}),
    expires_at,
  };
}

/** The call with the question for the person, as the tool's author defined it. */
export async function askedCall(call: ToolCall, calling: Calling): Promise<AskedCall> {
  const { tools } = calling;
  const tool = tools.get(call.name);
  const { editable = false, danger } = tool?.approval ?? {};
  const hider = hiderOf(tools, call.name);
  const hidden = hider && { id: shownId(call.id, call.name), tool: "", arguments: "{}", ...shownCall(call, hider) };
  const shown = {
    ...(hidden ?? { id: call.id, tool: call.name, arguments: call.arguments }),
    ...(tool?.title === undefined || hider?.expose === "none" ? {} : { title: tool.title }),
  };
  const text = await questionOf(tool, call, calling);
  // A person can only change arguments that they can read.
  if (!editable || tool === undefined || hider) return { call, shown, text, danger };
  const { json } = tool.parameters;
  const schema = Buffer.byteLength(toJson(json)) <= MAX_SCHEMA_BYTES ? json : undefined;
  return { call, shown, text, danger, editable, schema };
}

/** A longer schema is not sent to clients: the server checks edited arguments in any case. */
const MAX_SCHEMA_BYTES = 16 * 1024;

async function questionOf(tool: Tool | undefined, call: ToolCall, calling: Calling): Promise<string> {
  const name = tool?.title === undefined && tool?.expose === "all" ? call.name : titleText(tool?.title);
  const standard = `The assistant wants to use ${name === "" ? "a tool" : `"${name}"`}.`;
  const make = tool?.approval?.text;
  const fitting = make && (await fittingArguments(tool, call, calling));
  if (fitting === undefined) return standard;
  const read = (given: unknown) => {
    if (typeof given === "string") return plainText(given) || standard;
    throw new TypeError(`It must return a string, but returned ${typeof given}.`);
  };
  const rule = { read, otherwise: standard, consequence: "People read a sentence in its place." };
  return madeBy(`approvalText of the tool "${call.name}"`, () => make?.(fitting.value), rule, calling);
}

/** What happens to the calls that waited for approval. */
export interface Decided {
  /** With the person's arguments where they changed them. */
  readonly approved: readonly ToolCall[];
  /** The declined calls, as results for the model. */
  readonly declined: readonly ToolAnswer[];
  /** Ids of the approved calls whose arguments the person changed. */
  readonly edited: ReadonlySet<string>;
}

/**
 * Applies the decisions to the waiting calls. Decisions work once: a second message with them gets an error. A message
 * without decisions answers the calls that ask for words, and declines the others. @throws ApiError
 */
export async function takeDecisions(waiting: WaitingCalls, run: ApprovingRun, calling: Calling): Promise<Decided> {
  const { approvals } = run.request;
  const { calls } = waiting;
  const { tools, observer } = calling;
  if (approvals === undefined) return declineAll(waiting, run, observer);
  if (Date.now() > Date.parse(waiting.expires_at)) throw expired();
  const ids = new Map(calls.map(({ id, shownId = id }) => [shownId, id]));
  const decisions = new Map(approvals.map((decision) => [ids.get(decision.id), decision]));
  const approved = calls.flatMap((call) => {
    const decision = decisions.get(call.id);
    return decision?.approved
      ? [{ id: call.id, name: call.name, arguments: decision.arguments ?? call.arguments }]
      : [];
  });
  const edited = approved.filter(({ id }) => decisions.get(id)?.arguments !== undefined);
  for (const [index, { id }] of approvals.entries()) {
    const call = edited.find((one) => one.id === ids.get(id));
    // An agent that is written elsewhere checks the arguments of its own calls.
    if (call === undefined || run.served.agent.ownRun !== undefined) continue;
    await checkEdited(tools.get(call.name), call, `/approvals/${index}/arguments`, calling);
  }
  const outcome = await run.ledger.use(waiting.nonce, waiting.ledger);
  if (outcome === "lost") throw expired();
  if (outcome === "known") {
    throw new ApiError("approval_used", "This was answered before, perhaps in another window.");
  }
  for (const call of calls) observer.approval(call, decisions.get(call.id)?.approved ? "approved" : "declined");
  const others = calls.filter(({ id }) => !decisions.get(id)?.approved);
  const declined = others.map((call) => declinedAnswer(call, declinedText(decisions.get(call.id))));
  return { approved, declined, edited: new Set(edited.map(({ id }) => id)) };
}

function expired(): ApiError {
  return new ApiError("approval_expired", "It is too late to decide on this. Please ask for it again.");
}

/** @throws ApiError that names the field, so that the person can correct it and decide again */
async function checkEdited(tool: Tool | undefined, call: ToolCall, param: string, asking: Asking) {
  // The agent may have been replaced since it asked.
  if (tool?.approval?.editable !== true) throw invalidRequest(param, "The arguments of this call cannot be changed.");
  const checked = await checkedArguments(tool, call, asking);
  if (checked.ok) return;
  const { problems, failure } = checked;
  if (failure !== undefined) asking.observer.failure(failure);
  const sentence = `The arguments do not fit: ${describeProblems(problems).replaceAll("\n", "; ")}`;
  throw new ApiError("invalid_request", sentence, { param, problems });
}

async function declineAll(waiting: WaitingCalls, run: ApprovingRun, observer: RunObserver): Promise<Decided> {
  // The message is processed even if the ledger fails.
  const outcome = await run.ledger.use(waiting.nonce, waiting.ledger).catch(() => "lost");
  // For a call that asks for words, the message is the answer, but only the first time.
  const approved = waiting.calls.filter(({ question }) => question && outcome === "new");
  const others = waiting.calls.filter((call) => !approved.includes(call));
  for (const call of approved) observer.approval(call, "approved");
  for (const call of others) observer.approval(call, "declined");
  const text = outcome === "new" ? UNDECIDED : UNKNOWN;
  return { approved, declined: others.map((call) => declinedAnswer(call, text)), edited: new Set() };
}

const DECLINED = "The user declined this call, so it was not carried out.";
const UNDECIDED = "The user did not decide on this call and wrote something else, so it was not carried out.";
const UNKNOWN =
  "The user did not decide on this call here and wrote something else. It was not carried out, unless they had approved it elsewhere.";

/** Whether a declined call may have been approved elsewhere before. */
export function mayBeDecided({ approved, reason }: ApprovalDecision): boolean {
  return !approved && reason?.startsWith(UNKNOWN) === true;
}

function declinedText(decision: ApprovalDecision | undefined): string {
  const reason = decision?.reason?.trim() ?? "";
  return reason === "" ? DECLINED : `${DECLINED} Their reason: ${reason}`;
}

/** Whether a person has declined the call that has this result. */
export function isDeclinedAnswer({ content, is_error: failed = false }: ToolMessage): boolean {
  const text = typeof content === "string" && failed ? content : "";
  return [DECLINED, UNDECIDED, UNKNOWN].some((sentence) => text.startsWith(sentence));
}

function declinedAnswer({ id, name }: { id: string; name: string }, text: string): ToolAnswer {
  return { id, name, content: textContent(text), failed: true };
}

export function declinedEvent({ tools }: Calling, { id, name, content }: ToolAnswer): RunEvent {
  const output = textOf(content);
  const title = tools.get(name)?.title;
  const data = { id, tool: name, title, output, status: "failed", declined: true, duration_ms: 0 } as const;
  return hiddenBy({ type: "tool_result", data }, hiderOf(tools, name));
}

/** Adds a note about the new arguments for the model, which knows only those that it wrote. */
export function withEdit(answer: ToolAnswer, { arguments: args }: ToolCall): ToolAnswer {
  const note = textContent(`The user approved this call with other arguments: ${args}`);
  const { shown } = answer;
  return {
    ...answer,
    content: [...note, ...answer.content],
    ...(shown === undefined ? {} : { shown: `${note[0]?.text}\n${shown}` }),
  };
}
