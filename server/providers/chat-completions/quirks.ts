/** What a server does not take, learned from the sentences with which it refuses requests. */

import { isRecord } from "../../protocol/json.ts";
import { blamesParameter, UpstreamRefusal } from "../failures.ts";
import type { ChatDialect, HistoryQuirks, SettingQuirks } from "./dialect.ts";
import type { SentMessage } from "./messages.ts";

/** Everything learned that shapes one request. */
export interface RequestQuirks {
  readonly settings: SettingQuirks;
  readonly history: HistoryQuirks;
}

export const NO_SETTING_QUIRKS: SettingQuirks = {
  usage: true,
  thoughts: true,
  maxTokens: "max_tokens",
};

export const NO_HISTORY_QUIRKS: HistoryQuirks = {
  refused: new Set(),
  dropsSigned: false,
  wantsReasoning: false,
  shortIds: false,
  closesTools: false,
};

/** A request that was refused, and what shaped it. */
export interface RefusedRequest extends RequestQuirks {
  dialect: ChatDialect;
  body: { messages: readonly SentMessage[] };
}

/** What one refusal teaches: at most one of the two. */
export interface LearnedQuirks {
  settings?: Partial<SettingQuirks>;
  history?: Partial<HistoryQuirks>;
}

/**
 * What the refusal teaches beyond what the request already heeded, so that another try makes sense;
 * `undefined` when it teaches nothing.
 */
export function learn(cause: unknown, request: RefusedRequest): LearnedQuirks | undefined {
  if (!(cause instanceof UpstreamRefusal)) return undefined;
  if (cause.status !== 400 && cause.status !== 422) return undefined;
  const settings = learnSettings(cause, request);
  if (settings !== undefined) return { settings };
  const history = learnHistory(cause, request);
  return history === undefined ? undefined : { history };
}

function learnSettings(
  cause: UpstreamRefusal,
  { dialect, settings, body }: RefusedRequest,
): Partial<SettingQuirks> | undefined {
  if (settings.usage && blamesParameter(cause, "stream_options")) return { usage: false };
  if (settings.thoughts && dialect.thoughtsRefused?.test(cause.detail.text)) {
    return { thoughts: false };
  }
  if ("max_tokens" in body && /\bmax_completion_tokens\b/.test(cause.detail.text)) {
    return { maxTokens: "max_completion_tokens" };
  }
  return undefined;
}

function learnHistory(cause: UpstreamRefusal, { history, body }: RefusedRequest): Partial<HistoryQuirks> | undefined {
  // Some servers put the sentence into fields of their own: the whole body is searched.
  const said = cause.body;
  if (!history.wantsReasoning && /reasoning_content\b.{0,80}must be passed back/is.test(said)) {
    return { wantsReasoning: true };
  }
  if (!history.shortIds && /tool.?call.?id\b.{0,200}(?:length|too long|must)/is.test(said)) {
    return { shortIds: true };
  }
  if (!history.closesTools && /role '?"?user'?"? after role '?"?tool/i.test(said)) {
    return { closesTools: true };
  }
  if (!history.dropsSigned && /invalid\W{0,3}signature/i.test(said)) return { dropsSigned: true };
  const words = new Set(said.split(/\W+/));
  const heeded = new Set([...history.refused, ...(history.wantsReasoning ? [REASONING] : [])]);
  const blamed = extraFields(body.messages).filter((name) => words.has(name) && !heeded.has(name));
  return blamed.length === 0 ? undefined : { refused: new Set([...history.refused, ...blamed]) };
}

const REASONING = "reasoning_content";

const MESSAGE_FIELDS = new Set(["role", "content", "tool_calls"]);
const CALL_FIELDS = new Set(["id", "type", "function"]);
const FUNCTION_FIELDS = new Set(["name", "arguments"]);

/** Names of what went back beyond the API's own fields. */
function extraFields(messages: readonly SentMessage[]): string[] {
  const names = new Set<string>();
  const add = (fields: unknown, known: ReadonlySet<string>) => {
    if (!isRecord(fields)) return;
    for (const name of Object.keys(fields)) if (!known.has(name)) names.add(name);
  };
  for (const message of messages) {
    if (message.role !== "assistant") continue;
    add(message, MESSAGE_FIELDS);
    const calls: unknown = message.tool_calls;
    if (!Array.isArray(calls)) continue;
    for (const call of calls) {
      add(call, CALL_FIELDS);
      if (isRecord(call)) add(call.function, FUNCTION_FIELDS);
    }
  }
  return [...names];
}
