/** What may take a message's place: decisions on waiting tool calls, or the request that the model continues. */

import type { RunRequest } from "../agent/loop.ts";
import type { ApprovalDecision, ConversationState } from "../protocol/chat.ts";
import { invalidField, invalidRequest } from "../protocol/errors.ts";
import { isRecord } from "../protocol/json.ts";
import { parseJson } from "./parse-json.ts";

interface GoingOn extends TextLimits {
  state: ConversationState;
  /** There is no message, and no file. */
  isEmpty: boolean;
  asksModel: boolean;
}

interface TextLimits {
  maxMessageChars: number;
  maxJsonDepth: number;
}

const MAX_REASON_CHARS = 1000;

/** The fields `approvals` and `continue` of a message, of which one at least is given. @throws ApiError */
export function parseGoingOn(
  { approvals, continue: goesOn }: Record<string, unknown>,
  { state, isEmpty, asksModel, ...limits }: GoingOn,
): Pick<RunRequest, "approvals" | "goesOn"> {
  const isAnswered = approvals !== undefined && approvals !== null;
  if (goesOn === undefined || goesOn === null) {
    if (!asksModel && !isEmpty) {
      throw invalidRequest("/message", "This agent takes decisions alone: send the message after their answer.");
    }
    return { approvals: parseApprovals(approvals, state, limits), goesOn: true };
  }
  if (goesOn !== true) throw invalidContinue("continue must be true, or absent.");
  if (isAnswered || !isEmpty)
    throw invalidContinue("continue stands alone: leave out message, attachments and approvals.");
  if (!asksModel) throw invalidContinue("This agent cannot continue without a message: send one in place of continue.");
  if (state.open?.waiting !== undefined) {
    throw invalidContinue("Tool calls wait for approval: answer them with approvals, or send a message.");
  }
  if (Object.keys(state).length === 0) {
    throw invalidContinue("There is nothing to continue from: send the state that came with the last answer.");
  }
  return { goesOn: true };
}

function parseApprovals(value: unknown, { open }: ConversationState, limits: TextLimits): ApprovalDecision[] {
  if (!Array.isArray(value)) throw invalidRequest("/approvals", "approvals must be an array.");
  const calls = open?.waiting?.calls;
  if (calls === undefined) {
    throw invalidRequest(
      "/approvals",
      "No tool call of this state waits for approval: send the state of the answer that asked.",
    );
  }
  const left = new Map(calls.map((call) => [call.shownId ?? call.id, call]));
  const decisions = value.map((item, index) => {
    const decision = parseDecision(item, `/approvals/${index}`, limits);
    const call = left.get(decision.id);
    if (call === undefined) {
      const [waiting] = left.keys();
      const example = waiting === undefined ? "" : `, such as ${waiting}`;
      throw invalidField(
        `/approvals/${index}/id`,
        `must be the id of a call that waits${example}, and stand here once`,
      );
    }
    if (decision.arguments !== undefined && call.editable !== true) {
      throw invalidField(
        `/approvals/${index}/arguments`,
        "must be absent: the arguments of this call cannot be changed",
      );
    }
    left.delete(decision.id);
    return decision;
  });
  const [missing] = left.keys();
  if (missing === undefined) return decisions;
  throw invalidRequest("/approvals", `approvals must decide on each call that waits; ${missing} is missing.`);
}

function parseDecision(item: unknown, at: string, { maxMessageChars, maxJsonDepth }: TextLimits): ApprovalDecision {
  if (!isRecord(item)) throw invalidField(at, "must be an object");
  const { id, approved } = item;
  if (typeof id !== "string") throw invalidField(`${at}/id`, "must be a string");
  if (typeof approved !== "boolean") throw invalidField(`${at}/approved`, "must be true or false");
  const reason = optionalText(item.reason, `${at}/reason`, MAX_REASON_CHARS);
  const args = optionalText(item.arguments, `${at}/arguments`, maxMessageChars);
  if (args !== undefined && !approved) throw invalidField(`${at}/arguments`, "must be absent where approved is false");
  if (args !== undefined && !isObject(args, maxJsonDepth)) {
    throw invalidField(`${at}/arguments`, `must be the JSON text of an object, nested at most ${maxJsonDepth} levels`);
  }
  return {
    id,
    approved,
    ...(reason === undefined ? {} : { reason }),
    ...(args === undefined ? {} : { arguments: args }),
  };
}

function isObject(text: string, maxDepth: number): boolean {
  try {
    return isRecord(parseJson(Buffer.from(text), maxDepth));
  } catch {
    return false;
  }
}

export function optionalText(value: unknown, at: string, maxChars: number): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string" && value.length <= maxChars) return value.toWellFormed();
  throw invalidField(at, `must be a string of at most ${maxChars} characters`);
}

function invalidContinue(message: string) {
  return invalidRequest("/continue", message);
}
